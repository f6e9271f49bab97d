package fleet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// keyPrefix is the prefix of all keys. The number is the version of the data: heeds of
// different versions in one store do not use each other's.
const keyPrefix = "heed:1:"

const (
	// LeaseTime is how long a lease is valid without renewal. When the heed that fetches is
	// killed, other heeds wait for at most so long.
	LeaseTime = 3 * time.Second
	// renewEvery is the interval at which the lease of a long fetch is renewed.
	renewEvery = time.Second
	// lookEvery is the interval at which heeds look for the result of another heed's fetch.
	lookEvery = 50 * time.Millisecond
	// aloneTime is how long a failed lease is marked.
	aloneTime = time.Second

	// MaxShared is the maximum size of an entry, in octets. Each heed fetches larger ones for
	// itself.
	MaxShared = 1 << 20
	// dropKept is how long the drop of a policy is recorded for heeds that were not connected:
	// as long as any may use the policy without a request.
	dropKept = 24 * time.Hour
	// maxFields is the maximum number of fields in the hash of one tag: three for each name.
	maxFields = 3 * 64
)

// Policies are the policies that the fleet shares. A tag is an origin, a name one variant of
// its robots.txt. Stored under them are a record and a snapshot, both opaque, and a version
// that changes with them. It is safe for concurrent use.
type Policies struct {
	store   *Store
	space   string
	changed atomic.Pointer[func(tag string, dropped bool)] // nil until Watch

	mu         sync.Mutex
	pending    map[string]bool // tags of changes that are not reported yet
	delivering bool            // deliver runs
}

// Policies returns the policies of the heeds that use the same space, which reach sites over
// the same route: the same Policies for the same space.
func (s *Store) Policies(space string) *Policies {
	sum := sha256.Sum256([]byte(space))
	name := hex.EncodeToString(sum[:6])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spaces == nil {
		s.spaces = map[string]*Policies{}
	}
	if s.spaces[name] == nil {
		s.spaces[name] = &Policies{store: s, space: name, pending: map[string]bool{}}
	}
	return s.spaces[name]
}

// Newer returns the entry under tag and name when its version is not known, the last one that
// the caller has seen (0: none). An empty record means that all of the tag was dropped.
// Version 0 means that there is no other entry, or that the store is unreachable; -1 that the
// store has lost the known entry.
func (p *Policies) Newer(ctx context.Context, tag, name string, known int64) (version int64, record, snapshot []byte) {
	reply, err := p.store.run(ctx, newerScript, []string{p.key(tag)}, short(name), known).StringSlice()
	if err != nil || len(reply) != 3 {
		return 0, nil, nil
	}
	if version, err = strconv.ParseInt(reply[0], 10, 64); err != nil {
		return 0, nil, nil
	}
	return version, []byte(reply[1]), []byte(reply[2])
}

// Lease requests the right to fetch for the whole fleet; known is the last version that the
// caller has seen. When end is not nil the right is granted, and end must be called with the
// result. When wait is not zero, another heed fetches or has fetched: call Newer, and if that
// returns nothing Lease again after wait. When both are zero, the caller fetches for itself:
// the other heed got nothing, or the store is unreachable.
func (p *Policies) Lease(ctx context.Context, tag, name string, known int64) (end End, wait time.Duration) {
	token := rand.Text()
	said, err := p.store.run(ctx, leaseScript, []string{p.key(tag), p.leaseKey(tag, name)},
		short(name), known, token, LeaseTime.Milliseconds()).Text()
	switch {
	case err != nil || said == "alone":
		return nil, 0
	case said == "look":
		return nil, time.Millisecond
	case said != "ours":
		return nil, lookEvery
	}
	l := &lease{policies: p, tag: tag, name: name, token: token, known: known}
	l.ctx, l.over = context.WithCancel(p.store.ctx)
	p.store.spawn(l.renew)
	return l.end, 0
}

// End ends a lease. It stores the result for keep and returns its version, 0 when it was not
// stored. An empty record means that the other heeds get none.
type End = func(record, snapshot []byte, keep time.Duration) (version int64)

// lease is a granted right to fetch.
type lease struct {
	policies  *Policies
	tag, name string
	token     string
	known     int64           // the version that the holder has seen
	ctx       context.Context // ends with the lease
	over      context.CancelFunc
}

// renew extends the lease until end.
func (l *lease) renew() {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	p, key := l.policies, l.policies.leaseKey(l.tag, l.name)
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		p.store.run(p.store.ctx, renewScript, []string{key}, l.token, LeaseTime.Milliseconds())
	}
}

// end implements End.
func (l *lease) end(record, snapshot []byte, keep time.Duration) (version int64) {
	l.over()
	p := l.policies
	if len(record)+len(snapshot) > MaxShared {
		record = nil
	}
	version = newVersion()
	stored, _ := p.store.run(p.store.ctx, endScript, []string{p.key(l.tag), p.leaseKey(l.tag, l.name)},
		short(l.name), l.token, version, record, snapshot, keep.Milliseconds(), maxFields,
		p.channel(), p.message(l.tag), aloneTime.Milliseconds(), l.known).Int64() // 0 with an error
	return version * stored
}

// ErrAway is the error of calls while the store is unreachable.
var ErrAway = errors.New("the fleet's store is away")

// Drop deletes the entries of tag under all names, in the store and in all heeds. had reports
// whether there were any.
func (p *Policies) Drop(ctx context.Context, tag string) (had bool, err error) {
	return p.store.run(ctx, dropScript, []string{p.key(tag), p.leaseKey(tag, "")},
		newVersion(), dropKept.Milliseconds(), p.channel(), p.message(tag), droppedMark).Bool()
}

// Tags calls each with the tags that have entries, in no order and perhaps twice, until it
// returns false. Its error is ErrAway, or that of ctx, when not all could be read.
func (p *Policies) Tags(ctx context.Context, each func(tag string) bool) error {
	if h := p.store.Health(); h.Away && len(h.Nodes) == 0 {
		return ErrAway
	}
	var mu sync.Mutex // nodes of a Cluster answer concurrently
	more := true
	one := func(key string) bool {
		mu.Lock()
		defer mu.Unlock()
		more = more && each(p.tagOf(key))
		return more
	}
	scan := func(ctx context.Context, node redis.Cmdable) error {
		return guard(func() error { // the library calls it in its own goroutines too
			keys := node.Scan(ctx, 0, keyPrefix+p.space+":{*}:policy", 1000).Iterator()
			for keys.Next(ctx) {
				if !one(keys.Val()) {
					return nil
				}
			}
			return keys.Err()
		})
	}
	var err error
	if cluster, ok := p.store.client.(*redis.ClusterClient); ok {
		err = guard(func() error {
			return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
		})
	} else {
		err = scan(ctx, p.store.client)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return err
}

// newVersion returns a random version.
func newVersion() int64 { return 1 + mathrand.Int64N(1<<62) }

// Braces in a tag are escaped, since they would delimit the hash tag.
var (
	tagWriter = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")
	tagReader = strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}")
)

func (p *Policies) key(tag string) string {
	return keyPrefix + p.space + ":{" + tagWriter.Replace(tag) + "}:policy"
}

func (p *Policies) tagOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	return tagReader.Replace(strings.TrimSuffix(rest, "}:policy"))
}

func (p *Policies) leaseKey(tag, name string) string {
	return keyPrefix + p.space + ":{" + tagWriter.Replace(tag) + "}:lease:" + short(name)
}

// readsKey returns the command that reads a key of heed: a lease is a string, all others are
// hashes.
func readsKey(key string) string {
	if strings.Contains(key, "}:lease:") {
		return "GET"
	}
	return "HLEN"
}

// short returns a hash that stands for a name in the store, empty for an empty one: its length
// is bounded, and it does not reveal the client.
func short(name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}
