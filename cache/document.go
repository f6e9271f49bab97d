package cache

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"heed/internal/judge/signal/wall"
	"heed/rules"
)

// ErrTooLong is the error of a document that is longer than the caller's limit.
var ErrTooLong = publicErrorf(nil, "is too long")

// document implements Cache.Document.
func (f *fetcher) document(ctx context.Context, by string, u *url.URL, most int, permit func(context.Context, *url.URL) error) (status int, body []byte, err error) {
	o, err := rules.OriginOf(u)
	if err != nil {
		return 0, nil, err
	}
	at := *u
	at.Host, at.User, at.Fragment, at.RawFragment = o.Authority(), nil, "", ""
	ctx, end := context.WithCancelCause(ctx)
	j := &job{fetcher: f, site: siteOf(o.Host), by: by, accept: "*/*", most: most, permit: permit, end: end}
	defer j.leave()
	if err := j.enter(ctx, &j.fetches); err != nil {
		return 0, nil, fmt.Errorf("fetching %s: %w", &at, err)
	}
	if by == "" {
		j.by = o.Host
	}
	a := answer{origin: o}
	j.carrier = j.PerFetch()
	switch j.follow(ctx, &a, &at, validators{}); {
	case a.err != nil:
		return 0, nil, a.err
	case a.wall == wall.Challenge:
		return a.status, nil, fmt.Errorf("fetching %s: %w", &at, a.challenged())
	case len(a.body) > 0 && strings.HasPrefix(a.note, cutNote):
		return a.status, nil, fmt.Errorf("fetching %s: %w", &at, ErrTooLong)
	case a.status != http.StatusOK && a.status != http.StatusNonAuthoritativeInfo:
		return a.status, nil, nil
	}
	return a.status, a.body, nil
}
