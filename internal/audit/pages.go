package audit

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heed/rules"
)

// maxPages bounds the pages that are counted by their address.
const maxPages = 1000

// pageRest is how long after its last part a page counts as loaded.
const pageRest = 2 * time.Second

// PageCount is what became of the parts of one page: what a browser asked for
// to show it. Page is the address that the browser named, cut to 200 bytes;
// empty where it named none, Other for pages beyond a bound.
type PageCount struct {
	Page        string `json:"page"`
	Parts       uint64 `json:"parts"`
	Refused     uint64 `json:"refused"`         // by heed
	SiteRefused uint64 `json:"refused_by_site"` // let through, and refused by the site itself
}

// pages counts the parts of pages.
type pages map[string]*page

type page struct {
	PageCount
	last time.Time // when a part was asked for last, or answered
}

// at returns the counts of e's page, made when there are none; full when
// there is no room.
func (p *pages) at(e *Entry, full string) *page {
	key := clip(e.Page)
	if c := (*p)[key]; c != nil {
		return c
	}
	if *p == nil {
		*p = pages{}
	}
	if len(*p) >= maxPages {
		key = full
	}
	c := (*p)[key]
	if c == nil {
		key = strings.Clone(key)
		c = &page{PageCount: PageCount{Page: key}}
		(*p)[key] = c
	}
	return c
}

func (c *page) decided(e *Entry) {
	c.Parts++
	if e.Decision.Verdict == rules.Refuse {
		c.Refused++
	}
}

// refused returns the pages of which a part was refused, the most first.
func (p pages) refused() []PageCount {
	list := make([]PageCount, 0, len(p))
	for _, c := range p {
		if c.Refused+c.SiteRefused > 0 {
			list = append(list, c.PageCount)
		}
	}
	slices.SortFunc(list, func(a, b PageCount) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.SiteRefused, a.SiteRefused), cmp.Compare(a.Page, b.Page))
	})
	return list
}

// partLocked counts a part that has been answered.
func (l *Log) partLocked(e *Entry, now time.Time) {
	c := l.pages.at(e, Other)
	c.decided(e)
	if e.SiteRefused() {
		c.SiteRefused++
	}
	c.last = now
}

// pagesLocked logs a line for each page that has come to rest at now and of
// which a part was refused, and forgets it.
func (l *Log) pagesLocked(now time.Time) {
	var done pages
	for key, c := range l.pages {
		if now.Sub(c.last) >= pageRest {
			if done == nil {
				done = pages{}
			}
			done[key] = c
			delete(l.pages, key)
		}
	}
	for _, c := range done.refused() {
		r := slog.NewRecord(now, slog.LevelInfo, "page", 0)
		r.AddAttrs(slog.String("page", c.Page), slog.Uint64("parts", c.Parts),
			slog.Uint64("refused", c.Refused), slog.Uint64("refused_by_site", c.SiteRefused))
		if !l.handler.Enabled(context.Background(), r.Level) {
			return
		}
		if err := l.handler.Handle(context.Background(), r); err != nil {
			l.failed.Store(&err)
		}
	}
}
