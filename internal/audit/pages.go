package audit

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heed/internal/memo"
	"heed/rules"
)

// maxPages bounds the pages that are counted by their address, and maxPage the bytes of one.
const (
	maxPages = 1000
	maxPage  = 200
)

// pageIdle is the time after its last subresource when a page counts as loaded.
const pageIdle = 2 * time.Second

// PageCount counts the requests that a browser made for the subresources of one
// page. Page is the address that the browser sent, cut to 200 bytes; empty when
// it sent none, and Other for pages beyond a bound.
type PageCount struct {
	Page        string `json:"page"`
	Parts       uint64 `json:"parts"`
	Refused     uint64 `json:"refused"`         // by heed
	SiteRefused uint64 `json:"refused_by_site"` // allowed by heed, and refused by the site

	last time.Time // when a subresource was last answered
}

// Pages counts requests for subresources by page. The zero value is empty.
type Pages struct {
	counts memo.Bounded[string, PageCount]
}

// Add counts e, a request for a subresource that ended at a time.
func (p *Pages) Add(e *Entry, at time.Time) {
	c := p.counts.At(e.Page[:min(len(e.Page), maxPage)], Other, maxPages, strings.Clone)
	c.Parts++
	if e.Decision.Verdict == rules.Refuse {
		c.Refused++
	}
	if e.SiteRefused() {
		c.SiteRefused++
	}
	c.last = at
}

// Refused returns the pages with refused subresources, most first.
func (p *Pages) Refused() []PageCount {
	list := make([]PageCount, 0, len(p.counts))
	for address, c := range p.counts {
		if c.Refused+c.SiteRefused > 0 {
			list = append(list, PageCount{Page: address, Parts: c.Parts, Refused: c.Refused, SiteRefused: c.SiteRefused})
		}
	}
	slices.SortFunc(list, func(a, b PageCount) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.SiteRefused, a.SiteRefused), cmp.Compare(a.Page, b.Page))
	})
	return list
}

// logPagesLocked removes the pages that are loaded at now, and logs a line for
// each with refused subresources. The lines have the present time: at the end of heed now
// is a time at which every page is loaded.
func (l *Log) logPagesLocked(now time.Time) {
	done := Pages{memo.Bounded[string, PageCount]{}}
	for address, c := range l.pages.counts {
		if now.Sub(c.last) >= pageIdle {
			done.counts[address] = c
			delete(l.pages.counts, address)
		}
	}
	for _, c := range done.Refused() {
		l.log(time.Now(), slog.LevelInfo, "page", slog.String("page", c.Page), slog.Uint64("parts", c.Parts),
			slog.Uint64("refused", c.Refused), slog.Uint64("refused_by_site", c.SiteRefused))
	}
}
