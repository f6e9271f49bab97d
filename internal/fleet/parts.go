package fleet

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// part is the part of the store that one server has: all of it, or in a Cluster the keys
// of one master. Each is reachable or not by itself: which heeds can use a key is then
// the same for all heeds, since one server answers for it. It is guarded by the mutex of
// the Store.
type part struct {
	node string // address of the master, in a Cluster; empty: the whole store

	away    bool
	since   time.Time        // away
	why     string           // it is away
	back    time.Time        // when it was last found back; zero: never
	every   time.Duration    // until the next probe; 0: probeEvery
	kept    map[*script]bool // what it has answered fast since it is back
	spent   time.Duration    // that slow answers took, at spentAt
	spentAt time.Time
}

const (
	// slotCount is the number of slots of a Cluster. A key is in one, and a slot is on
	// one master (Redis Cluster specification, "Key distribution model").
	slotCount = 16384
	// movedTime is for how long it is known that a slot was moved.
	movedTime = time.Minute
	// maxNodes bounds the masters of a Cluster that are distinguished.
	maxNodes = 1000
)

// parts are those of a store. The zero value is a store of one server.
type parts struct {
	whole  part              // also the keys of a Cluster of which no master is known
	owners []*part           // by slot, nil where none is known; nil: no Cluster, or not read yet
	nodes  map[string]*part  // by the ID of the node
	moved  map[int]time.Time // when slots came to their master, of those lately moved
}

// back returns when the part of a key was last found back, or took it over; zero: never.
func (p *parts) back(key string) time.Time {
	back := p.of(key).back
	if moved := p.moved[slotOf(key)]; moved.After(back) {
		return moved
	}
	return back
}

// of returns the part of a key.
func (p *parts) of(key string) *part {
	if p.owners != nil {
		if owner := p.owners[slotOf(key)]; owner != nil {
			return owner
		}
	}
	return &p.whole
}

// all calls each with all parts.
func (p *parts) all(each func(*part)) {
	each(&p.whole)
	for _, n := range p.nodes {
		each(n)
	}
}

// learn notes which master has which slots. One that came to another master, or could not
// be reached before, counts as back from now on: other heeds may not have noticed yet, and
// start what the master does not know of.
func (p *parts) learn(slots []redis.ClusterSlot, now time.Time) {
	if p.owners == nil {
		p.owners, p.nodes, p.moved = make([]*part, slotCount), map[string]*part{}, map[int]time.Time{}
	}
	maps.DeleteFunc(p.moved, func(_ int, at time.Time) bool { return now.Sub(at) > movedTime })
	changed := false
	for _, s := range slots {
		if len(s.Nodes) == 0 || s.Start < 0 || s.End >= slotCount {
			continue
		}
		owner := p.node(&s.Nodes[0])
		for i := s.Start; i <= s.End; i++ {
			was := p.owners[i]
			if was == owner {
				continue
			}
			if was != nil || p.whole.away {
				p.moved[i] = now
			}
			p.owners[i], changed = owner, true
		}
	}
	if changed {
		maps.DeleteFunc(p.nodes, func(_ string, n *part) bool { return !n.away && !slices.Contains(p.owners, n) })
	}
}

// node returns the part of a master, which it creates if there is none.
func (p *parts) node(n *redis.ClusterNode) *part {
	id := n.ID
	if id == "" {
		id = n.Addr
	}
	if p.nodes[id] == nil {
		if len(p.nodes) >= maxNodes {
			return &p.whole
		}
		p.nodes[id] = &part{}
	}
	p.nodes[id].node = n.Addr
	return p.nodes[id]
}

// slotOf returns the slot of a key: CRC-16/XMODEM of it, or of what is between the first
// braces in it.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % slotCount)
}

// besides returns a key with a suffix in the same slot as key.
func besides(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + suffix
	}
	return keyPrefix + "{" + key + "}" + suffix
}

// slotReader is a hook of the client of a node: it learns what the library reads of
// which master has which slots.
type slotReader struct{ store *Store }

// DialHook implements redis.Hook.
func (r slotReader) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (r slotReader) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook. The library reads the slots in goroutines, where a
// panic would end the process.
func (r slotReader) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		slots, ok := cmd.(*redis.ClusterSlotsCmd)
		if !ok {
			return next(ctx, cmd)
		}
		err := guard(func() error { return next(ctx, cmd) })
		if err == nil {
			r.store.mu.Lock()
			defer r.store.mu.Unlock()
			r.store.parts.learn(slots.Val(), time.Now())
		}
		return err
	}
}
