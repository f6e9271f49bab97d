package route

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"heed/cache"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/pace"
	"heed/internal/tools/testkit/fixture"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func emptyPool(t *testing.T) *Pool {
	t.Helper()
	return &Pool{cfg: &config.Config{}, Options: Options{Self: &acl.Addrs{}}, known: map[string]weak.Pointer[Route]{}}
}

func byProxy(n int) control.RouteSpec {
	return control.RouteSpec{Proxy: &control.UpstreamProxy{All: fmt.Sprintf("http://127.0.0.1:%d", n)}}
}

func take(t *testing.T, s *Pool, w control.RouteSpec) *Route {
	t.Helper()
	return must.Get(s.Route(w))(t)
}

func TestHeed_RunsWithTheSameRouteSharePolicies(t *testing.T) {
	s := emptyPool(t)
	one, same, other := take(t, s, control.RouteSpec{}), take(t, s, control.RouteSpec{}), take(t, s, byProxy(1))
	must.Equal(t, one, same, "two runs with the same route have separate policies")
	must.True(t, one != other, "a run behind another proxy shares policies with one that is not")
	must.Equal(t, take(t, s, control.RouteSpec{}), one, "the policies are gone when the next run comes")
}

// The routes that are kept open are bounded. One that is not among them any more is found as long
// as somebody uses it: what is done to all routes is done to it.
func TestHeed_OpenRoutesAreBounded(t *testing.T) {
	s := emptyPool(t)
	kept, used := take(t, s, control.RouteSpec{}), take(t, s, byProxy(0))
	for i := range 3 * maxRoutes {
		take(t, s, byProxy(i+1))
		must.Need(t, take(t, s, control.RouteSpec{}) == kept, "a route that is requested again and again was closed")
	}
	must.True(t, len(s.open) == maxRoutes && !slices.Contains(s.open, used),
		"%d routes are open, want %d, without one that was not requested for long", len(s.open), maxRoutes)
	must.True(t, slices.Contains(s.All(), used), "a route in use is not among all")
	must.Equal(t, take(t, s, byProxy(0)), used, "a route in use was opened again: its policies and connections are not shared")
	runtime.GC()
	if take(t, s, byProxy(1)); len(s.known)-len(s.open) > 1 { // the one before the oldest that is open
		t.Errorf("%d routes that are not in use are remembered", len(s.known)-len(s.open)-1)
	}
	runtime.KeepAlive(used)
}

func TestHeed_RootsThatAreNoneAreAnError(t *testing.T) {
	_, err := emptyPool(t).Route(control.RouteSpec{Roots: "nonsense"})
	must.True(t, err != nil, "no error")
}

// goes returns the proxy that a request for target takes; empty for none.
func goes(t *testing.T, p *control.UpstreamProxy, target string) string {
	t.Helper()
	choose := must.Get(proxyFunc(p))(t)
	if choose == nil {
		return ""
	}
	r := must.Get(http.NewRequest("GET", target, nil))(t)
	u := must.Get(choose(r))(t)
	if u == nil {
		return ""
	}
	return u.String()
}

func TestHeed_UpstreamProxyIsReadAsClientsReadIt(t *testing.T) {
	cases := []struct {
		environ string
		target  string
		want    string
	}{
		{"https_proxy=http://p:1", "https://site.test/", "http://p:1"},
		{"https_proxy=http://p:1", "http://site.test/", ""},
		{"HTTPS_PROXY=http://p:1 https_proxy=http://q:2", "https://site.test/", "http://q:2"},
		{"HTTP_PROXY=p:1", "http://site.test/", "http://p:1"},
		{"ALL_PROXY=socks5://p:1", "https://site.test/", "socks5://p:1"},
		{"ALL_PROXY=http://p:1 HTTPS_PROXY=http://q:2", "https://site.test/", "http://q:2"},
		{"ALL_PROXY=http://p:1 NO_PROXY=.site.test", "https://www.site.test/", ""},
	}
	for _, c := range cases {
		p := ProxyOfEnviron(strings.Fields(c.environ))
		must.Equal(t, goes(t, p, c.target), c.want, "%s: %s goes through", c.environ, c.target)
	}
	p := ProxyOfEnviron([]string{"NO_PROXY=x", "HTTPS_PROXY="})
	must.True(t, p == nil, "an environment without a proxy gives %+v", p)
}

func TestHeed_ANamedUpstreamProxyTakesEverything(t *testing.T) {
	p := &control.UpstreamProxy{All: "http://user:pw@p:1"}
	for _, target := range []string{"http://site.test/", "https://site.test/", "http://127.0.0.1:80/", "http://localhost/"} {
		must.Equal(t, goes(t, p, target), "http://user:pw@p:1", "%s goes through", target)
	}
	must.Equal(t, goes(t, nil, "https://site.test/"), "", "without one it goes through")
}

func TestHeed_TheConfiguredUpstreamProxyCountsUnlessARunNamesAnother(t *testing.T) {
	environ := []string{"https_proxy=http://env:1"}
	for value, want := range map[string]string{"": "", "env": "http://env:1", "http://own:2": "http://own:2"} {
		p := must.Get(configuredProxy(&config.Config{Upstream: config.UpstreamConfig{Proxy: value}}, environ))(t)
		must.Equal(t, goes(t, p, "https://site.test/"), want, "upstream.proxy = %q leads through", value)
	}
}

// Policies that were fetched over one route are not used on another.
func TestHeed_HostsWithASeparateRouteMakeAnotherRoute(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []string{
		"",
		"upstream = \"direct\"",
		"upstream = \"http://p.example:1\"",
		"upstream_tls = \"unverified\"\nreason = \"a test\"",
		"upstream_tls = \"sha256:" + strings.Repeat("0", 64) + "\"\nreason = \"a test\"",
	} {
		pool := must.Get(NewPool(fixture.Settings(t, "[[host]]\nmatch = [\"a.test\"]\nmode = \"observe\"\n"+c+"\n"), nil, Options{}))(t)
		id := must.Get(pool.identity(control.RouteSpec{}))(t)
		other, twice := seen[id]
		must.True(t, !twice, "%q and %q are one route", c, other)
		seen[id] = c
	}
	plain := must.Get(NewPool(fixture.Settings(t, ""), nil, Options{}))(t)
	id, err := plain.identity(control.RouteSpec{})
	must.True(t, err == nil && seen[id] == "", "settings of hosts without a route make another one, %v", err)
}

// A reload that changes [pacing] alone keeps the routes. The turns that heed takes for a
// robots.txt to which a site redirects follow the new settings too, when it has succeeded.
func TestHeed_AReloadChangesThePaceOfHeedsOwnVisits(t *testing.T) {
	settings := func(delay time.Duration) *config.Config {
		cfg := &config.Config{}
		cfg.Pacing.MinDelay, cfg.Pacing.MaxDelay, cfg.Pacing.MaxWait = delay, time.Hour, time.Hour
		return cfg
	}
	before := must.Get(Renew(nil, settings(0), nil, Options{Turns: pace.New(pace.Config{})}))(t)
	slower := settings(time.Hour)
	after, err := Renew(before, slower, nil, Options{})
	must.Need(t, err == nil && after == before, "%p, not %p: %v", after, before, err)
	v := cache.Visit{Origin: rules.Origin{Scheme: "http", Host: "site.test", Port: 80}}
	visit := func(host string) error {
		v.Origin.Host = host
		turned, end, err := after.visitTurn(t.Context(), v)
		if err != nil {
			return err
		}
		if turn, ok := turned.Value(turnKey{}).(pace.Turn); ok {
			turn.Started()
		}
		end()
		return nil
	}
	for range 2 {
		must.OK(t, visit("a.test"), "settings that are not in effect yet")
	}
	after.Pace(&slower.Pacing.Settings)
	must.OK(t, visit("b.test"))
	must.Equal(t, visit("b.test"), errNoTurn, "the second visit does not wait for an hour")
}
