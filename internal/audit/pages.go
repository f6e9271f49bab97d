package audit

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heed/rules"
)

// maxPages bounds the pages that are counted by their address.
const maxPages = 1000

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
}

// pages counts requests for subresources by page.
type pages struct{ boundedMap[string, page] }

type page struct {
	PageCount
	last time.Time // when a subresource was last requested or answered
}

// of returns the counts of e's page.
func (p *pages) of(e *Entry) *page {
	return p.at(clip(e.Page), Other, maxPages, strings.Clone)
}

func (c *page) decided(e *Entry) {
	c.Parts++
	if e.Decision.Verdict == rules.Refuse {
		c.Refused++
	}
}

// refused returns the pages with refused subresources, most first.
func (p pages) refused() []PageCount {
	list := make([]PageCount, 0, len(p.boundedMap))
	for address, c := range p.boundedMap {
		if c.Refused+c.SiteRefused > 0 {
			c.Page = address
			list = append(list, c.PageCount)
		}
	}
	slices.SortFunc(list, func(a, b PageCount) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.SiteRefused, a.SiteRefused), cmp.Compare(a.Page, b.Page))
	})
	return list
}

// countPageLocked counts a subresource whose exchange has ended.
func (l *Log) countPageLocked(e *Entry, now time.Time) {
	c := l.pages.of(e)
	c.decided(e)
	if e.SiteRefused() {
		c.SiteRefused++
	}
	c.last = now
}

// logPagesLocked removes the pages that are loaded at now, and logs a line for
// each with refused subresources. The lines have the present time: at the end of heed now
// is a time at which every page is loaded.
func (l *Log) logPagesLocked(now time.Time) {
	done := pages{boundedMap[string, page]{}}
	for address, c := range l.pages.boundedMap {
		if now.Sub(c.last) >= pageIdle {
			done.boundedMap[address] = c
			delete(l.pages.boundedMap, address)
		}
	}
	for _, c := range done.refused() {
		l.log(time.Now(), slog.LevelInfo, "page", slog.String("page", c.Page), slog.Uint64("parts", c.Parts),
			slog.Uint64("refused", c.Refused), slog.Uint64("refused_by_site", c.SiteRefused))
	}
}
