package cache

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/judge/signal/wall"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

var (
	site  = rules.Origin{Scheme: "https", Host: "site.test", Port: 443}
	start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

	errNetwork = errors.New("connection reset")
)

// said returns the answer of a site: a status, and header fields in pairs.
func said(status int, fields ...string) answer {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return answer{origin: site, url: site.RobotsURL(), siteReply: siteReply{status: status, header: h}}
}

func broken() answer { return answer{origin: site, siteReply: siteReply{err: errNetwork}} }
func notHome() answer {
	return answer{origin: site, siteReply: siteReply{err: errNetwork}, noConnection: true}
}

// after plays answers one second apart and returns the last entry.
func after(answers ...answer) *entry {
	var e *entry
	for i, a := range answers {
		e = next(e, a, start.Add(time.Duration(i)*time.Second), 0, rules.Standard)
	}
	return e
}

func TestState_WhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	means := func(name string, a answer, want rules.State) {
		t.Helper()
		for _, profile := range []rules.Profile{rules.Standard, rules.Strict, rules.Google} {
			if profile == rules.Strict && (a.status == 401 || a.status == 403) {
				continue // it refuses: lookup_test.go
			}
			got := next(nil, a, start, 0, profile).policy.Source()
			must.True(t, got.State == want && !got.Stale, "%s: state %v stale %v, want state %v under %v", name, got.State, got.Stale, want, profile)
		}
	}
	means("RFC 9309 2.3.1.1: 200 is read", said(200), rules.Available)
	means("203 is read", said(203), rules.Available)
	means("204 is an empty file", said(204), rules.Available)
	means("201 is no file", said(201), rules.Unreachable)
	means("202 is a wall", said(202), rules.Unreachable)
	means("206 is half a file", said(206), rules.Unreachable)
	means("304 without a copy says nothing", said(304), rules.Unreachable)
	means("300 says nothing", said(300), rules.Unreachable)
	for _, status := range []int{400, 401, 402, 403, 404, 405, 408, 410, 418, 451, 499} {
		means("RFC 9309 2.3.1.3: 4xx is no file", said(status), rules.Unavailable)
	}
	means("429 is a server's trouble", said(429), rules.Unreachable)
	means("407 is not the site's word", said(407), rules.Unreachable)
	for _, status := range []int{500, 501, 502, 503, 504, 520, 599, 600, 999} {
		means("RFC 9309 2.3.1.4: 5xx is unreachable", said(status), rules.Unreachable)
	}
	means("a broken connection is unreachable", broken(), rules.Unreachable)
	means("a broken body is unreachable whatever its status",
		answer{origin: site, siteReply: siteReply{status: 200, err: errNetwork}}, rules.Unreachable)
}

func TestState_SourceRecordsHowAPolicyWasObtained(t *testing.T) {
	t.Parallel()
	src := after(said(200, "Cache-Control", "max-age=7200")).policy.Source()
	if src.Origin != site || src.Status != 200 || !src.FetchedAt.Equal(start) ||
		!src.FreshUntil.Equal(start.Add(2*time.Hour)) || !src.RetryAt.IsZero() || src.Err != nil {
		t.Errorf("of a file: %+v", src)
	}
	src = after(notHome()).policy.Source()
	if !src.NoConnection || !errors.Is(src.Err, errNetwork) || src.Status != 0 ||
		!src.RetryAt.Equal(start.Add(time.Second)) || !src.FreshUntil.IsZero() {
		t.Errorf("of a site never reached: %+v", src)
	}
	a := said(403)
	a.as = "Client/1"
	src = after(a).policy.Source()
	must.True(t, src.RetriedAs == "Client/1" && src.State == rules.Unavailable, "of a file asked for as the client: %+v", src)
}

func TestState_WhenTheSiteIsAskedAgain(t *testing.T) {
	t.Parallel()
	asked := func(name string, want time.Duration, answers ...answer) {
		t.Helper()
		e := after(answers...)
		must.Equal(t, e.AskAt.Sub(e.MadeAt), want, "%s: after", name)
	}
	asked("a file without a lifetime", time.Hour, said(200))
	asked("no file, without a lifetime", time.Hour, said(404))
	asked("no file, with one", 2*time.Hour, said(404, "Cache-Control", "max-age=7200"))
	asked("no-store", 5*time.Minute, said(200, "Cache-Control", "no-store, max-age=7200"))
	asked("first failure", time.Minute, said(503))
	asked("second failure", 2*time.Minute, said(503), said(503))
	asked("third failure", 4*time.Minute, said(503), broken(), said(429))
	asked("fifth failure", 12*time.Minute, said(503), said(503), said(503), said(503), said(503))
	asked("a success ends the count", time.Minute, said(503), said(503), said(404), said(503))
	asked("never reached", time.Second, notHome())
	asked("never reached, again", 2*time.Second, notHome(), notHome())
	asked("another kind of failure counts anew", time.Minute, notHome(), notHome(), said(503))
	asked("Retry-After in seconds", 90*time.Second, said(503, "Retry-After", "90"))
	asked("Retry-After as a date", 30*time.Minute, said(429,
		"Date", start.Add(-time.Hour).Format(http.TimeFormat), // the site's clock is wrong
		"Retry-After", start.Add(-30*time.Minute).Format(http.TimeFormat)))
	at0 := said(503, "Retry-After", "0")
	asked("Retry-After too soon", time.Second, at0)
	asked("Retry-After too soon, again and again", 16*time.Second, at0, at0, at0, at0, at0)
	asked("Retry-After too soon, for long", 48*time.Second, at0, at0, at0, at0, at0, at0, at0, at0, at0, at0, at0, at0)
	asked("Retry-After in the past", time.Second, said(503, "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"))
	asked("Retry-After beyond a day", 24*time.Hour, said(503, "Retry-After", "99999999999999999999"))
	asked("Retry-After that is neither", time.Minute, said(503, "Retry-After", "-5"))
}

func TestState_RetriesStayWithinTheirLimits(t *testing.T) {
	t.Parallel()
	for failures := 1; failures < 200; failures++ {
		for _, jitter := range []float64{0, 0.5, 0.999999} {
			d := retryIn(said(503), failures, start, jitter)
			must.Need(t, d >= time.Minute && d <= 15*time.Minute, "failure %d, jitter %v: %s", failures, jitter, d)
			d = retryIn(notHome(), failures, start, jitter)
			must.Need(t, d >= time.Second && d <= time.Minute, "failure %d, jitter %v, never reached: %s", failures, jitter, d)
		}
	}
	must.True(t, retryIn(said(503), 9, start, 0.1) != retryIn(said(503), 9, start, 0.9),
		"jitter does not spread the retries")
}

// A copy outlives a failing site (RFC 9309 §2.4), for 30 days.
func TestState_StaleOnError(t *testing.T) {
	t.Parallel()
	file := said(200, "ETag", `"1"`)
	e := after(file, said(503))
	src := e.policy.Source()
	must.Need(t, src.State == rules.Available && src.Stale && src.Status == 503 && src.Err != nil && src.FetchedAt.Equal(start),
		"after a failure: %+v", src)
	must.Equal(t, e.validators.ETag, `"1"`, "the copy lost its validator")
	src = next(e, broken(), start.Add(staleLimit), 0, rules.Standard).policy.Source()
	must.True(t, src.Stale, "30 days on: %+v", src)
	src = next(e, broken(), start.Add(staleLimit+time.Second), 0, rules.Standard).policy.Source()
	must.True(t, src.State == rules.Unreachable && !src.Stale, "after 30 days: %+v", src)
	src = after(file, notHome(), said(200)).policy.Source()
	must.True(t, !src.Stale && src.Err == nil && !src.NoConnection, "back again: %+v", src)
}

func TestState_WhatIsNoCopyIsNotServedStale(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]answer{
		"there was no file":         {said(404), said(503)},
		"the file has gone":         {said(200), said(404), said(503)},
		"the file forbade storing":  {said(200, "Cache-Control", "no-store"), said(503)},
		"a 304 forbade storing":     {said(200, "ETag", "1"), said(304, "Cache-Control", "no-store"), said(503)},
		"there was nothing at all":  {said(503), broken()},
		"the file itself was a 202": {said(202), said(503)},
	} {
		src := after(answers...).policy.Source()
		must.True(t, src.State == rules.Unreachable && !src.Stale, "%s: %+v", name, src)
	}
}

// A 304 restarts the clock of the copy (RFC 9111 §4.3.4).
func TestState_Revalidation(t *testing.T) {
	t.Parallel()
	file := said(200, "ETag", `"1"`, "Cache-Control", "max-age=7200")
	e := after(file, said(304))
	src := e.policy.Source()
	must.Need(t, src.State == rules.Available && src.Status == 304 && src.FetchedAt.Equal(start.Add(time.Second)),
		"confirmed: %+v", src)
	must.Equal(t, e.AskAt.Sub(e.MadeAt), 2*time.Hour, "a 304 that states no lifetime keeps the copy's")
	e = after(file, said(304, "Cache-Control", "max-age=600", "ETag", `"2"`))
	must.True(t, e.AskAt.Sub(e.MadeAt) == 10*time.Minute, "a 304 that states one: %s", e.AskAt.Sub(e.MadeAt))
	must.Equal(t, e.validators.ETag, `"2"`, "validator")
	e = after(file, said(503), said(503), said(304))
	src = e.policy.Source()
	must.True(t, !src.Stale && src.Err == nil && e.Failures == 0, "confirmed after failures: %+v", src)
	elsewhere := said(304)
	elsewhere.url = "https://other.test/robots.txt"
	src = after(file, elsewhere).policy.Source()
	must.True(t, src.Stale, "another resource's 304 confirmed the copy: %+v", src)
	src = after(said(200), said(304)).policy.Source()
	must.True(t, src.Stale, "a 304 to an unconditional request confirmed the copy: %+v", src)
}

func TestState_DeniedUntilTheSiteSaysOtherwise(t *testing.T) {
	t.Parallel()
	denied := func(want bool, answers ...answer) {
		t.Helper()
		must.Equal(t, after(answers...).Denied, want, "denied")
	}
	denied(true, said(401))
	denied(true, said(403))
	denied(true, said(403), said(503))
	denied(true, said(403), said(503), broken())
	denied(false, said(403), said(200))
	denied(false, said(403), said(404))
	denied(false, said(404))
	denied(false, said(503))
}

func TestState_FreshByTheClock(t *testing.T) {
	t.Parallel()
	e := after(said(200))
	fresh := func(want bool, name string, at time.Duration) {
		t.Helper()
		must.Equal(t, e.fresh(start.Add(at)), want, "%s: fresh %v, want %v", name, !want, want)
	}
	fresh(true, "at once", 0)
	fresh(true, "until its time", time.Hour-1)
	fresh(false, "at its time", time.Hour)
	fresh(true, "clock corrected by seconds", -30*time.Second)
	fresh(false, "clock set back by a year", -365*24*time.Hour)
	must.True(t, !(*entry)(nil).fresh(start), "nothing is fresh")
}

func TestRFC9111_Lifetime(t *testing.T) {
	t.Parallel()
	date := start.Add(-240 * time.Hour).Format(http.TimeFormat) // the site's clock is ten days behind
	in := func(d time.Duration) string { return start.Add(-240*time.Hour + d).Format(http.TimeFormat) }
	lasts := func(name string, want time.Duration, fields ...string) {
		t.Helper()
		must.Equal(t, freshnessOf(said(200, fields...).header, start).lifetime, want, name)
	}
	lasts("nothing said", time.Hour)
	lasts("max-age", 30*time.Minute, "Cache-Control", "max-age=1800")
	lasts("5.2: names in any case, quoted numbers", 30*time.Minute, "Cache-Control", `public, Max-Age="1800"`)
	lasts("4.2.1: s-maxage before max-age", 20*time.Minute, "Cache-Control", "max-age=1800, s-maxage=1200")
	lasts("4.2.1: max-age before Expires", 30*time.Minute, "Cache-Control", "max-age=1800", "Expires", "0")
	lasts("5.3: Expires less Date", 40*time.Minute, "Date", date, "Expires", in(40*time.Minute))
	lasts("5.3: Expires without Date", 40*time.Minute, "Expires", start.Add(40*time.Minute).Format(http.TimeFormat))
	lasts("5.3: invalid Expires has passed", 5*time.Minute, "Expires", "0")
	lasts("5.3: Expires that has passed", 5*time.Minute, "Date", date, "Expires", in(-time.Hour))
	lasts("4.2.3: less Age", 20*time.Minute, "Cache-Control", "max-age=1800", "Age", "600")
	lasts("4.2.3: older than its life", 5*time.Minute, "Cache-Control", "max-age=1800", "Age", "9999")
	lasts("4.2.1: the shortest of several", 10*time.Minute, "Cache-Control", "max-age=1800", "Cache-Control", "max-age=600")
	lasts("4.2.1: invalid has passed", 5*time.Minute, "Cache-Control", "max-age=soon")
	lasts("4.2.1: negative has passed", 5*time.Minute, "Cache-Control", "max-age=-1")
	lasts("1.2.2: too large a number", 24*time.Hour, "Cache-Control", "max-age=99999999999999999999")
	lasts("no less than five minutes", 5*time.Minute, "Cache-Control", "max-age=0")
	lasts("no more than a day", 24*time.Hour, "Cache-Control", "max-age=31536000")
	lasts("no-store", 5*time.Minute, "Cache-Control", "max-age=1800, no-store")
	lasts("no-cache", 5*time.Minute, "Cache-Control", "no-cache, max-age=1800")
	lasts("private", 5*time.Minute, "Cache-Control", "private, max-age=1800")
	lasts("what is unknown is ignored", 30*time.Minute, "Cache-Control", "immutable,,x=,max-age=1800")
}

// Walls answer robots.txt with a page of their own, which is neither the
// site's file nor a word that there is none.
func TestHeed_ChallengePagesAreNoPermission(t *testing.T) {
	t.Parallel()
	is := func(name string, a answer, vendor string) {
		t.Helper()
		a.wall, a.vendor = wall.RobotsTxt(a.status, a.header, a.body)
		src := after(a).policy.Source()
		got := src.Err != nil && strings.Contains(src.Err.Error(), "challenge page ("+vendor+")")
		must.True(t, (src.State == rules.Unreachable) == (vendor != "") && got == (vendor != ""),
			"%s: state %v, err %v; want a challenge of %q", name, src.State, src.Err, vendor)
	}
	page := func(status int, html string) answer {
		a := said(status, "Content-Type", "text/html; charset=utf-8")
		a.body = []byte(html)
		return a
	}
	is("without a type", answer{
		origin: site, url: site.RobotsURL(),
		siteReply: siteReply{status: 200, body: []byte("<html><body><script id=\"anubis_challenge\">{}</script></body></html>")},
	}, "Anubis")
	for _, status := range []int{200, 203, 400, 401, 403, 404, 405, 410, 415, 451} {
		is("page with status "+strconv.Itoa(status), page(status, "<html>window._cf_chl_opt={}</html>"), "Cloudflare")
		is("field with status "+strconv.Itoa(status), said(status, "X-Amzn-Waf-Action", "captcha"), "AWS WAF")
	}
	is("a field that says something else", said(200, "Cf-Mitigated", "none"), "")
	is("a page behind a wall", page(200, "<html><script src=/cdn-cgi/challenge-platform/scripts/jsd/main.js></script></html>"), "")
	file := said(200, "Content-Type", "text/plain")
	file.body = []byte("User-agent: *\nDisallow: /.well-known/sgcaptcha/\nDisallow: /_sec/cp_challenge/\n")
	is("a file that names the paths of a wall", file, "")
	is("far down a long page", page(200, "<html>"+strings.Repeat("x", wall.MaxBytes)+"_cf_chl_opt"), "")

	for _, status := range []int{200, 404} {
		doubtful := page(status, "<html><script>go()</script></html>")
		doubtful.wall, doubtful.vendor = wall.RobotsTxt(status, doubtful.header, doubtful.body)
		for profile, want := range map[rules.Profile]rules.State{rules.Standard: rules.Unavailable, rules.Strict: rules.Unreachable} {
			inState(t, next(nil, doubtful, start, 0, profile).policy.Source(), want, "a doubtful page with %d under %v", status, profile)
		}
	}
}
