package proxy

import (
	"net/url"
	"time"

	"heed/internal/audit"
	"heed/internal/memo"
	"heed/internal/pageurl"
	"heed/rules"
)

// Bounds of pageVisits.
const (
	maxPages     = 4096
	pageLifetime = time.Hour
	maxPageURL   = 2048 // octets; longer ones are not remembered
)

// pageVisits remembers which pages clients with parts = "allow" were let read, and
// which of their parts were, since those have parts too. The zero value is ready.
type pageVisits struct{ seen memo.Map[pageOf, time.Time] }

type pageOf struct{ client, url string }

// saw notes that a client was let read what is at address, and its origin: of
// another site's pages browsers name the origin alone.
func (m *pageVisits) saw(client, address string, now time.Time) {
	if len(address) > maxPageURL {
		return
	}
	if u, err := url.Parse(pageurl.EscapePercents(address)); err == nil {
		m.seen.Put(pageOf{client, u.String()}, now, maxPages-1) // room for the next one too
		m.seen.Put(pageOf{client, "//" + u.Host}, now, maxPages)
	}
}

// read reports whether the client was let read the page lately. from is the
// host of the part: a page of another may be named by its origin alone.
func (m *pageVisits) read(client, page, from string, now time.Time) bool {
	u, err := url.Parse(page)
	if err != nil || page == "" {
		return false
	}
	at, ok := m.seen.Get(pageOf{client, page})
	if !ok && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Host != from {
		at, ok = m.seen.Get(pageOf{client, "//" + u.Host})
	}
	return ok && now.Sub(at) < pageLifetime
}

// allowSubresource lets a part of a page through that its client may read, where
// the site's rules alone refuse it. The client of q has AllowSubresources.
func (m *pageVisits) allowSubresource(q *request, v *verdict, now time.Time) {
	who := q.effective.Client.Name + " " + q.client.Addr.String()
	if q.part != "" && q.effective.MayBeSubresource(v.Result) && m.read(who, q.page, q.host, now) {
		v.Result = q.effective.AsSubresource(v.Result, q.part)
	}
	if v.Verdict == rules.Allow && v.judged == audit.ByPath {
		m.saw(who, q.origin.Scheme+"://"+q.host+q.target, now)
	}
}
