package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"heed/cache"
	"heed/internal/check"
	"heed/internal/check/why"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/pace/fleet"
	"heed/proxy/usage"
	"heed/rules"
)

// withCache calls do with the caches of all open routes.
func (d *daemon) withCache(do func(control.CacheAPI) error) error {
	pool := d.current.Load().pool
	own, err := pool.Route(control.RouteSpec{})
	if err != nil {
		return err
	}
	k := &LocalCache{Routes: []*route.Route{own}, Pages: &d.pages}
	if d.File != nil {
		k.Flush = d.File.Flush
	}
	for _, r := range pool.All() {
		if r != own {
			k.Routes = append(k.Routes, r)
		}
	}
	return do(k)
}

// listCache streams the entries. The last line is null when the list is complete.
func (d *daemon) listCache(w http.ResponseWriter, r *http.Request) {
	err := d.withCache(func(k control.CacheAPI) error {
		w.Header().Set("Content-Type", "application/jsonl")
		lines := json.NewEncoder(w)
		if k.List(r.Context(), func(line *control.CacheEntry) error { return lines.Encode(line) }) == nil {
			_ = lines.Encode(nil) // the caller may have left
		}
		return nil
	})
	if err != nil {
		writeJSON(w, http.StatusServiceUnavailable, &control.Refusal{Message: err.Error()})
	}
}

// check judges URLs of one site like requests of the agent, with the policies and rules of this
// heed. It sends no request except a fetch of robots.txt.
func (d *daemon) check(ctx context.Context, q *control.CheckRequest) ([]*control.Judgement, error) {
	if err := q.Flags.Validate(); err != nil {
		return nil, err
	}
	settled := d.rules().ForRun(q.Flags)
	if q.Client != "" && settled.ClientNamed(q.Client) == nil {
		return nil, fmt.Errorf("the running heed has no [[client]] called %s\nSee `heed config show`", console.Quoted(q.Client))
	}
	r, err := d.current.Load().pool.Route(control.RouteSpec{Profile: q.Profile})
	if err != nil {
		return nil, err
	}
	if profile, named := rules.ParseProfile(q.Profile); named && q.Profile != "" {
		settled.Profile = profile
	}
	j := check.NewJudge(d.now, settled)
	j.Explain, j.Delays, j.Sitemaps, j.Client = q.Explain, q.Delay, q.Sitemaps, q.Client
	now := d.current.Load()
	j.Held, j.Self, j.Destinations = r.Policies.Held, d.Self, now.destinations
	j.Pacing = now.cfg.Pacing.Settings
	urls := make([]string, len(q.URLs))
	for i, url := range q.URLs {
		urls[i] = string(url)
	}
	return j.AskAll(ctx, q.Agent, urls, true, func(ctx context.Context, o rules.Origin, userAgent string) (*rules.Policy, string, string) {
		return r.Policies.Policy(ctx, o, userAgent), o.RobotsURL(), why.ByHeed
	})
}

// LocalCache implements control.CacheAPI for the routes of this process. The route of the
// settings is the first.
type LocalCache struct {
	Routes []*route.Route
	Shared *fleet.Policies // listed in place of memory; nil: memory is listed
	Flush  func() bool     // writes the file where policies are stored; nil: there is none
	Pages  *usage.Memory   // what was read of pages; nil: it is not listed
}

// List implements control.CacheAPI.
func (k *LocalCache) List(ctx context.Context, each func(*control.CacheEntry) error) error {
	if k.Shared != nil {
		return k.listShared(ctx, each)
	}
	for i, e := range k.Routes {
		for h := range e.Policies.List() {
			if err := each(entryOf(h, k.routeName(i))); err != nil {
				return err
			}
		}
	}
	for _, line := range k.documents(rules.Origin{}) {
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}

// documents returns the entries of what is kept of an origin beside its robots.txt; of all
// origins for the zero one.
func (k *LocalCache) documents(o rules.Origin) (all []*control.CacheEntry) {
	for i, e := range k.Routes {
		for _, d := range e.Documents.List(o) {
			line := &control.CacheEntry{
				Origin: d.Address, Kind: string(d.Kind), Route: k.routeName(i), State: "available", Why: "it was read",
				FetchedAt: d.At, NextAt: d.Until, WaitAt: d.Until, Bytes: d.Bytes,
			}
			switch {
			case d.Why != "":
				line.State, line.Why = "unreachable", console.Quoted(d.Why)
			case d.None:
				line.State, line.Why = "unavailable", "there is none"
			}
			if d.By != "" {
				line.Why += "; named by " + console.Quoted(d.By)
			}
			all = append(all, line)
		}
	}
	if k.Pages == nil {
		return all
	}
	for _, p := range k.Pages.List(o) {
		all = append(all, &control.CacheEntry{
			Origin: console.Quoted(p.URL), Kind: "page", State: "read", Why: "for answers that confirm it (304)", FetchedAt: p.At, Bytes: p.Bytes,
		})
	}
	return all
}

// listShared lists the policies that the fleet shares for all clients.
func (k *LocalCache) listShared(ctx context.Context, each func(*control.CacheEntry) error) (err error) {
	tags := func(yield func(string) bool) { err = k.Shared.Tags(ctx, yield) }
	look := func(tag string) *control.CacheEntry {
		o, err := originOf(tag)
		if err != nil {
			return nil
		}
		for _, h := range k.Routes[0].Policies.Find(o) {
			return entryOf(h, "")
		}
		return nil // removed meanwhile
	}
	failed := console.InOrder(console.FetchWidth, tags, look, func(line *control.CacheEntry, _ bool) error {
		if line == nil {
			return nil
		}
		return each(line)
	})
	return errors.Join(failed, err)
}

// routeName returns a short name for the i-th route; empty for the route of the settings.
func (k *LocalCache) routeName(i int) string {
	if i == 0 {
		return ""
	}
	return k.Routes[i].Key[:8]
}

// Show implements control.CacheAPI.
func (k *LocalCache) Show(_ context.Context, what string) ([]*control.CacheEntry, error) {
	origins, err := k.origins(what)
	if err != nil {
		return nil, err
	}
	lines := []*control.CacheEntry{}
	for _, o := range origins {
		for i, e := range k.Routes {
			for _, h := range e.Policies.Find(o) {
				line := entryOf(h, k.routeName(i))
				if h.Snapshot != nil {
					addText(line, h.Snapshot)
				}
				lines = append(lines, line)
			}
		}
		lines = append(lines, k.documents(o)...)
	}
	return lines, nil
}

// addText adds the stored response and up to control.MaxShown octets of its text to l.
func addText(l *control.CacheEntry, s *rules.Snapshot) {
	body, err := s.Body()
	if err != nil {
		return // treated as not stored
	}
	text := string(body[:min(len(body), control.MaxShown)])
	l.Snapshot, l.Text, l.Cut = s, &text, len(text) < len(body)
}

// Text implements control.CacheAPI.
func (k *LocalCache) Text(_ context.Context, what string) ([]byte, error) {
	origins, err := k.origins(what)
	if err != nil {
		return nil, err
	}
	for _, o := range origins {
		for _, e := range k.Routes {
			for _, h := range e.Policies.Find(o) {
				if h.Policy.Source().State == rules.Available && h.Snapshot != nil {
					return h.Snapshot.Body()
				}
			}
		}
	}
	return nil, nil
}

// Purge implements control.CacheAPI.
func (k *LocalCache) Purge(ctx context.Context, what string) ([]string, error) {
	origins, err := k.origins(what)
	if err != nil {
		return nil, err
	}
	purged := []string{}
	var notShared error
	for _, o := range origins {
		known := false
		for _, e := range k.Routes {
			had, err := e.Policies.Purge(ctx, o)
			known = known || had
			if err != nil {
				notShared = fmt.Errorf("this heed has removed %s, but %w: the other instances were not notified\nTry again when it is reachable", console.Printable(what), err)
			}
		}
		if known {
			purged = append(purged, o.String())
		}
	}
	if k.Flush != nil {
		k.Flush() // heed check --local reads the file
	}
	return purged, notShared
}

// Warm implements control.CacheAPI.
func (k *LocalCache) Warm(ctx context.Context, origin string) (*control.CacheEntry, error) {
	o, err := originOf(origin)
	if err != nil {
		return nil, err
	}
	policies := k.Routes[0].Policies
	p := policies.Policy(ctx, o, "")
	for _, h := range policies.Find(o) {
		return entryOf(h, ""), nil
	}
	return entryOf(cache.Info{Policy: p, AskAt: p.Source().RetryAt, WaitAt: p.Source().RetryAt}, ""), nil // evicted already
}

// origins returns the origins that what means: an origin, or a host with all its cached
// origins.
func (k *LocalCache) origins(what string) ([]rules.Origin, error) {
	if strings.Contains(what, "://") {
		o, err := originOf(what)
		return []rules.Origin{o}, err
	}
	var all []rules.Origin
	for _, scheme := range []string{"https", "http"} {
		o, err := rules.ParseOrigin(scheme, what)
		if err != nil {
			return nil, fmt.Errorf("%s is no host: %w", console.Quoted(what), err)
		}
		all = append(all, o)
	}
	if all[0].HostPort() == all[1].HostPort() {
		return all, nil // a port was named
	}
	for _, e := range k.Routes {
		for h := range e.Policies.List() {
			if o := h.Policy.Source().Origin; o.Host == all[0].Host && !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	for _, line := range k.documents(rules.Origin{}) {
		if o, _, err := rules.ParseURL(line.Origin); err == nil && o.Host == all[0].Host && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all, nil
}

// originOf parses an origin or the URL of a page; a host without a scheme means https.
func originOf(text string) (rules.Origin, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(rules.EscapePercents(text))
	if err != nil {
		return rules.Origin{}, fmt.Errorf("%s is no URL\nWrite a host such as example.org, or https://example.org", console.Quoted(text))
	}
	o, err := rules.OriginOf(u)
	if err != nil {
		return rules.Origin{}, fmt.Errorf("%s: %w\nWrite a host such as example.org, or https://example.org", console.Quoted(text), err)
	}
	return o, nil
}

// entryOf returns h as an entry for `heed cache`, with the name of its route.
func entryOf(h cache.Info, route string) *control.CacheEntry {
	src := h.Policy.Source()
	line := &control.CacheEntry{
		Origin: src.Origin.String(), For: console.Quoted(h.For), Route: route, Status: src.Status, FetchedAt: src.FetchedAt,
		NextAt: h.AskAt, WaitAt: h.WaitAt, Failures: h.Failures, Bytes: h.Bytes, Shared: h.Shared,
	}
	line.State, line.Why = stateText(src)
	if src.Note != "" {
		line.Why += "; " + console.Quoted(src.Note)
	}
	if src.RetriedAs != "" {
		line.Why += "; asked as " + console.Quoted(src.RetriedAs)
	}
	return line
}

// stateText returns the state of a robots.txt and its reason.
func stateText(src rules.Source) (state, why string) {
	status := fmt.Sprintf("the site answered %d", src.Status)
	failure := "it cannot be had"
	if src.Err != nil {
		failure = console.Quoted(src.Err.Error())
	}
	switch {
	case src.Stale:
		return "stale", "an old copy is used: " + failure
	case src.State == rules.Unreachable:
		return "unreachable", failure
	case src.State == rules.Unavailable:
		return "unavailable", status + ": there is no file"
	case src.Status == 304:
		return "available", status + ": the file has not changed"
	}
	return "available", status
}
