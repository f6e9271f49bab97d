package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// town is a server of all sites, which notes what it is asked for.
type town struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

// newTown returns a town whose sites answer with h, and a cache whose fetches end there.
func newTown(t *testing.T, h http.HandlerFunc, turn func(context.Context, Visit) (context.Context, func(), error)) (*town, *Cache) {
	w := &town{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, r.Host+r.URL.String())
		w.mu.Unlock()
		h(rw, r)
	}))
	t.Cleanup(w.Close)
	tr := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, w.Listener.Addr().String())
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return w, New(Config{Transport: tr, Turn: turn})
}

// at returns what a host was asked for, in order.
func (w *town) at(host string) (targets []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		if target, ok := strings.CutPrefix(s, host); ok {
			targets = append(targets, target)
		}
	}
	return targets
}

// sentTo answers robots.txt with a redirect, except at victim.test.
func sentTo(format string, robots string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != "victim.test":
			name, _, _ := strings.Cut(r.Host, ".")
			http.Redirect(w, r, fmt.Sprintf(format, name), http.StatusFound)
		case r.URL.Path == "/robots.txt":
			io.WriteString(w, robots)
		default:
			io.WriteString(w, file)
		}
	}
}

func policyOf(t *testing.T, c *Cache, host string) rules.Source {
	t.Helper()
	return c.Policy(t.Context(), originOf(t, "http://"+host), "").Source()
}

// A site with many names cannot have heed ask another one for what its robots.txt disallows.
func TestVisit_TheHostsOwnRobotsTxtIsAskedFirst(t *testing.T) {
	t.Parallel()
	w, c := newTown(t, sentTo("http://victim.test/private/%.9s", file), nil)
	for n := range 60 {
		s := policyOf(t, c, fmt.Sprintf("n%d.test", n))
		must.Need(t, s.State == rules.Unreachable && strings.Contains(s.Err.Error(), "does not let heed fetch"),
			"%v %v", s.State, s.Err)
	}
	must.Same(t, w.at("victim.test"), []string{"/robots.txt"}, "the site was asked for")
}

// A file to which many sites redirect is requested once for all of them.
func TestVisit_OneURLIsRequestedOnce(t *testing.T) {
	t.Parallel()
	w, c := newTown(t, sentTo("http://victim.test/shops%.0s", "User-agent: *\nDisallow: /private\n"), nil)
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() {
			s := policyOf(t, c, fmt.Sprintf("n%d.test", n))
			must.True(t, s.State == rules.Available, "%v %v", s.State, s.Err)
		})
	}
	all.Wait()
	must.Same(t, w.at("victim.test"), []string{"/robots.txt", "/shops"}, "the site was asked for")
}

// The robots.txt of a host that is only redirected to is not looked for at a third one.
func TestVisit_NoThirdHostIsAsked(t *testing.T) {
	t.Parallel()
	w, c := newTown(t, func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{"first.test": "http://second.test/file", "second.test": "http://third.test/robots.txt"}[r.Host]
		http.Redirect(w, r, to, http.StatusFound)
	}, nil)
	s := policyOf(t, c, "first.test")
	must.True(t, s.State == rules.Unreachable, "%v %v", s.State, s.Err)
	must.Same(t, w.at("third.test"), nil, "asked of the third site")
	must.Same(t, w.at("second.test"), []string{"/robots.txt"}, "the second site was asked for")
}

// A host may have its robots.txt elsewhere, and what others redirect to as well.
func TestVisit_ARobotsTxtThatRedirectsWithinItsHost(t *testing.T) {
	t.Parallel()
	w, c := newTown(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Host + r.URL.Path {
		case "first.test/robots.txt", "second.test/robots.txt":
			http.Redirect(w, r, "http://second.test/file", http.StatusFound)
		default:
			io.WriteString(w, file)
		}
	}, nil)
	s := policyOf(t, c, "first.test")
	must.True(t, s.State == rules.Available, "%v %v", s.State, s.Err)
	must.Same(t, w.at("second.test"), []string{"/robots.txt", "/file", "/file"}, "the second site was asked for")
}

// A visit has a turn under the delay that its host asks of heed; without one the policy is
// unreachable, for that cause. Another scheme or "www." is no other host.
func TestVisit_TakesATurn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var turns []Visit
	late := errors.New("no turn came")
	turn := func(ctx context.Context, v Visit) (context.Context, func(), error) {
		mu.Lock()
		defer mu.Unlock()
		turns = append(turns, v)
		if len(turns) > 2 {
			return nil, nil, late
		}
		return ctx, func() {}, nil
	}
	_, c := newTown(t, sentTo("http://victim.test/files/%s", "User-agent: heed\nCrawl-delay: 10\n"), turn)
	s := policyOf(t, c, "one.test")
	must.True(t, s.State == rules.Available, "%v %v", s.State, s.Err)
	s = policyOf(t, c, "two.test")
	must.True(t, s.State == rules.Unreachable && errors.Is(s.Err, late), "%v %v", s.State, s.Err)
	must.Need(t, len(turns) == 3 && turns[0].RobotsTxt && !turns[1].RobotsTxt && len(turns[1].Hints) == 1 && len(turns[2].Hints) == 1,
		"turns %+v", turns)
	d, _ := turns[2].Hints[0].Delay(time.Now())
	must.True(t, d == 10*time.Second, "a delay of %v", d)
	home, c := newTown(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "site.test" {
			http.Redirect(w, r, "http://www.site.test/robots.txt", http.StatusMovedPermanently)
			return
		}
		io.WriteString(w, file)
	}, turn)
	if s := policyOf(t, c, "site.test"); s.State != rules.Available || len(home.at("www.site.test")) != 1 || len(turns) != 3 {
		t.Errorf("%v %v, turns %+v", s.State, s.Err, turns)
	}
}

// Only the robots.txt of the host itself is requested before the delay that the host asks for
// is known. A file of that name elsewhere, or with a query, is not.
func TestVisit_ADelayIsKnownBeforeOtherFiles(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"http://victim.test/shops/%s/robots.txt", "http://victim.test/robots.txt?%s"} {
		var turns []Visit
		_, c := newTown(t, sentTo(at, "User-agent: *\nDisallow: /shops/\nCrawl-delay: 10\n"), func(ctx context.Context, v Visit) (context.Context, func(), error) {
			turns = append(turns, v)
			return ctx, func() {}, nil
		})
		s := policyOf(t, c, "one.test")
		must.True(t, s.State == rules.Available, "%v %v", s.State, s.Err)
		must.True(t, len(turns) == 2 && turns[0].RobotsTxt && !turns[1].RobotsTxt && len(turns[1].Hints) == 1,
			"%s: turns %+v", at, turns)
	}
}

// The URLs of one origin that others name are bounded within an hour.
func TestVisit_DistinctURLsAreBounded(t *testing.T) {
	t.Parallel()
	w, c := newTown(t, sentTo("http://victim.test/%s/robots.txt", file), nil)
	refused := 0
	for n := range maxVisits + 5 {
		if s := policyOf(t, c, fmt.Sprintf("n%d.test", n)); s.State == rules.Unreachable {
			if refused++; !strings.Contains(s.Err.Error(), "URLs of within") {
				t.Fatal(s.Err)
			}
		}
	}
	seen := w.at("victim.test")
	must.True(t, len(seen) == maxVisits && seen[0] == "/robots.txt" && refused == 6, "%d requests, %d refused", len(seen), refused)
}

// Many other origins do not have the count of one forgotten.
func TestVisit_ManyOriginsDoNotHaveOneForgotten(t *testing.T) {
	t.Parallel()
	var v visits
	now := time.Now()
	victim := rules.Origin{Scheme: "http", Host: "victim.test", Port: 80}
	for range maxVisits {
		must.OK(t, v.count(victim, now))
	}
	for n := range 3 * maxVisitHosts {
		must.OK(t, v.count(rules.Origin{Scheme: "http", Host: fmt.Sprintf("n%d.test", n), Port: 80}, now))
	}
	must.True(t, len(v.made) == maxVisitHosts && v.count(victim, now) != nil,
		"%d origins, and the victim may be visited again", len(v.made))
}

// A document at another host than the one that names it is a visit as well, and what is
// fetched for one site is there for the next.
func TestDocument_AtAnotherHostIsAVisit(t *testing.T) {
	t.Parallel()
	turns := 0
	w, c := newTown(t, sentTo("", file), func(ctx context.Context, _ Visit) (context.Context, func(), error) {
		turns++
		return ctx, func() {}, nil
	})
	u, _ := url.Parse("http://victim.test/licence.xml")
	for _, by := range []string{"one.test", "two.test", "one.test"} {
		status, body, err := c.Document(t.Context(), by, u, 1<<10, func(context.Context, *url.URL) error { return nil })
		must.True(t, status == http.StatusOK && string(body) == file && err == nil, "%d %q %v", status, body, err)
	}
	if seen := w.at("victim.test"); !slices.Equal(seen, []string{"/robots.txt", "/licence.xml"}) || turns != 2 {
		t.Errorf("the site was asked for %q, with %d turns", seen, turns)
	}
}
