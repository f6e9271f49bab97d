package proxy

import (
	"net/url"
	"time"

	"heed/internal/base/memo"
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
	if u, err := url.Parse(rules.EscapePercents(address)); err == nil {
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

// partOf returns the kind of the part of a page that q requests, if its client was let read
// the page lately; else it is empty. The client of q has AllowSubresources.
func (m *pageVisits) partOf(q *request, now time.Time) string {
	if q.part == "" || !m.read(visitor(q), q.page, q.host, now) {
		return ""
	}
	return q.part
}

// visitor returns the client of q as pageVisits knows it.
func visitor(q *request) string { return q.effective.Client.Name + " " + q.client.Addr.String() }
