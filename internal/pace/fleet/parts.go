package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// part is the part of the store on one server: all of it, or in a Cluster the keys of one
// master. Each part is reachable or not separately: since one server has a key, all heeds see
// the same. It is guarded by the mutex of the Store.
type part struct {
	node string // address of the master in a Cluster; empty: the whole store

	away    bool
	since   time.Time        // when it became unreachable
	why     string           // it is unreachable
	back    time.Time        // when it was last reachable again; zero: never
	every   time.Duration    // until the next probe; 0: probeEvery
	kept    map[*script]bool // scripts that it has answered fast since then
	spent   time.Duration    // time of slow answers, as of spentAt
	spentAt time.Time
}

const (
	// slotCount is the number of slots of a Cluster. Each key is in one slot, and each slot on
	// one master (Redis Cluster specification, "Key distribution model").
	slotCount = 16384
	// movedTime is how long the move of a slot is remembered.
	movedTime = time.Minute
	// maxNodes is the maximum number of masters of a Cluster that are distinguished.
	maxNodes = 1000
)

// parts are the parts of a store. The zero value is a store on one server.
type parts struct {
	whole  part              // also for keys of a Cluster whose master is not known
	owners []*part           // by slot, nil where none is known; nil: no Cluster, or not read yet
	nodes  map[string]*part  // by the ID of the node
	moved  map[int]time.Time // when slots came to their master, for movedTime
}

// back returns when the part of a key was last reachable again, or took the key over; zero:
// never.
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

// all returns all parts.
func (p *parts) all() []*part {
	return slices.AppendSeq([]*part{&p.whole}, maps.Values(p.nodes))
}

// learn records which master has which slots. A slot that came to another master, or was
// unreachable before, counts as back from now on: other heeds may not have noticed yet, and
// may have started requests that the master does not know.
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

// node returns the part of a master, and creates it if there is none.
func (p *parts) node(n *redis.ClusterNode) *part {
	id := cmp.Or(n.ID, n.Addr)
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

// besides returns the key with a suffix, which is in the same slot as key.
func besides(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + suffix
	}
	return keyPrefix + "{" + key + "}" + suffix
}

// slotReader is a hook of the client of a node: it reports the slots that the library reads.
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
