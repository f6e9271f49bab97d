package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// passes lets time go by with a request every quarter of an hour.
func (s *scene) passes(d time.Duration) {
	for range int(d / (15 * time.Minute)) {
		s.clock.step(15 * time.Minute)
		s.cache.Policy(s.t.Context(), site, "")
	}
}

func TestPolicy_StrictLetsNoCopyStandIn(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Strict)
	s.turns(200, "ETag", `"1"`)
	s.shows("a file", "", rules.Refuse)
	s.breaks()
	s.clock.step(2 * time.Hour)
	if src := s.shows("at once", "", rules.Refuse); src.State != rules.Unreachable {
		t.Errorf("%+v", src)
	}
	s.turns(304)
	s.clock.step(2 * time.Minute)
	src := s.shows("back again", "", rules.Refuse)
	must.True(t, src.State == rules.Available && !src.Stale && src.Err == nil, "confirmed after a failure: %+v", src)
}

func TestPolicy_GoogleRefusesForTwelveHoursFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Google)
	s.turns(200)
	s.shows("a file", "", rules.Refuse)
	s.breaks()
	s.clock.step(2 * time.Hour)
	state := func(when string, want rules.State) {
		t.Helper()
		inState(t, s.shows(when, "", rules.Refuse), want, when)
	}
	state("when it begins to fail", rules.Unreachable)
	s.passes(11*time.Hour + 45*time.Minute)
	state("almost twelve hours on", rules.Unreachable)
	s.passes(30 * time.Minute)
	state("twelve hours on", rules.Available)
	s.passes(31 * 24 * time.Hour)
	state("after 30 days", rules.Unreachable)
}

// While a strict reader refuses since the site fails, the file is still shown; a site
// that never sent one has none.
func TestPolicy_AFileThatMayNotBeServedIsStillShown(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Strict)
	shown := func() *rules.Snapshot {
		t.Helper()
		found := s.cache.Find(site)
		must.Need(t, len(found) == 1 && found[0].Policy.Source().State == rules.Unreachable, "found %+v", found)
		return found[0].Snapshot
	}
	s.turns(503)
	s.shows("no file yet", "", rules.Refuse)
	if got := shown(); got != nil {
		t.Errorf("of a site that never sent a file: %+v", got)
	}
	s.turns(200)
	s.clock.step(2 * time.Hour)
	s.shows("a file", "", rules.Refuse)
	s.turns(503)
	s.clock.step(2 * time.Hour)
	s.shows("it fails", "", rules.Refuse)
	got := shown()
	must.Need(t, got != nil, "the file is not shown")
	body, err := got.Body()
	must.True(t, string(body) == file && err == nil, "the file is %q, %v", body, err)
}

// Requests that are answered while the site is asked beside them leave nothing in
// memory, however long that takes. It measures the heap: it runs alone.
func TestPolicy_AGraceKeepsNothingForEachRequest(t *testing.T) {
	s := newScene(t, rules.Standard)
	s.turns(200)
	s.shows("a file", "", rules.Refuse)
	ask, slow := make(chan struct{}), make(chan struct{})
	s.turn(func(*http.Request) (*http.Response, error) {
		close(ask)
		<-slow
		return reply(200), nil
	})
	s.clock.step(time.Hour + time.Minute)
	s.shows("in its grace", "", rules.Refuse)
	<-ask
	before := heap()
	for range 50_000 {
		s.cache.Policy(t.Context(), site, "")
	}
	after := heap()
	close(slow)
	must.True(t, after <= before+1<<20, "50,000 requests keep %d KiB", (after-before)>>10)
}

func TestPolicy_MustRevalidateAndNoCacheDoNotForbidIt(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"no-cache", "must-revalidate", "max-age=600, proxy-revalidate", "s-maxage=600", "max-age=600, stale-if-error=0"} {
		for profile, want := range map[rules.Profile]rules.State{rules.Standard: rules.Available, rules.Strict: rules.Unreachable} {
			s := newScene(t, profile)
			s.turns(200, "Cache-Control", value)
			s.shows("a file", "", rules.Refuse)
			s.breaks()
			s.clock.step(25 * time.Hour)
			inState(t, s.shows(value, "", rules.Refuse), want, value)
		}
	}
}

func TestPolicy_AfterThirtyDaysNothingOpensByItself(t *testing.T) {
	t.Parallel()
	for _, profile := range []rules.Profile{rules.Standard, rules.Google} {
		s := newScene(t, profile)
		s.turns(200)
		s.shows("a file", "", rules.Refuse)
		s.breaks()
		s.passes(30*24*time.Hour - time.Hour)
		src := s.shows("an hour before", "", rules.Refuse)
		must.True(t, src.State == rules.Available && src.Stale && src.FetchedAt.Equal(start) && errors.Is(src.Err, errNetwork),
			"an hour before: %+v", src)
		s.passes(time.Hour + 15*time.Minute)
		inState(t, s.shows("30 days on", "", rules.Refuse), rules.Unreachable, "30 days on")
		further := 6 * 24 * time.Hour
		if testkit.Full {
			further *= 10
		}
		s.passes(further)
		s.shows("later", "", rules.Refuse)
	}
	// A Retry-After does not carry a copy beyond its limit.
	s := newScene(t, rules.Standard)
	s.turns(200)
	s.shows("a file", "", rules.Refuse)
	s.turns(503, "Retry-After", "86400")
	s.clock.step(staleLimit - time.Minute)
	s.shows("a minute before", "", rules.Refuse)
	s.clock.step(2 * time.Minute)
	inState(t, s.shows("a minute after", "", rules.Refuse), rules.Unreachable, "a minute after")
}

// chain has the site redirect n times, from host to host, to a file.
func chain(n int) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		var at int
		_, _ = fmt.Sscanf(r.URL.Hostname(), "hop%d.test", &at)
		if at == n {
			return reply(200), nil
		}
		return reply(302, "Location", fmt.Sprintf("https://hop%d.test/robots.txt", at+1)), nil
	}
}

func TestPolicy_TenRedirectsAreFollowedAndBelongToTheFirstAuthority(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Standard)
	s.turn(chain(10))
	src := s.shows("ten", "", rules.Refuse)
	must.True(t, src.State == rules.Available && src.Origin == site, "%+v", src)
	s.askedTimes("ten redirects", 11)
	s = newScene(t, rules.Standard)
	s.turn(chain(11))
	inState(t, s.shows("eleven", "", rules.Refuse), rules.Unreachable)
	s.askedTimes("eleven redirects", 11)
}

func TestPolicy_AFileIsConfirmedAfterItsLifetime(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Standard)
	s.turns(200, "Cache-Control", "max-age=1800", "ETag", `"v"`, "Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT")
	must.Equal(t, s.shows("a file", "", rules.Refuse).FreshUntil.Sub(start), 30*time.Minute, "fresh for")
	s.clock.step(30*time.Minute - time.Second)
	s.shows("in its time", "", rules.Refuse)
	s.askedTimes("in its time", 1)
	s.turns(304)
	s.clock.step(25 * time.Hour)
	src := s.shows("after it", "", rules.Refuse)
	must.True(t, src.State == rules.Available && !src.Stale && src.FetchedAt.Equal(s.clock.Now()), "%+v", src)
	h := s.asked[1].Header
	must.True(t, h.Get("If-None-Match") == `"v"` && h.Get("If-Modified-Since") == "Sat, 21 Nov 2026 10:00:00 GMT", "asked with %v", h)
}

// A little past its time an entry answers at once, and the site is asked once
// beside it.
func TestPolicy_StaleWhileRevalidate(t *testing.T) { // not parallel: it counts goroutines
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, rules.Standard)
		s.turns(200)
		s.shows("a file", "", rules.Refuse)
		release := make(chan struct{})
		s.turn(func(*http.Request) (*http.Response, error) {
			<-release
			return reply(404), nil
		})
		s.clock.step(time.Hour + revalidateGrace - time.Second)
		before := runtime.NumGoroutine()
		for range 1000 {
			s.shows("while the site is asked", "", rules.Refuse)
		}
		synctest.Wait()
		n := runtime.NumGoroutine() - before
		must.True(t, n <= 100, "%d goroutines wait for one answer", n)
		s.askedTimes("a thousand requests later", 2)
		close(release)
		synctest.Wait()
		s.shows("when it has answered", "", rules.Allow)
		s.askedTimes("when it has answered", 2)
	})
}

func TestPolicy_AFailureBesideACopyLeavesItStanding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, rules.Standard)
		s.turns(200)
		s.shows("a file", "", rules.Refuse)
		s.breaks()
		s.clock.step(time.Hour)
		s.shows("asked beside", "", rules.Refuse)
		synctest.Wait()
		src := s.shows("afterwards", "", rules.Refuse)
		must.True(t, src.Stale, "%+v", src)
		s.askedTimes("afterwards", 2)
		s.clock.step(75 * time.Second) // the retry is due: no request waits for a site that is down
		s.turn(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // who cannot wait has an answer all the same
		src = s.cache.Policy(ctx, site, "").Source()
		must.True(t, src.State == rules.Available && errors.Is(src.Err, errNetwork), "at the retry: %+v", src)
		s.cache.Policy(t.Context(), site, "")
		synctest.Wait()
		s.askedTimes("at the retry", 3)
		testkit.Advance(time.Minute) // the fetch gives up
	})
}

func TestPolicy_HowLongAnEntryAnswersPastItsTime(t *testing.T) {
	t.Parallel()
	lasts := func(want time.Duration, control string) {
		t.Helper()
		e := after(said(200, "Cache-Control", control))
		must.Equal(t, e.WaitAt.Sub(e.AskAt), want, "%q: past its time", control)
		must.True(t, e.WaitAt.Sub(start) <= maxLifetime, "%q: %s in all", control, e.WaitAt.Sub(start))
		must.True(t, e.use(e.AskAt.Add(-1)) == fresh && e.use(e.WaitAt) == expired && (want <= 0 || e.use(e.AskAt) == inGrace),
			"%q: before, after or between", control)
	}
	lasts(revalidateGrace, "")
	lasts(revalidateGrace, "max-age=600")
	lasts(time.Minute, "max-age=600, stale-while-revalidate=60")
	lasts(0, "max-age=600, stale-while-revalidate=0")
	lasts(12*time.Hour, "max-age=43200, stale-while-revalidate=99999999") // never past a day
	lasts(0, "max-age=86400, stale-while-revalidate=3600")
	lasts(0, "max-age=86400")
	lasts(0, "max-age=600, must-revalidate, stale-while-revalidate=60")
	lasts(0, "max-age=600, proxy-revalidate")
	lasts(0, "no-cache")
	lasts(0, "no-store")
	lasts(0, "s-maxage=600")
	lasts(time.Minute, "s-maxage=600, stale-while-revalidate=60")
}

func TestPolicy_NoStoreIsKeptForTheShortestTimeAndNeverStale(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Standard)
	s.turns(200, "Cache-Control", "no-store", "ETag", `"1"`)
	s.shows("a file", "", rules.Refuse)
	s.clock.step(minLifetime - time.Second)
	s.shows("in five minutes", "", rules.Refuse)
	s.askedTimes("in five minutes", 1)
	s.breaks()
	s.clock.step(time.Second)
	inState(t, s.shows("after that", "", rules.Refuse), rules.Unreachable)
	must.Equal(t, s.asked[1].Header.Get("If-None-Match"), "", "what may not be stored was asked for by its validator")
}

func TestPolicy_AFailingSiteIsAskedEverMoreSeldom(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Standard)
	s.turns(503)
	last := time.Duration(0)
	for n := range 12 {
		in := s.shows("failing", "", rules.Refuse).RetryAt.Sub(s.clock.Now())
		must.True(t, in >= time.Minute && in <= 15*time.Minute && in >= last*3/4, "failure %d: %s after %s", n+1, in, last)
		last = in
		s.clock.step(in - time.Second)
		s.shows("not yet", "", rules.Refuse)
		s.askedTimes("before its time", n+1)
		s.clock.step(time.Second)
	}
	must.True(t, last >= 12*time.Minute, "in the end asked every %s", last)
	s.turns(200)
	src := s.shows("well again", "", rules.Refuse)
	must.True(t, src.State == rules.Available && !src.Stale, "%+v", src)
}
