package usage

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"heed/internal/base/memo"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/page"
	"heed/rules"
)

// Memory is what was read of pages, for the answers that confirm them with a 304. The zero value
// is ready; it is safe for concurrent use.
type Memory struct {
	pages memo.Map[pageKey, version]
}

// version is what a version of a page states about its use.
type version struct {
	status int
	header http.Header
	head   *page.Head // nil: it was not looked at
	at     time.Time
}

// pageKey identifies a version of a page, as far as it was read, of the sites that are reached
// in one way.
type pageKey struct {
	url, etag, names string
	way              Documents
}

// at reports whether a page is one of an origin.
func (k *pageKey) at(o rules.Origin) bool {
	rest, ok := strings.CutPrefix(k.url, o.String())
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '?')
}

// PageInfo describes a page that was read, for display.
type PageInfo struct {
	URL   string // its path and query may be those of a user
	At    time.Time
	Bytes int
}

// List returns the pages of an origin that were read; of all origins for the zero one. They are
// in no order.
func (m *Memory) List(o rules.Origin) (all []PageInfo) {
	m.pages.Each(func(k pageKey, v version) bool {
		if o == (rules.Origin{}) || k.at(o) {
			all = append(all, PageInfo{k.url, v.at, v.size() + len(k.url)})
		}
		return true
	})
	return all
}

// Purge forgets the pages of an origin and reports whether there were any; of all origins for
// the zero one.
func (m *Memory) Purge(o rules.Origin) (had bool) {
	return m.pages.Forget(func(k pageKey, _ version) bool { return o == (rules.Origin{}) || k.at(o) }) > 0
}

// size returns how many octets v holds.
func (v *version) size() (n int) {
	for _, lines := range v.header {
		for _, line := range lines {
			n += len(line)
		}
	}
	for i := range v.head.Elements {
		n += len(v.head.Elements[i].Content) + len(v.head.Elements[i].Text)
	}
	return n
}

// key returns the key of the version with an entity tag; ok is false for one that is not
// remembered.
func (q *Request) key(etag string) (key pageKey, ok bool) {
	key = pageKey{q.URL, etag, strings.Join(q.names(), " "), q.Documents}
	return key, etag != "" && len(key.url)+len(key.etag)+len(key.names) <= maxKey
}

// remember keeps a version for the answers that confirm it with a 304. It is kept as it was
// read: what it means depends on the request and on the time.
func (j *Judge) remember(q *Request, v version) {
	key, ok := q.key(v.header.Get("ETag"))
	if !ok {
		return
	}
	v.header, v.at = signal.Statements(v.header), q.Now
	if v.size() <= maxHeld {
		key.url, key.etag = strings.Clone(key.url), strings.Clone(key.etag) // they may be parts of whole heads
		cmp.Or(q.Read, &j.own).pages.Put(key, v, maxPages)
	}
}

// confirmed returns the version that an answer with status 304 and that header confirms.
func (j *Judge) confirmed(q *Request, r *http.Request, h http.Header) (version, bool) {
	key, ok := q.key(cmp.Or(h.Get("ETag"), r.Header.Get("If-None-Match")))
	if !ok {
		return version{}, false
	}
	return cmp.Or(q.Read, &j.own).pages.Get(key)
}
