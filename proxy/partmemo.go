package proxy

import (
	"net/url"
	"strings"
	"sync"
	"time"

	"heed/internal/audit"
	"heed/internal/terms"
	"heed/rules"
)

// Bounds of pageMemo.
const (
	maxPages   = 4096
	pageMemory = time.Hour
	maxPageURL = 2048 // octets; longer ones are not remembered
)

// pageMemo remembers which pages clients with parts = "allow" were let read, and
// which of their parts were, since those have parts too. The zero value is ready.
type pageMemo struct {
	mu   sync.Mutex
	seen map[pageOf]time.Time
}

type pageOf struct{ client, url string }

// saw notes that a client was let read what is at address, and its origin: of
// another site's pages browsers name the origin alone.
func (m *pageMemo) saw(client, address string, now time.Time) {
	if len(address) > maxPageURL {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil || len(m.seen) >= maxPages {
		m.seen = make(map[pageOf]time.Time) // starting over costs a picture
	}
	m.seen[pageOf{client, strings.Clone(address)}] = now
	if u, err := url.Parse(address); err == nil {
		m.seen[pageOf{client, "//" + u.Host}] = now
	}
}

// read reports whether the client was let read the page lately. from is the
// host of the part: a page of another may be named by its origin alone.
func (m *pageMemo) read(client, page, from string, now time.Time) bool {
	u, err := url.Parse(page)
	if err != nil || page == "" {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.seen[pageOf{client, page}]
	if !ok && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Host != from {
		at, ok = m.seen[pageOf{client, "//" + u.Host}]
	}
	return ok && now.Sub(at) < pageMemory
}

// part lets a part of a page through that its client may read, where the terms
// say so and the site's rules alone are in the way.
func (x *exchange) part(o terms.Opinion) terms.Opinion {
	c, e := x.terms.Client, &x.entry
	if c == nil || !c.AllowParts {
		return o
	}
	who := c.Name + " " + x.who.Addr.String()
	if e.Part != "" && x.terms.MayBePart(o) && x.proxy.pages.read(who, e.Page, e.Host, e.Time) {
		o = x.terms.AsPart(o, e.Part)
	}
	if o.Verdict == rules.Allow && e.Judged == audit.ByPath {
		x.proxy.pages.saw(who, e.URL(), e.Time)
	}
	return o
}
