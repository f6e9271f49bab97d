package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/judge/signal"
	"heed/internal/judge/signal/licence"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// answers is a Site that counts.
type answers struct {
	mu      sync.Mutex
	asked   map[string]int
	respond func(ctx context.Context, u *url.URL, most int) (int, []byte, error)
}

func (a *answers) Document(ctx context.Context, _ string, u *url.URL, most int, _ Permit) (int, []byte, error) {
	a.mu.Lock()
	if a.asked == nil {
		a.asked = map[string]int{}
	}
	a.asked[u.String()]++
	a.mu.Unlock()
	return a.respond(ctx, u, most)
}

func (a *answers) times(address string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[address]
}

const priced = `<rsl xmlns="https://rslstandard.org/rsl"%s><content url="/"><license><payment type="use"><amount currency="USD">1</amount></payment></license></content></rsl>`

func origin(t *testing.T, address string) rules.Origin {
	t.Helper()
	u := must.Get(url.Parse(address))(t)
	return must.Get(rules.OriginOf(u))(t)
}

// A document is requested once for all that wait for it, and again when it is too old.
func TestDocuments_EachIsRequestedOncePerLifetime(t *testing.T) {
	for _, c := range []struct {
		name, maxAge string
		status       int
		err          error
		valid        time.Duration
	}{
		{"a licence without max-age", "", 200, nil, licence.DefaultAge},
		{"a licence with one", ` max-age="7"`, 200, nil, 7 * 24 * time.Hour},
		{"no document", "", 404, nil, licence.DefaultAge},
		{"a failure", "", 503, nil, failureAge},
		{"no answer", "", 0, errors.New("refused"), failureAge},
	} {
		synctest.Test(t, func(t *testing.T) {
			site := &answers{respond: func(context.Context, *url.URL, int) (int, []byte, error) {
				testkit.Delay(time.Second)
				return c.status, fmt.Appendf(nil, priced, c.maxAge), c.err
			}}
			d := &Documents{Site: site}
			const address = "https://site.test/licence.xml"
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					got := d.Licence(t.Context(), "", address, nil)
					must.True(t, (got.Err == nil) == (c.status == 200), "%s: %+v", c.name, got)
				})
			}
			all.Wait()
			testkit.Advance(c.valid - 2*time.Second)
			d.Licence(t.Context(), "", address, nil)
			must.Equal(t, site.times(address), 1, "%s: requests while it is valid", c.name)
			testkit.Advance(3 * time.Second)
			d.Licence(t.Context(), "", address, nil)
			must.Equal(t, site.times(address), 2, "%s: requests after that", c.name)
		})
	}
}

func TestDocuments_AClientDoesNotWaitForASiteThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &answers{respond: func(ctx context.Context, _ *url.URL, _ int) (int, []byte, error) {
			<-ctx.Done()
			return 0, nil, ctx.Err()
		}}
		d := &Documents{Site: site}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if why := unread(t, d.TDMRep(ctx, origin(t, "https://site.test/"), nil)); why != "tdmrep.json cannot be read: it did not arrive in time" || time.Since(began) != time.Second {
			t.Errorf("%s after %v", why, time.Since(began))
		}
		got := d.Licence(t.Context(), "", "https://site.test/x", nil)
		must.True(t, got.Err != nil && time.Since(began) == time.Second+MaxTime, "%v after %v", got.Err, time.Since(began))
	})
}

// What a hostile site sends is bounded, and is never read as a permission.
func TestDocuments_HostileOnesCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no XML":        "hello",
		"no licence":    "<html></html>",
		"entities":      `<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><rsl><content url="/">&b;</content></rsl>`,
		"half a one":    `<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>`,
		"deeply nested": string(bytes.Repeat([]byte("<rsl>"), 100_000)),
	} {
		d := &Documents{Site: &answers{respond: func(_ context.Context, _ *url.URL, most int) (int, []byte, error) {
			return http.StatusOK, []byte(body)[:min(len(body), most)], nil
		}}}
		got := d.Licence(t.Context(), "", "https://site.test/x", nil)
		must.True(t, got.Err != nil && got.Document == nil, "%s: %+v", name, got)
		if got := d.TDMRep(t.Context(), origin(t, "https://site.test/"), nil); got != nil {
			t.Errorf("%s as TDMRep: %+v", name, got)
		}
	}
}

func TestDocuments_AFaultIsNoPermission(t *testing.T) {
	t.Parallel()
	d := &Documents{Site: &answers{respond: func(context.Context, *url.URL, int) (int, []byte, error) { panic("a fault") }}}
	got := d.Licence(t.Context(), "", "https://site.test/x", nil)
	must.True(t, got.Err != nil, "%+v", got)
	why := unread(t, d.TDMRep(t.Context(), origin(t, "https://site.test/"), nil))
	must.True(t, why != "", "there is no TDMRep file")
}

// unread returns why a TDMRep file was not read; empty when it was, or there is none.
func unread(t *testing.T, file *signal.TDMRep) string {
	t.Helper()
	v := signal.Judge(signal.Input{Origin: origin(t, "https://site.test/"), Target: rules.NewTarget("/"), Crawl: true, TDMRep: file})
	if len(v.Statements) == 0 {
		return ""
	}
	return v.Statements[0].Fault
}

// The TDMRep file is probed: an answer that says that there is none is none, and one that does
// not is a file that cannot be read. Failures are tried again sooner.
func TestDocuments_ATDMRepFileThatWasNotHad(t *testing.T) {
	for status, c := range map[int]struct {
		why   string
		valid time.Duration
	}{
		404: {"", tdmRepAge}, 410: {"", tdmRepAge}, 400: {"", tdmRepAge}, 204: {"", tdmRepAge},
		401: {"it was answered with status 401", tdmRepAge}, 403: {"it was answered with status 403", tdmRepAge},
		429: {"it was answered with status 429", failureAge}, 500: {"it was answered with status 500", failureAge}, 0: {"it could not be fetched", failureAge},
	} {
		synctest.Test(t, func(t *testing.T) {
			site := &answers{respond: func(context.Context, *url.URL, int) (int, []byte, error) {
				if status == 0 {
					return 0, nil, errors.New("refused")
				}
				return status, nil, nil
			}}
			d := &Documents{Site: site}
			want := c.why
			if want != "" {
				want = "tdmrep.json cannot be read: " + want
			}
			must.Equal(t, unread(t, d.TDMRep(t.Context(), origin(t, "https://site.test/"), nil)), want, "%d", status)
			testkit.Advance(c.valid - time.Second)
			d.TDMRep(t.Context(), origin(t, "https://site.test/"), nil)
			must.Equal(t, site.times("https://site.test"+signal.TDMRepPath), 1, "%d: requests while it is valid", status)
			testkit.Advance(2 * time.Second)
			d.TDMRep(t.Context(), origin(t, "https://site.test/"), nil)
			must.Equal(t, site.times("https://site.test"+signal.TDMRepPath), 2, "%d: requests after that", status)
		})
	}
}

func TestDocuments_ATDMRepFileIsReadOnce(t *testing.T) {
	t.Parallel()
	site := &answers{respond: func(context.Context, *url.URL, int) (int, []byte, error) {
		return 200, []byte(`[{"location": "/", "tdm-reservation": 1}]`), nil
	}}
	d := &Documents{Site: site}
	o := origin(t, "https://site.test:8443/page")
	for range 3 {
		file := d.TDMRep(t.Context(), o, nil)
		v := signal.Judge(signal.Input{Origin: o, Target: rules.NewTarget("/page"), Crawl: true, TDMRep: file, Now: time.Now()})
		must.Equal(t, v.Of(signal.TDM), signal.Disallow, "%+v", v)
	}
	must.Equal(t, site.times("https://site.test:8443/.well-known/tdmrep.json"), 1, "requests")
}

// A purge of a site forgets its TDMRep file, its licences, and those that it names on other
// hosts, with the robots.txt there; a fetch that began before it is not kept.
func TestDocuments_APurgeForgetsAllOfASite(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan bool, 1), make(chan bool, 1)
	site := &answers{respond: func(_ context.Context, u *url.URL, _ int) (int, []byte, error) {
		if u.Path == "/slow.xml" {
			begun <- true
			<-proceed
		}
		return 404, nil, nil
	}}
	d := &Documents{Site: site}
	o, other := origin(t, "https://site.test/"), origin(t, "https://licences.test/")
	ask := func() {
		d.TDMRep(t.Context(), o, nil)
		d.TDMRep(t.Context(), other, nil)
		d.Licence(t.Context(), "", "https://site.test/own.xml", nil)
		d.Licence(t.Context(), "site.test", "https://licences.test/named.xml", nil)
		d.Licence(t.Context(), "third.test", "https://licences.test/named.xml", nil)
		d.Robots(t.Context(), "site.test", other, rules.Standard)
	}
	ask()
	n := len(d.List(o))
	must.True(t, n == 4 && len(d.List(rules.Origin{})) == 6, "%d documents of the site are listed, want 4: %+v", n, d.List(o))
	must.True(t, d.Purge(o) && len(d.List(o)) == 0 && len(d.List(rules.Origin{})) == 2 && !d.Purge(o),
		"after the purge %+v", d.List(rules.Origin{}))
	ask()
	for address, want := range map[string]int{
		"https://site.test/.well-known/tdmrep.json": 2, "https://site.test/own.xml": 2, "https://licences.test/named.xml": 3,
		"https://licences.test/robots.txt": 2, "https://licences.test/.well-known/tdmrep.json": 1,
	} {
		must.Equal(t, site.times(address), want, "requests of %s", address)
	}
	done := make(chan bool)
	go func() { d.Licence(t.Context(), "", "https://site.test/slow.xml", nil); close(done) }()
	<-begun
	d.Purge(o)
	proceed <- true
	<-done
	must.Same(t, d.List(o), nil, "kept although it began before the purge")
}
