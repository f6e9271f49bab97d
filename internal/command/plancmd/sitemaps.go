package plancmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"heed/internal/analysis/plan"
	"heed/internal/check"
	"heed/internal/output/console"
	"heed/proxy/upstream"
	"heed/rules"
)

// Bounds of the fetches of sitemaps.
const (
	sitemapTimeout = 2 * time.Minute // of one
	maxMaps        = 50_000          // of one site, as many as an index may have (sitemaps.org)
	maxUnpacked    = 1 << 30         // octets of the sitemaps of one site, unpacked
	maxHosts       = 10              // other hosts that have sitemaps of a site
	mapsAtOnce     = 12              // sites whose sitemaps are read at the same time, each of which may take 50 MiB
)

// The reasons of entries of sitemaps that are not used.
var (
	errOtherSite = errors.New("it is on another site than its sitemap")
	errSecondMap = errors.New("an index in an index of sitemaps is not read")
	errManyHosts = errors.New("the site has sitemaps on more than 10 other hosts")
	errManyMaps  = errors.New("the site has more than 50,000 sitemaps")
	errManyBytes = errors.New("the site has more than 1 GiB of sitemaps")
	errLate      = errors.New("reading the sitemaps of the site takes longer than --sitemap-time")
	errNoURL     = errors.New("the entry has no URL, or one longer than 64 KiB")
)

// readSitemaps reads the sitemaps of the flags, then those that the sites of the lists name.
func (in *inputs) readSitemaps(ctx context.Context) {
	walks := map[rules.Origin]*walk{}
	for _, address := range in.Sitemap {
		o, _, _ := rules.ParseURL(address) // it was checked
		if walks[o] == nil {
			walks[o] = in.walk(ctx, o)
		}
		walks[o].readOne(address, true)
	}
	var sites errgroup.Group
	sites.SetLimit(mapsAtOnce)
	for o := range in.named {
		sites.Go(func() error { // it has no error: what cannot be read is counted
			in.walk(ctx, o).readNamed()
			return nil
		})
	}
	_ = sites.Wait()
}

// walk is the reading of the sitemaps of one site, one after the other, at its delay.
type walk struct {
	in    *inputs
	ctx   context.Context
	owner rules.Origin                 // whose sitemaps they are
	sites map[rules.Origin]*check.Site // those that were asked for
	next  map[rules.Origin]time.Time   // when they may be asked again
	hosts map[string]bool              // others than that of owner
	count int
	left  int       // octets that may be read, unpacked
	until time.Time // when the reading ends; zero: it has not begun
}

func (in *inputs) walk(ctx context.Context, owner rules.Origin) *walk {
	return &walk{in: in, ctx: ctx, owner: owner, sites: map[rules.Origin]*check.Site{}, next: map[rules.Origin]time.Time{}, hosts: map[string]bool{}, left: maxUnpacked}
}

// over returns why no further sitemap of the site is read; nil: it may be.
func (w *walk) over() error {
	if w.until.IsZero() {
		w.until = time.Now().Add(w.in.SitemapTime)
	}
	switch w.count++; {
	case w.count > maxMaps:
		return errManyMaps
	case w.left <= 0:
		return errManyBytes
	case !time.Now().Before(w.until):
		return errLate
	}
	return nil
}

// readNamed reads the sitemaps that the robots.txt of the site names.
func (w *walk) readNamed() {
	a, err := w.site(w.owner).Check(w.ctx, w.in.Agent[0], []string{w.owner.String() + "/"}, true)
	if err != nil {
		w.problem(w.owner.RobotsURL(), err)
		return
	}
	for _, address := range a[0].Sitemaps {
		w.readOne(absolute(address, w.owner.RobotsURL()), true)
	}
}

// problem counts a sitemap that cannot be read.
func (w *walk) problem(address string, err error) {
	if w.ctx.Err() == nil {
		w.in.problems.Add(address, address, "the sitemap cannot be read: "+err.Error())
		w.in.failed.Store(true)
	}
}

// site returns what judges the URLs of o.
func (w *walk) site(o rules.Origin) *check.Site {
	if w.sites[o] == nil {
		w.sites[o] = w.in.sites.Site()
	}
	return w.sites[o]
}

// readOne reads a sitemap and, if index is set and it is an index, those in it.
func (w *walk) readOne(address string, index bool) {
	if w.ctx.Err() != nil {
		return
	}
	if _, before := w.in.seen.LoadOrStore(address, true); before {
		return
	}
	if err := w.over(); err != nil {
		w.problem(address, err)
		return
	}
	body, err := w.fetch(address)
	if err != nil {
		w.problem(address, err)
		return
	}
	n, children := 0, []string(nil)
	entry := func(use func(url string) error) func(string) {
		return func(url string) {
			n++
			err := errNoURL
			if url = absolute(url, address); url != "" {
				err = w.own(url, address)
			}
			if err == nil {
				err = use(url)
			}
			if err != nil {
				w.in.problems.Add(fmt.Sprintf("%s, entry %d", address, n), url, err.Error())
			}
		}
	}
	read, cut, err := plan.ReadSitemap(bytes.NewReader(body), plan.MaxSitemap, entry(w.in.plan.Add), entry(func(url string) error {
		if !index {
			return errSecondMap
		}
		if len(children) >= maxMaps {
			return errManyMaps
		}
		children = append(children, url)
		return nil
	}))
	if w.left -= read; err != nil {
		w.problem(address, err)
	}
	if cut {
		w.problem(address, fmt.Errorf("it is longer than %d MiB; the rest was not read", plan.MaxSitemap>>20))
	}
	for _, child := range children {
		w.readOne(child, false)
	}
}

// absolute returns a URL as it is, and a reference like "/sitemap.xml" relative to the URL of the
// file that has it (RFC 3986 §5.2), as crawlers do.
func absolute(reference, base string) string {
	u, err := url.Parse(reference)
	if err != nil || u.IsAbs() || reference == "" {
		return reference
	}
	b, err := url.Parse(base)
	if err != nil {
		return reference
	}
	return b.ResolveReference(u).String()
}

// own returns an error for a URL that is neither on the site whose sitemaps are read nor on
// that of the sitemap: a sitemap must not make heed ask any number of other sites. A scheme, a
// port and "www." make no difference.
func (w *walk) own(address, sitemap string) error {
	o, _, err := rules.ParseURL(address)
	if err != nil {
		return err
	}
	at, _, _ := rules.ParseURL(sitemap) // it was fetched
	bare := func(host string) string { return strings.TrimPrefix(host, "www.") }
	if bare(o.Host) != bare(w.owner.Host) && bare(o.Host) != bare(at.Host) {
		return errOtherSite
	}
	return nil
}

// fetch returns the sitemap at an address, once the delay of its site is over.
func (w *walk) fetch(address string) (body []byte, err error) {
	o, _, err := rules.ParseURL(address)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(rules.EscapePercents(address))
	if err != nil {
		return nil, err
	}
	defer w.in.waits.begin(address)()
	ctx, cancel := context.WithDeadline(w.ctx, w.until)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil && !time.Now().Before(w.until) {
			err = errLate
		}
	}()
	by := ""
	if o != w.owner {
		by, ctx = w.owner.Host, upstream.NamedBy(ctx, w.owner)
	}
	delay, err := w.permit(ctx, u.String())
	if err != nil {
		return nil, err
	}
	if err := w.wait(ctx, o, delay); err != nil {
		return nil, err
	}
	ctx, end := context.WithTimeout(ctx, sitemapTimeout)
	defer end()
	status, body, err := w.in.sites.Fetcher.Document(ctx, by, u, plan.MaxSitemap, func(ctx context.Context, u *url.URL) error {
		_, err := w.permit(ctx, u.String())
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK && status != http.StatusNonAuthoritativeInfo:
		return nil, fmt.Errorf("the site answered %d", status)
	}
	return body, nil
}

// permit returns why the rules of a site do not let one of the agents fetch a URL, and the
// delay that it keeps, the longest of all.
func (w *walk) permit(ctx context.Context, address string) (delay time.Duration, err error) {
	o, target, err := rules.ParseURL(address)
	if err != nil {
		return 0, err
	}
	if err := w.permitOther(ctx, o, target); err != nil {
		return 0, err
	}
	for _, agent := range w.in.Agent {
		all, err := w.site(o).Check(ctx, agent, []string{address}, true)
		if err != nil {
			return 0, err
		}
		a := all[0]
		if !a.Allowed {
			return 0, notLet(agent, a.Reason)
		}
		if a.Delay != nil {
			delay = max(delay, time.Duration(a.Delay.Seconds*float64(time.Second)))
		}
	}
	return delay, nil
}

// permitOther returns why nothing may be fetched from another host than that of the sitemaps'
// site, which has named it: that must lead to no less public address, also not for the rules.
func (w *walk) permitOther(ctx context.Context, o rules.Origin, target string) error {
	if o.Host == w.owner.Host {
		return nil
	}
	if w.hosts[o.Host] = true; len(w.hosts) > maxHosts {
		return errManyHosts
	}
	p := w.in.sites.Robots(upstream.NamedBy(ctx, w.owner), w.owner.Host, o)
	for _, agent := range w.in.Agent {
		if d := p.Decide(rules.Identify(agent), rules.NewTarget(target)); d.Verdict != rules.Allow {
			return notLet(agent, d.Reason)
		}
	}
	return nil
}

// notLet is the error of a sitemap that the rules of its site do not let an agent fetch. It is
// the same for all sites, so that they are counted together.
func notLet(agent string, why rules.Reason) error {
	return fmt.Errorf("the rules of its site do not let %s fetch it (%s)", console.Quoted(agent), why)
}

// wait waits until o may be asked again, and then not for delay.
func (w *walk) wait(ctx context.Context, o rules.Origin, delay time.Duration) error {
	left := time.Until(w.next[o])
	select {
	case <-time.After(left):
	case <-ctx.Done():
		return ctx.Err()
	}
	w.next[o] = time.Now().Add(delay)
	return nil
}
