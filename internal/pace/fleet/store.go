// Package fleet shares state between several heeds in a Redis or Valkey server:
// policies, which one heed fetches for all, and turns to start requests.
//
// It handles octets and keys and does not interpret them. Open connects to the store
// (store.go, url.go), Policies shares entries of origins (policies.go)
// and reports changes (watch.go), Lanes coordinates the starts of requests
// (lanes.go, scripts) and counts the heeds (members.go). A store that does
// not answer delays the first caller by a moment and the others not at all (reconnect.go):
// every heed can continue without it, for turns too (local.go). Each node of a Cluster
// answers or not by itself (parts.go). A store that
// answers nonsense (replies.go), too much (internal/pace/fleet/resp) or slowly counts as
// one that does not answer. Renew (access.go) changes passwords and certificates, and Try
// (try.go) tries the store for a command. Store has its methods in the files of these
// subjects.
//
// A turn is a permission, and the request starts when it is written. Two requests of
// different heeds can be less than a delay apart at the site when one of them starts late:
//
//   - with the store, when its process is stopped for longer than grantTime after it was
//     given the turn, so that the turn is given to another heed;
//   - without the store, when it is stopped while it writes the request, after it has
//     seen that its slot is not over (pace.SharedAnswer.Until), or has waited for a turn
//     at its address after the one at its site. A connection that takes long to open is
//     kept until the next slot.
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
// Outside package: github.com/redis/go-redis, which knows Sentinel and Cluster, and
// connects again.
package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"heed/internal/base/memo"
)

// Time limits of the store.
const (
	// opTimeout is the longest time of one operation, including a connection that must be made:
	// no request waits longer for a store that is dead.
	opTimeout = time.Second
	// fastAnswer is the time of an answer that does not count against the opTimeout of later
	// operations. A request usually needs four.
	fastAnswer = opTimeout / 4
	// forgetShare divides the time since slow answers: so much of their time is forgotten.
	forgetShare = 10
	// probeEvery is the interval at which an unreachable store is probed.
	probeEvery = 500 * time.Millisecond
	// A store that fails at an operation again within steadyTime of its return, and has
	// answered none of that kind since, is probed half as often each time, down to once in
	// maxProbeEvery. A store that becomes unreachable and returns is not: then all heeds must
	// notice at about the same time (settleTime).
	steadyTime    = 10 * time.Second
	maxProbeEvery = 16 * time.Second
	// connections is the number of open connections to each node.
	connections = 32
)

// Options are the options of Open.
type Options struct {
	// URL is the URL of the store; see CheckURL.
	URL string
	// RootCAs verify its certificate, with rediss://; nil: the roots of the system.
	RootCAs *x509.CertPool
	// Certificate is the client certificate for the store and its Sentinels, with rediss://;
	// nil: none.
	Certificate *tls.Certificate
	// Failed is called for each operation that the store did not answer, or that was skipped
	// while it was unreachable, with one of Ops; nil is not called.
	Failed func(op string)
	// Answered is called with the duration of each answered operation; nil is not called.
	Answered func(took time.Duration)
	// Log receives a line when the store becomes unreachable and when it is back. It must not be nil.
	Log *slog.Logger
}

// Store is the connection to the shared state of a fleet. Make one with Open; it is safe for
// concurrent use.
type Store struct {
	client redis.UniversalClient
	access atomic.Pointer[redis.UniversalOptions] // of the last Renew: what new connections use
	log    *slog.Logger
	failed func(op string)
	took   func(time.Duration) // Options.Answered
	sender string              // names this process in messages of changes
	hosts  string              // for display

	ctx   context.Context // ends with Close
	end   context.CancelFunc
	tasks sync.WaitGroup

	opened  time.Time
	cluster bool
	settle  time.Duration // settleTime or clusterSettleTime

	mu      sync.Mutex
	parts   parts
	outages uint64
	missed  uint64
	closed  bool
	spaces  map[string]*Policies
	lanes   *Lanes // nil until Lanes is called
}

// Open returns a Store. It does not wait for a connection: a store that is unreachable is
// logged, and used as soon as it answers. The error is about the URL.
func Open(options Options) (*Store, error) {
	o, err := parseURL(&options)
	if err != nil {
		return nil, err
	}
	// The library writes lines to stderr, which is heed's log.
	logging.Disable()
	s := &Store{log: options.Log, failed: options.Failed, took: options.Answered, sender: rand.Text(), hosts: strings.Join(o.Addrs, ","), opened: time.Now(), settle: settleTime}
	if s.cluster = o.IsClusterMode; s.cluster {
		s.settle = clusterSettleTime
	}
	s.access.Store(o)
	s.client = newClient(*o, s.access.Load, slotReader{s})
	s.ctx, s.end = context.WithCancel(context.Background())
	s.spawn(func() {
		keys := []string{heedsKey}
		s.do(s.ctx, nil, keys, func(ctx context.Context) error { return s.probe(ctx, keys, false) })
	})
	return s, nil
}

// Close ends all tasks of s. Afterwards the store counts as unreachable.
func (s *Store) Close() error {
	s.mu.Lock()
	lanes := s.lanes
	s.mu.Unlock()
	if lanes != nil {
		lanes.deregister()
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	err := s.client.Close()
	s.tasks.Wait()
	return err
}

// spawn runs task in a goroutine, for which Close waits.
func (s *Store) spawn(task func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.tasks.Go(task)
	}
}

// Health is the state of a store.
type Health struct {
	Hosts string `json:"hosts"`
	// Away is set while the store, or a node of its Cluster, does not answer. Requests do not
	// wait for it then, and heed tries to reconnect.
	Away  bool      `json:"away"`
	Nodes []string  `json:"nodes_away,omitempty"` // of a Cluster; empty with Away: the whole store
	Since time.Time `json:"since,omitzero"`       // when it, or the first of them, became unreachable
	Why   string    `json:"why,omitempty"`        // the last error
	// Unreached is set until the store was reached once: no turn is granted before that.
	Unreached bool `json:"unreached,omitempty"`

	Heeds   int    `json:"heeds,omitempty"` // that take turns, this one included, as of the last answer; 0: none do
	Outages uint64 `json:"outages"`         // how often it, or a node, became unreachable
	Missed  uint64 `json:"missed"`          // operations without an answer
}

// Health returns the state of the store.
func (s *Store) Health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Health{Hosts: s.hosts, Outages: s.outages, Missed: s.missed}
	for _, p := range s.parts.all() {
		if !p.away {
			continue
		}
		if !h.Away || p.since.Before(h.Since) {
			h.Since, h.Why = p.since, p.why
		}
		if h.Away = true; p.node != "" {
			h.Nodes = append(h.Nodes, p.node)
		}
	}
	if slices.Sort(h.Nodes); s.parts.whole.away {
		h.Nodes = nil
	}
	if s.lanes != nil {
		h.Heeds, h.Unreached = s.lanes.known()
	}
	return h
}

// do runs op, an operation on keys of one node, and reports whether the store answered it. of is
// the script that op runs, nil for others. While the part of the store that has the keys is
// unreachable, op is not run.
//
// op has opTimeout, less the time of recent slow answers, and at least fastAnswer. So a
// request that needs several operations waits about opTimeout in all.
func (s *Store) do(ctx context.Context, of *script, keys []string, op func(context.Context) error) bool {
	s.mu.Lock()
	p, asked := s.parts.of(keys[0]), time.Now()
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
	case ctx.Err() == nil: // otherwise the caller's context ended it, not the store
		s.count(of)
		s.failedFor(p, of, keys, err)
	}
	return false
}

// failedFor marks p as unreachable after an operation on keys, unless the Cluster has moved them
// to another master meanwhile.
func (s *Store) failedFor(p *part, of *script, keys []string, err error) {
	s.mu.Lock()
	moved := p != s.parts.of(keys[0]) && p != &s.parts.whole
	if moved {
		s.missed++
	}
	s.mu.Unlock()
	if !moved {
		s.markAway(of, keys, explain(err, s.cluster))
	}
}

// Operations of the store, for Options.Failed.
const (
	opPolicies = "policies" // entries of origins, and leases
	opTurns    = "turns"    // turns and pauses at sites
	opOther    = "other"    // probes, and the list of heeds
)

// Ops returns all operations.
func Ops() []string { return []string{opPolicies, opTurns, opOther} }

// count reports a failed operation, by the script that it ran; of is nil where it ran none.
func (s *Store) count(of *script) {
	op := opOther
	if of != nil {
		op = of.op
	}
	if s.failed != nil {
		s.failed(op)
	}
}

// spentLocked returns the time of slow answers that is not forgotten yet.
func (p *part) spentLocked(now time.Time) time.Duration {
	return max(0, p.spent-now.Sub(p.spentAt)/forgetShare)
}

// answered records the duration of an operation that began after slow ones. Concurrent
// operations count once.
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
		memo.Set(&p.kept, of, true)
	}
}

// numbers runs a script that returns n numbers and, behind them, its first argument, which is
// a nonce: a reply without it is to another call. credible reports whether the numbers can be
// true; the part of the store that returned others counts as unreachable. Errors are those of
// run.
func (s *Store) numbers(ctx context.Context, of *script, keys []string, credible func([]int64) bool, args ...any) ([]int64, error) {
	nonce := mathrand.Int64N(1 << 52) // a number of Lua has 53 bits
	reply, err := s.run(ctx, of, keys, append([]any{nonce}, args...)...).Int64Slice()
	if err != nil {
		return nil, err
	}
	said := reply[:len(reply)-1] // of.shape has the length
	if reply[len(said)] != nonce || !credible(said) {
		s.markAway(nil, keys, fmt.Errorf("%w: %v to a script", errNonsense, reply))
		return nil, ErrAway
	}
	return said, nil
}

// run runs a script on keys of one node and returns its reply. Its error is ErrAway, or that
// of ctx, when the store did not answer, or when the script cannot have returned the reply.
func (s *Store) run(ctx context.Context, of *script, keys []string, args ...any) (reply *redis.Cmd) {
	if !s.do(ctx, of, keys, func(ctx context.Context) (err error) {
		reply, err = s.call(ctx, of, keys, args...)
		return err
	}) {
		reply = redis.NewCmd(ctx)
		reply.SetErr(cmp.Or(ctx.Err(), ErrAway))
	}
	return reply
}

// call runs a script on the node of keys: as a hash, and as its text where the node does not
// know it. The error is also that of a reply that the script cannot have returned.
func (s *Store) call(ctx context.Context, of *script, keys []string, args ...any) (*redis.Cmd, error) {
	reply := s.send(ctx, "evalsha", of.hash, keys, args)
	if redis.HasErrorPrefix(reply.Err(), "NOSCRIPT") {
		reply = s.send(ctx, "eval", of.text, keys, args)
	}
	return reply, ofKeys(of.check(reply), keys)
}

// send sends a script, as a text or as its hash.
func (s *Store) send(ctx context.Context, command, script string, keys []string, args []any) *redis.Cmd {
	all := []any{command, script, len(keys)}
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	_ = s.client.Process(ctx, once{cmd}) // cmd has the error too
	return cmd
}

// once is a command that the library does not retry, except for redirections of a Cluster: a
// script without an answer may have run.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }
