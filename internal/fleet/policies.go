package fleet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// keyPrefix begins all keys. The number is the version of what they hold: heeds
// of different versions in one store do not see each other's.
const keyPrefix = "heed:1:"

const (
	// LeaseTime is how long a lease lasts that nobody renews: by so much at most
	// the others are delayed when the heed that fetches is killed.
	LeaseTime = 3 * time.Second
	// renewEvery is how often the lease of a fetch that lasts is renewed.
	renewEvery = time.Second
	// lookEvery is how often those who wait for another heed's fetch look.
	lookEvery = 50 * time.Millisecond
	// aloneTime is for how long those who waited in vain are told so.
	aloneTime = time.Second

	// MaxShared is how large what is shared may be, in bytes. Every heed fetches
	// larger ones for itself.
	MaxShared = 1 << 20
	// dropKept is for how long word of a dropped policy is kept for heeds that
	// were away: as long as any of them may use it without asking.
	dropKept = 24 * time.Hour
	// maxFields bounds the hash of one tag: three for each name.
	maxFields = 3 * 64
)

// Policies is what the fleet knows of origins. A tag is an origin, a name a way
// of asking it; what is stored under them is a record and a snapshot, both
// opaque, and a version that changes with them. It is safe for concurrent use.
type Policies struct {
	store *Store
	space string

	mu      sync.Mutex
	changed func(tag string) // nil until Watch
	pending map[string]bool  // tags of changes to be told
	wake    chan struct{}    // has room for one
}

// Policies returns what is shared among the heeds that give the same space:
// those that reach sites in the same way. Of one space there is one Policies.
func (s *Store) Policies(space string) *Policies {
	sum := sha256.Sum256([]byte(space))
	name := hex.EncodeToString(sum[:6])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spaces == nil {
		s.spaces = map[string]*Policies{}
	}
	if s.spaces[name] == nil {
		s.spaces[name] = &Policies{store: s, space: name, pending: map[string]bool{}, wake: make(chan struct{}, 1)}
	}
	return s.spaces[name]
}

// Newer returns what is shared under tag and name when its version is not
// known, the one that the caller has seen last (0: none). An empty record says
// that the policy was dropped, with all of its tag. Version 0 says that there is nothing else, or
// that the store is away; -1 that there is nothing any more: the store has lost
// what the caller has seen.
func (p *Policies) Newer(ctx context.Context, tag, name string, known int64) (version int64, record, snapshot []byte) {
	var reply []string
	key := p.key(tag)
	ok := p.store.do(ctx, key, func(ctx context.Context) (err error) {
		reply, err = newerScript.Run(ctx, p.store.client, []string{key}, short(name), known).StringSlice()
		return err
	})
	if !ok || len(reply) != 3 {
		return 0, nil, nil
	}
	version, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil {
		return 0, nil, nil
	}
	return version, []byte(reply[1]), []byte(reply[2])
}

// Lease asks for the right to fetch for the whole fleet, whose last version the
// caller knows. When end is not nil it was given, and end must be called with
// what came of it. When wait is not zero, another heed fetches or has fetched:
// look with Newer, and if that brings nothing ask again after wait. When both
// are zero, the caller is to fetch for itself: the other heed could not get
// anything, or the store is away.
func (p *Policies) Lease(ctx context.Context, tag, name string, known int64) (end End, wait time.Duration) {
	key, leaseKey, token, said := p.key(tag), p.leaseKey(tag, name), rand.Text(), ""
	ok := p.store.do(ctx, key, func(ctx context.Context) (err error) {
		said, err = leaseScript.Run(ctx, p.store.client, []string{key, leaseKey},
			short(name), known, token, LeaseTime.Milliseconds()).Text()
		return err
	})
	switch {
	case !ok || said == "alone":
		return nil, 0
	case said == "look":
		return nil, time.Millisecond
	case said != "ours":
		return nil, lookEvery
	}
	l := &lease{policies: p, tag: tag, name: name, token: token, known: known, over: make(chan struct{})}
	p.store.spawn(l.renew)
	return l.end, 0
}

// End gives a lease back with what came of it, which is of use to anybody for
// keep, and returns the version that this has now; 0 when it was not stored. An
// empty record is nothing that others may have. A nil snapshot says that the
// one of version base still holds.
type End = func(record, snapshot []byte, base int64, keep time.Duration) (version int64)

// lease is the right to fetch, while it lasts.
type lease struct {
	policies  *Policies
	tag, name string
	token     string
	known     int64 // the version that its holder has seen
	once      sync.Once
	over      chan struct{} // closed by end
}

// renew keeps the lease until end.
func (l *lease) renew() {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	p, key := l.policies, l.policies.leaseKey(l.tag, l.name)
	for {
		select {
		case <-l.over:
			return
		case <-p.store.ctx.Done():
			return
		case <-tick.C:
		}
		p.store.do(p.store.ctx, key, func(ctx context.Context) error {
			return renewScript.Run(ctx, p.store.client, []string{key}, l.token, LeaseTime.Milliseconds()).Err()
		})
	}
}

// end is an End.
func (l *lease) end(record, snapshot []byte, base int64, keep time.Duration) (version int64) {
	l.once.Do(func() { close(l.over) })
	p := l.policies
	if len(record)+len(snapshot) > MaxShared {
		record = nil
	}
	rests := ""
	if snapshot == nil {
		rests = strconv.FormatInt(base, 10)
	}
	key, stored := p.key(l.tag), int64(0)
	version = newVersion()
	p.store.do(p.store.ctx, key, func(ctx context.Context) (err error) {
		stored, err = endScript.Run(ctx, p.store.client, []string{key, p.leaseKey(l.tag, l.name)},
			short(l.name), l.token, version, record, snapshot, rests, keep.Milliseconds(), maxFields,
			p.channel(), p.message(l.tag), aloneTime.Milliseconds(), l.known).Int64()
		return err
	})
	return version * stored
}

// ErrAway is why the store was not asked, or did not answer.
var ErrAway = errors.New("the fleet's store is away")

// Drop forgets what is shared of tag under all names, and has all heeds forget
// it. had reports whether there was anything.
func (p *Policies) Drop(ctx context.Context, tag string) (had bool, err error) {
	key := p.key(tag)
	ok := p.store.do(ctx, key, func(ctx context.Context) (err error) {
		had, err = dropScript.Run(ctx, p.store.client, []string{key, p.leaseKey(tag, "")},
			newVersion(), dropKept.Milliseconds(), p.channel(), p.message(tag)).Bool()
		return err
	})
	if !ok {
		return false, ErrAway
	}
	return had, nil
}

// Tags calls each with the tags of which something is shared, in no order, a
// tag perhaps twice, until it returns false.
func (p *Policies) Tags(ctx context.Context, each func(tag string) bool) error {
	if p.store.missing() {
		return ErrAway
	}
	var mu sync.Mutex // nodes of a Cluster answer beside each other
	more := true
	scan := func(ctx context.Context, node redis.Cmdable) error {
		keys := node.Scan(ctx, 0, keyPrefix+p.space+":{*}:policy", 1000).Iterator()
		for keys.Next(ctx) {
			mu.Lock()
			more = more && each(p.tagOf(keys.Val()))
			on := more
			mu.Unlock()
			if !on {
				return nil
			}
		}
		return keys.Err()
	}
	if cluster, ok := p.store.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
	}
	return scan(ctx, p.store.client)
}

// newVersion returns a version that no other has.
func newVersion() int64 { return 1 + mathrand.Int64N(1<<62) }

// Braces of its own would end a hash tag too early.
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

// short returns what stands for a name in the store: its length is bounded, and
// it does not tell who asked.
func short(name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}
