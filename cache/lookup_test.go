package cache

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// These tests cover the choices that RFC 9309 leaves in fetching a robots.txt;
// stale_test.go covers those in keeping it.

// scene is one site, what it says now, and a cache whose clock is stepped.
type scene struct {
	t     *testing.T
	cache *Cache
	clock *stepped

	mu    sync.Mutex
	says  func(*http.Request) (*http.Response, error)
	asked []*http.Request
}

func newScene(t *testing.T, profile rules.Profile) *scene {
	return sceneOf(t, Config{Profile: profile, UserAgent: DefaultUserAgent("https://example.org/bots")})
}

func sceneOf(t *testing.T, config Config) *scene {
	s := &scene{t: t}
	config.Transport = transport(func(r *http.Request) (*http.Response, error) {
		if by, ok := r.Context().Value(signKey{}).(testSigner); ok {
			r.Header.Set("Signed", string(by))
		}
		s.mu.Lock()
		s.asked = append(s.asked, r)
		says := s.says
		s.mu.Unlock()
		return says(r)
	})
	s.cache, s.clock = newCache(t, config)
	return s
}

// turns has the site answer with a status and header fields from now on.
func (s *scene) turns(status int, fields ...string) {
	s.turn(func(*http.Request) (*http.Response, error) { return reply(status, fields...), nil })
}

func (s *scene) turn(says func(*http.Request) (*http.Response, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says = says
}

func (s *scene) breaks() {
	s.turn(func(*http.Request) (*http.Response, error) { return nil, errNetwork })
}

func reply(status int, fields ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: said(status, fields...).header, Body: http.NoBody}
	if status == 200 {
		r.Body = io.NopCloser(strings.NewReader(file))
		r.ContentLength = int64(len(file))
	}
	return r
}

func (s *scene) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// shows asks for the policy of the site as userAgent, and fails the test unless
// /private is judged as told.
func (s *scene) shows(when string, userAgent string, want rules.Verdict) rules.Source {
	s.t.Helper()
	p := s.cache.Policy(s.t.Context(), site, userAgent)
	if d := p.Decide(rules.Identify(userAgent), rules.NewTarget("/private/x")); d.Verdict != want {
		s.t.Errorf("%s: %v (%s), want %v: %+v", when, d.Verdict, d.Reason, want, p.Source())
	}
	return p.Source()
}

// inState fails unless a source is in the state, and says the whole of it.
func inState(t *testing.T, src rules.Source, want rules.State, what ...any) {
	t.Helper()
	must.True(t, src.State == want, "%v: state %d, want %d: %+v", what, src.State, want, src)
}

func (s *scene) askedTimes(when string, want int) {
	s.t.Helper()
	must.Equal(s.t, s.count(), want, "%s: times the site was asked", when)
}

func TestPolicy_ADenialIsRetriedOnceAsTheClientAndKeptForItAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Standard)
	s.turn(func(r *http.Request) (*http.Response, error) {
		switch {
		case strings.HasPrefix(r.UserAgent(), "Welcome/"):
			return reply(200), nil
		case r.UserAgent() == "Tired/1":
			return reply(503), nil
		}
		return reply(403), nil
	})
	src := s.shows("who is let in", "Welcome/1", rules.Refuse)
	must.Equal(t, src.RetriedAs, "Welcome/1", "retried as")
	s.askedTimes("ourselves and the client", 2)
	for name := range s.asked[1].Header {
		must.True(t, name == "User-Agent" || name == "Accept" || name == "Accept-Encoding", "of the client's, %s is sent", name)
	}
	s.shows("another version of it", "Welcome/2", rules.Refuse)
	s.askedTimes("the same product", 2)
	s.shows("another client", "Other/1", rules.Allow)
	s.askedTimes("another product", 3)
	for _, name := range []string{"", DefaultUserAgent("https://example.org/bots"), "bro\x00ken"} {
		must.Equal(t, s.shows(name, name, rules.Allow).RetriedAs, "", "%q: retried as", name)
	}
	held := s.cache.Held(site)
	must.True(t, len(held) == 1 && held[0].Source().RetriedAs == "Welcome/1", "%d files are held for named clients", len(held))
	s.askedTimes("no name, heed's own, and none that can be sent", 3)
	for range 2 {
		inState(t, s.shows("a failure for the client", "Tired/1", rules.Refuse), rules.Unreachable)
	}
	s.askedTimes("a third product", 4)
	s.clock.step(2 * time.Hour)
	s.shows("two hours on", "Welcome/1", rules.Refuse)
	s.askedTimes("two hours on, as ourselves and as the client", 6)
}

func TestPolicy_AClientThatInventsNamesDoesNotMakeHeedAskUnderAllOfThem(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Standard)
	s.turns(403)
	for n := range 10 * maxVariants {
		src := s.shows("many clients", fmt.Sprintf("c%dx/1", n), rules.Allow)
		must.Equal(t, src.NameNotAsked, n >= maxVariants, "name %d: not asked", n+1)
	}
	s.askedTimes("heed's own name and as many as are kept", 1+maxVariants)
	s.shows("a name that is kept", "c0x/1", rules.Allow)
	s.askedTimes("a name that is kept", 1+maxVariants)
	s.clock.step(namesTime)
	must.True(t, !s.shows("an hour later", "late/1", rules.Allow).NameNotAsked, "an hour later no new name is asked")
	n := len(s.cache.store.find(site).all()) - 1
	must.True(t, n <= maxVariants, "%d variants", n)
}

func TestPolicy_VaryUserAgentAddsTheAgentToTheKey(t *testing.T) {
	t.Parallel()
	s := newScene(t, rules.Standard)
	s.turn(func(r *http.Request) (*http.Response, error) {
		switch r.UserAgent() {
		case "Guest/1":
			free := reply(200, "Vary", "Accept-Encoding, user-agent")
			free.Body, free.ContentLength = io.NopCloser(strings.NewReader("User-agent: *\nAllow: /\n")), -1
			return free, nil
		case "Banned/1":
			return reply(403), nil
		case "Broken/1":
			return reply(500), nil
		}
		return reply(200, "Vary", "Accept-Encoding, user-agent"), nil
	})
	s.shows("by its own file", "Guest/1", rules.Allow)
	s.shows("by a file like ours", "Plain/1", rules.Refuse)
	s.shows("denied: by ours", "Banned/1", rules.Refuse)
	inState(t, s.shows("no answer: by ours", "Broken/1", rules.Refuse), rules.Available)
	s.askedTimes("once each", 5)
	for range 3 {
		s.shows("again", "Guest/2", rules.Allow)
		s.shows("again", "Plain/2", rules.Refuse)
		s.shows("again", "Banned/2", rules.Refuse)
	}
	s.askedTimes("while fresh", 5)
	s.breaks()
	s.clock.step(2 * time.Hour)
	s.shows("while it is down, by its own last copy", "Guest/1", rules.Allow)
	s.askedTimes("as ourselves and as the client", 7)
	s.turns(200)
	s.clock.step(2 * time.Hour)
	s.shows("when every client gets the same file", "Guest/1", rules.Refuse)
	s.askedTimes("as ourselves alone", 8)
}

func TestPolicy_401And403AllowAfterTheRetry(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403} {
		for profile, want := range map[rules.Profile]rules.Verdict{rules.Standard: rules.Allow, rules.Google: rules.Allow, rules.Strict: rules.Refuse} {
			s := newScene(t, profile)
			s.turns(status)
			src := s.shows(fmt.Sprint(profile, status), "Client/1", want)
			s.askedTimes("as ourselves and as the client", 2)
			must.True(t, profile != rules.Strict || src.Err != nil && src.RetryAt.Equal(start.Add(time.Hour)),
				"strict: %+v", src)
		}
	}
	s := newScene(t, rules.Strict)
	s.turns(200)
	s.shows("a file", "", rules.Refuse)
	s.turns(403)
	s.clock.step(2 * time.Hour)
	inState(t, s.shows("strict: what was read before says nothing now", "", rules.Refuse), rules.Unreachable)
}
