package cache

import (
	"net/http"
	"strings"
	"time"

	"heed/rules"
)

// Keeper has what is known of origins outlive the process. It deals in keys
// and bytes; what they mean is said in record.go. Its methods are called from
// many goroutines, and never for a request that memory can answer.
type Keeper interface {
	// Load returns what was saved last under key; ok is false when there is
	// nothing. The caller owns both slices. It is called while clients wait.
	Load(key string) (record, snapshot []byte, ok bool)
	// Save keeps record under key, in place of what was there. A nil snapshot
	// leaves the one kept before as it is. It does not wait for a disk or a
	// network, owns both slices from now on, and reports whether Load can be
	// expected to find them.
	Save(key string, record, snapshot []byte) bool
	// Drop forgets key. When it ends in a newline, all keys that are alike up to
	// their last newline are forgotten with it. It does not wait for a disk or a
	// network either, and reports whether Load will not find them any more.
	Drop(key string) bool
}

// load returns what is kept for o under as, and puts it into p; nil when
// nothing is.
func (c *Cache) load(p *place, o rules.Origin, as string) (e *entry) {
	if c.keeper == nil {
		return nil
	}
	key := keeperKey(o, as)
	defer func() {
		if recover() != nil { // a hostile file must not end heed at every start
			c.keeper.Drop(key)
			e = nil
		}
	}()
	text, snapshot, ok := c.keeper.Load(key)
	if !ok {
		return nil
	}
	e, err := readRecord(o, c.profile, text, snapshot)
	if err != nil {
		c.keeper.Drop(key)
		return nil
	}
	p.set(as, e)
	p.kept.Store(true)
	p.reused.Store(true) // it was asked for before
	return e
}

// save keeps e, which a led to, for o under as. What came of our own side of
// the network is not kept: the next start may find another one. Neither is what
// the site forbids to store (RFC 9111 §5.2.2.5).
func (c *Cache) save(p *place, o rules.Origin, as string, a *answer, e *entry) {
	if c.keeper == nil {
		return
	}
	key, kept := keeperKey(o, as), false
	switch {
	case e.noStore:
		c.keeper.Drop(key)
	case e.failures > 0 && a.noConnection:
	default:
		kept = c.keeper.Save(key, encodeRecord(e, c.profile), encodeSnapshot(snapshotOf(a, e)))
	}
	p.kept.Store(kept)
}

// keeperKey is what a Keeper knows the entry of o under as by. as has no
// newline in it: a User-Agent cannot have one. So dropping what is kept for all
// clients drops what is kept for some of them.
func keeperKey(o rules.Origin, as string) string {
	return string(append(append(appendKey(nil, o), '\n'), as...))
}

// answered returns the Snapshot of a, received at now; nil when there was no
// answer of the site. It holds the file when file is set.
func (a *answer) answered(now time.Time, file bool) *rules.Snapshot {
	if a.status == 0 {
		return nil
	}
	s := &rules.Snapshot{
		Origin: a.origin, AskedAs: a.as, Chain: a.hops, Status: a.status,
		FetchedAt: now, SHA256: rules.DigestOf(nil),
	}
	if file {
		s.Pack(a.body)
	}
	for _, name := range snapshotFields {
		if values := a.header.Values(name); len(values) > 0 {
			if s.Header == nil {
				s.Header = map[string][]string{}
			}
			s.Header[name] = bounded(values)
		}
	}
	return s
}

// snapshotOf returns what a brought, for others to read; nil when e rests on
// what was there before, or on no answer.
func snapshotOf(a *answer, e *entry) *rules.Snapshot {
	if e.failures > 0 || a.status == http.StatusNotModified {
		return nil
	}
	return e.policy.Source().Snapshot
}

// snapshotFields are the fields of an answer that say what it is and for how
// long it holds.
var snapshotFields = []string{
	"Age", "Cache-Control", "Content-Encoding", "Content-Language", "Content-Type", "Date", "Etag",
	"Expires", "Last-Modified", "Retry-After", "Server", "Vary",
}

// maxFieldKept is how much of one field a Snapshot has, in bytes.
const maxFieldKept = 1024

// bounded returns copies of values as far as they fit: a value may be a piece of
// a whole header.
func bounded(values []string) []string {
	var kept []string
	room := maxFieldKept
	for _, v := range values {
		if room -= len(v); room < 0 {
			break
		}
		kept = append(kept, strings.Clone(v))
	}
	return kept
}
