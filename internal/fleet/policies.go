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
	// LeaseTime is how long a lease lasts that is not renewed: by so much at most
	// the others are delayed when the heed that fetches is killed.
	LeaseTime = 3 * time.Second
	// renewEvery is how often the lease of a fetch that lasts is renewed.
	renewEvery = time.Second
	// lookEvery is how often those who wait for another heed's fetch look.
	lookEvery = 50 * time.Millisecond
	// aloneTime is for how long a failed lease is marked.
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

// Policies contains the policies that the fleet shares. A tag is an origin, a name a
// way of fetching from it; what is stored under them is a record and a snapshot, both
// opaque, and a version that changes with them. It is safe for concurrent use.
type Policies struct {
	store *Store
	space string

	mu      sync.Mutex
	changed func(tag string) // nil until Watch
	pending map[string]bool  // tags of changes to be reported
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
// that the store is unreachable; -1 that there is nothing any more: the store has lost
// what the caller has seen.
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

// Lease asks for the right to fetch for the whole fleet, whose last version the
// caller knows. When end is not nil it was given, and end must be called with
// what came of it. When wait is not zero, another heed fetches or has fetched:
// look with Newer, and if that brings nothing ask again after wait. When both
// are zero, the caller is to fetch for itself: the other heed could not get
// anything, or the store is unreachable.
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
	l := &lease{policies: p, tag: tag, name: name, token: token, known: known, over: make(chan struct{})}
	p.store.spawn(l.renew)
	return l.end, 0
}

// End gives a lease back with what came of it, which is of use for
// keep, and returns the version that this has now; 0 when it was not stored. An
// empty record is nothing that others may have.
type End = func(record, snapshot []byte, keep time.Duration) (version int64)

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
		p.store.run(p.store.ctx, renewScript, []string{key}, l.token, LeaseTime.Milliseconds())
	}
}

// end is an End.
func (l *lease) end(record, snapshot []byte, keep time.Duration) (version int64) {
	l.once.Do(func() { close(l.over) })
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

// Drop deletes what is shared of tag under all names, in the store and in all heeds.
// had reports whether there was anything.
func (p *Policies) Drop(ctx context.Context, tag string) (had bool, err error) {
	return p.store.run(ctx, dropScript, []string{p.key(tag), p.leaseKey(tag, "")},
		newVersion(), dropKept.Milliseconds(), p.channel(), p.message(tag)).Bool()
}

// Tags calls each with the tags of which something is shared, in no order, a
// tag perhaps twice, until it returns false.
func (p *Policies) Tags(ctx context.Context, each func(tag string) bool) error {
	if h := p.store.Health(); h.Away && len(h.Nodes) == 0 {
		return ErrAway
	}
	var mu sync.Mutex // nodes of a Cluster answer beside each other
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
	if cluster, ok := p.store.client.(*redis.ClusterClient); ok {
		return guard(func() error {
			return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
		})
	}
	return scan(ctx, p.store.client)
}

// newVersion returns a version that no other has.
func newVersion() int64 { return 1 + mathrand.Int64N(1<<62) }

// Braces in a tag are escaped: they would end a hash tag too early.
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

// short returns a hash that replaces a name in the store: its length is bounded, and it
// does not reveal the client.
func short(name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

// The scripts run whole on the node that has the keys: nothing comes between
// their looks and their writes. The hash of a tag has three fields for each
// name: NAME:v, the version; NAME:r, the record; NAME:s, the snapshot. Once the
// tag was dropped it has :d, which is the version of every name that has none
// since then: what heeds had before is dropped, under whatever name.

// plainProbeScript is the probe of a store that has no turns.
//
//	KEYS  a key used only for the probe
//	ARGV  milliseconds to keep it, a token, which it returns
var plainProbeScript = newScript(isText, `
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return redis.call('GET', KEYS[1])
`)

// newerScript returns version, record and snapshot, unless the version is the
// one given or there is nothing; no record when the name was dropped; version -1
// when the one given has gone.
//
//	KEYS  the hash
//	ARGV  name, version that is known
var newerScript = newScript(isEntry, `
local v = redis.call('HGET', KEYS[1], ARGV[1]..':v')
local is = v or redis.call('HGET', KEYS[1], ':d') or '0'
if is == ARGV[2] then return false end
if is == '0' then return {'-1', '', ''} end
if not v then return {is, '', ''} end
return {v, redis.call('HGET', KEYS[1], ARGV[1]..':r'), redis.call('HGET', KEYS[1], ARGV[1]..':s') or ''}
`)

// leaseScript takes the lease, and returns the result: "ours"; "look" when
// there is another version than the one given; "alone" when who had the lease
// could not help; "held" otherwise.
//
//	KEYS  the hash, the lease
//	ARGV  name, version that is known ("0": none), token, milliseconds
var leaseScript = newScript(isLease, `
local is = redis.call('HGET', KEYS[1], ARGV[1]..':v') or redis.call('HGET', KEYS[1], ':d') or '0'
if is ~= ARGV[2] then return 'look' end
if redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[4]) then return 'ours' end
if redis.call('GET', KEYS[2]) == 'alone' then return 'alone' end
return 'held'
`)

// renewScript makes the lease last, if it is still ours.
//
//	KEYS  the lease
//	ARGV  token, milliseconds
var renewScript = newScript(isFlag, `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

// endScript gives the lease back, if it is still ours, and stores what came of
// it; it returns 1 when it did. Without a record nothing is stored, and those who
// wait get "alone". What was fetched before a drop is not stored after it. A hash
// that has too many fields begins anew: names cost nothing.
//
//	KEYS  the hash, the lease
//	ARGV  name, token, version, record, snapshot, milliseconds to keep, most
//	      fields, channel, message, milliseconds of "alone", version that was
//	      known when the lease was taken
var endScript = newScript(isFlag, `
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
local v, d = redis.call('HGET', KEYS[1], ARGV[1]..':v'), redis.call('HGET', KEYS[1], ':d')
if d and (v or d) ~= ARGV[11] then
  redis.call('DEL', KEYS[2])
  return 0
end
if ARGV[4] == '' then
  redis.call('SET', KEYS[2], 'alone', 'PX', ARGV[10])
  return 0
end
if not v and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[7]) then
  redis.call('DEL', KEYS[1])
  if d then redis.call('HSET', KEYS[1], ':d', d) end
end
redis.call('HSET', KEYS[1], ARGV[1]..':v', ARGV[3], ARGV[1]..':r', ARGV[4], ARGV[1]..':s', ARGV[5])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[6]) then redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
redis.call('DEL', KEYS[2])
redis.call('PUBLISH', ARGV[8], ARGV[9])
return 1
`)

// dropScript forgets all of a tag, and leaves word of it; it returns whether
// there was anything. Who fetches for it at this moment fetched before, and may
// not store; the lease for all clients is free immediately.
//
//	KEYS  the hash, the lease of the empty name
//	ARGV  version, milliseconds to keep, channel, message
var dropScript = newScript(isFlag, `
local had = redis.call('HLEN', KEYS[1]) > redis.call('HEXISTS', KEYS[1], ':d')
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], ':d', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return had and 1 or 0
`)
