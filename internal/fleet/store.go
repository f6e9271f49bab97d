// Package fleet shares state between several heeds in a Redis or Valkey server:
// policies, which one heed fetches for all, and turns to start requests.
//
// It handles bytes and keys and does not interpret them. Open connects to the store
// (store.go, url.go), Policies shares entries of origins (policies.go)
// and reports changes (watch.go), Lanes coordinates the starts of requests
// (lanes.go, lanescripts.go) and counts the heeds (members.go). A store that does
// not answer delays the first caller by a moment and the others not at all (reconnect.go):
// every heed can continue without it, for turns too (local.go). Each node of a Cluster
// answers or not by itself (parts.go). A store that
// answers nonsense (replies.go), too much (internal/fleet/resp) or slowly counts as
// one that does not answer. Renew (access.go) changes passwords and certificates, and Try
// (try.go) tries the store for a command. Store has its methods in the files of these
// subjects.
//
// A turn is a permission, and the request starts when it is written. Two requests of
// different heeds can be less than a delay apart at the site when one of them starts late:
//
//   - with the store, when its process is stopped for longer than grantTime after it was
//     given the turn, so that the turn is given to another heed;
//   - without the store, when it starts later in its slot than the spare time between slots
//     allows: three quarters of a fourth of the delay, of at least 100 ms and at most 2 s.
//     A connection that takes longer to open is enough.
//
// A check before the start would make this rarer and not impossible: the process may be
// stopped after it, and a site knows nothing of turns.
//
// The store contains, all of it with a time to live:
//
//	heed:1:SPACE:{TAG}:policy       hash: version, record and snapshot by name, and the last drop
//	heed:1:SPACE:{TAG}:lease:NAME   token of the heed that fetches, or "alone"
//	heed:1:SPACE:changes            channel: sender and tag of what has changed
//	heed:1:{HOST}:turns             hash: who has started, may start and waits
//	heed:1:heeds                    hash: who takes turns
//	heed:1:pauses                   channel: sites that asked for a pause
//
// SPACE separates heeds that reach sites in different ways. The braces put all keys
// of one tag on one node of a Cluster.
//
// Outside package: github.com/redis/go-redis.
package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Limits of talking to the store.
const (
	// opTimeout is how long one question may take, a connection to be made for
	// it included: no request waits longer for a store that is dead.
	opTimeout = time.Second
	// fastAnswer is how long an answer may take without counting against opTimeout of
	// the questions after it: of those a request asks four, as a rule.
	fastAnswer = opTimeout / 4
	// forgetShare is which part of the time is forgotten of what slow answers took.
	forgetShare = 10
	// probeEvery is how often a store that was away is tried again.
	probeEvery = 500 * time.Millisecond
	// A store that fails at a question again within steadyTime of its return, and has
	// answered none of that kind since, is tried half as often each time, down to once in
	// maxProbeEvery. One that goes and returns is not: then all heeds must notice at
	// about the same time (settleTime).
	steadyTime    = 10 * time.Second
	maxProbeEvery = 16 * time.Second
	// connections is how many are open at a time, to each node.
	connections = 32
)

// Options say which store is opened.
type Options struct {
	// URL is where it is; see CheckURL.
	URL string
	// RootCAs are what its certificate is verified against, with rediss://;
	// nil: the system's.
	RootCAs *x509.CertPool
	// Certificate is what heed shows the store and its Sentinels, with rediss://; nil: none.
	Certificate *tls.Certificate
	// Failed is called for each question that the store did not answer, or was not asked
	// while it was away, with one of Ops; nil is not called.
	Failed func(op string)
	// Answered is called with the time of each answer; nil is not called.
	Answered func(took time.Duration)
	// Log receives a line when the store becomes unreachable and when it is back. It must not be nil.
	Log *slog.Logger
}

// Store is a connection to what a fleet of heeds shares. Make one with Open;
// it is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	target *redis.UniversalOptions // what the URL says, but for the credentials
	access atomic.Pointer[access]
	log    *slog.Logger
	failed func(op string)
	took   func(time.Duration) // Options.Answered
	sender string              // this process, in messages of changes
	hosts  string              // for people

	ctx   context.Context // ends with Close
	end   context.CancelFunc
	tasks sync.WaitGroup

	opened  time.Time
	cluster bool
	settle  time.Duration // by when all heeds have noticed that the store is back

	mu      sync.Mutex
	parts   parts
	outages uint64
	missed  uint64
	closed  bool
	spaces  map[string]*Policies
	turns   *Lanes // nil until they are asked for
}

// Open prepares the way to the store. It does not wait for it: a store that is
// unreachable is logged, and used as soon as it answers. The error describes
// what is wrong with the URL.
func Open(options Options) (*Store, error) {
	o, err := parseURL(options.URL, options.RootCAs)
	if err != nil {
		return nil, err
	}
	// The library writes its own lines to stderr, where heed's log is.
	logging.Disable()
	s := &Store{target: o, log: options.Log, failed: options.Failed, took: options.Answered, sender: rand.Text(), hosts: strings.Join(o.Addrs, ","), opened: time.Now(), settle: settleTime}
	if s.cluster = o.IsClusterMode; s.cluster {
		s.settle = clusterSettleTime
	}
	s.access.Store(newAccess(o, &options))
	s.client = newClient(o, s.access.Load, slotReader{s})
	s.ctx, s.end = context.WithCancel(context.Background())
	s.spawn(func() { s.do(s.ctx, nil, heedsKey, s.probe(heedsKey)) })
	return s, nil
}

// Close ends all that s does. Afterwards the store counts as away.
func (s *Store) Close() error {
	s.mu.Lock()
	turns := s.turns
	s.mu.Unlock()
	if turns != nil {
		turns.deregister()
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	err := s.client.Close()
	s.tasks.Wait()
	return err
}

// spawn runs task beside all else; Close waits for it.
func (s *Store) spawn(task func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.tasks.Go(task)
	}
}

// Health is how a store has been.
type Health struct {
	Hosts string `json:"hosts"`
	// Away is set while the store does not answer, or a node of its Cluster: no request
	// waits for that then, and heed tries to reconnect.
	Away  bool      `json:"away"`
	Nodes []string  `json:"nodes_away,omitempty"` // of a Cluster; with Away, none: all of it
	Since time.Time `json:"since,omitzero"`       // when it, or the first of them, was found away
	Why   string    `json:"why,omitempty"`        // what it said last, or did not
	// Unreached is set until the store was reached once: no turn is given before that.
	Unreached bool `json:"unreached,omitempty"`

	Heeds   int    `json:"heeds,omitempty"` // that take turns, this one among them, when it was last there; 0: none do
	Outages uint64 `json:"outages"`         // how often it, or a node, was found away
	Missed  uint64 `json:"missed"`          // questions that were not answered for it
}

// Health returns how the store is and has been.
func (s *Store) Health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Health{Hosts: s.hosts, Outages: s.outages, Missed: s.missed}
	s.parts.all(func(p *part) {
		if !p.away {
			return
		}
		if !h.Away || p.since.Before(h.Since) {
			h.Since, h.Why = p.since, p.why
		}
		if h.Away = true; p.node != "" {
			h.Nodes = append(h.Nodes, p.node)
		}
	})
	if slices.Sort(h.Nodes); s.parts.whole.away {
		h.Nodes = nil
	}
	if s.turns != nil {
		h.Heeds, h.Unreached = s.turns.known()
	}
	return h
}

// do runs op, which asks the store about key, and reports whether it was answered. of
// is the script that it runs, nil for others. While the part of the store that has the key
// is unreachable it is not asked.
//
// It takes opTimeout at most, less what slow answers have taken lately, and fastAnswer
// at least: so a request that asks several times waits about opTimeout in all.
func (s *Store) do(ctx context.Context, of *script, key string, op func(context.Context) error) bool {
	s.mu.Lock()
	p, asked := s.parts.of(key), time.Now()
	if p.away || s.closed {
		s.missed++
		s.mu.Unlock()
		s.count(of)
		return false
	}
	spent := p.spentLocked(asked)
	s.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, max(opTimeout-spent, fastAnswer))
	defer cancel()
	err := guard(func() error { return op(limited) })
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		s.answered(p, of, spent, asked)
		return true
	case err == errUnknown:
		s.answered(p, nil, spent, asked)
	case ctx.Err() == nil: // else the caller has lost patience, and the store no part in it
		s.count(of)
		s.failedFor(p, of, key, err)
	}
	return false
}

// failedFor notes that p did not answer a question about key, unless the Cluster has given
// the key to another master meanwhile.
func (s *Store) failedFor(p *part, of *script, key string, err error) {
	s.mu.Lock()
	moved := p != s.parts.of(key) && p != &s.parts.whole
	if moved {
		s.missed++
	}
	s.mu.Unlock()
	if !moved {
		s.markAway(of, key, explain(err, s.cluster))
	}
}

// Operations of the store, for Options.Failed.
const (
	opPolicies = "policies" // entries of origins, and who fetches them
	opTurns    = "turns"    // turns and pauses at sites
	opOther    = "other"    // whether the store works, and which heeds there are
)

// Ops returns all operations.
func Ops() []string { return []string{opPolicies, opTurns, opOther} }

// count reports a question that failed. of is its script; nil for others.
func (s *Store) count(of *script) {
	if s.failed == nil {
		return
	}
	switch of {
	case newerScript, leaseScript, renewScript, endScript, dropScript:
		s.failed(opPolicies)
	case askScript, movedScript, startedScript, heldScript, holdScript:
		s.failed(opTurns)
	default:
		s.failed(opOther)
	}
}

// spentLocked is what slow answers have taken, as far as it is not forgotten.
func (p *part) spentLocked(now time.Time) time.Duration {
	return max(0, p.spent-now.Sub(p.spentAt)/forgetShare)
}

// answered notes how long the answer to a question took that was asked after slow ones.
// Those to questions that were asked together count once.
func (s *Store) answered(p *part, of *script, spent time.Duration, asked time.Time) {
	now := time.Now()
	took := now.Sub(asked)
	if s.took != nil {
		s.took(took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if took >= fastAnswer {
		p.spent, p.spentAt = max(p.spentLocked(now), spent+took), now
	} else if of != nil {
		if p.kept == nil {
			p.kept = map[*script]bool{}
		}
		p.kept[of] = true
	}
}

// run runs a script on keys of one node and returns its reply. The error of that is
// ErrAway, or the context's, when the store did not answer or the script cannot have
// returned the reply.
func (s *Store) run(ctx context.Context, of *script, keys []string, args ...any) (reply *redis.Cmd) {
	unknown := false
	ok := s.do(ctx, of, keys[0], func(ctx context.Context) error {
		reply = s.send(ctx, "evalsha", of.hash, keys, args)
		if unknown = redis.HasErrorPrefix(reply.Err(), "NOSCRIPT"); unknown {
			return errUnknown
		}
		return of.check(reply)
	}) || unknown && s.do(ctx, of, keys[0], func(ctx context.Context) error {
		reply = s.send(ctx, "eval", of.text, keys, args)
		return of.check(reply)
	})
	if !ok {
		reply = redis.NewCmd(ctx)
		reply.SetErr(cmp.Or(ctx.Err(), ErrAway))
	}
	return reply
}

// send runs a script, which is given as a text or as the hash of one.
func (s *Store) send(ctx context.Context, command, script string, keys []string, args []any) *redis.Cmd {
	all := []any{command, script, len(keys)}
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	_ = s.client.Process(ctx, once{cmd}) // the error is cmd's, too
	return cmd
}

// once is a command that the library sends once, but where a Cluster redirects it: a
// script whose answer was lost may have run.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }
