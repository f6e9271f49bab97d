package command

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"heed/proxy"
)

func openWays(t *testing.T) *egresses {
	t.Helper()
	return &egresses{cfg: &Config{}, self: &proxy.Addrs{}}
}

func byProxy(n int) way {
	return way{Proxy: &upstreamProxy{All: fmt.Sprintf("http://127.0.0.1:%d", n)}}
}

func take(t *testing.T, s *egresses, w way) *egress {
	t.Helper()
	e, err := s.take(w)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestHeed_RunsThatGoTheSameWayShareTheirPolicies(t *testing.T) {
	s := openWays(t)
	one, same, other := take(t, s, way{}), take(t, s, way{}), take(t, s, byProxy(1))
	if one != same {
		t.Error("two runs with the same way have policies of their own")
	}
	if one == other {
		t.Error("a run behind another proxy shares policies with one that is not")
	}
	s.give(one)
	s.give(same)
	if again := take(t, s, way{}); again != one {
		t.Error("the policies are gone when the next run comes")
	}
}

func TestHeed_WaysNobodyUsesAreDropped(t *testing.T) {
	s := openWays(t)
	used := take(t, s, way{})
	for i := range 20 {
		s.give(take(t, s, byProxy(i)))
	}
	if len(s.open) != maxIdleEgress+1 {
		t.Errorf("%d ways are open, want %d idle ones and the used one", len(s.open), maxIdleEgress)
	}
	if take(t, s, way{}) != used {
		t.Error("the one in use was dropped")
	}
}

func TestHeed_WaysInUseAreBounded(t *testing.T) {
	s := openWays(t)
	for i := range maxEgress {
		take(t, s, byProxy(i))
	}
	if _, err := s.take(byProxy(1000)); !errors.Is(err, errEgress) {
		t.Errorf("one more: %v", err)
	}
	take(t, s, byProxy(0)) // one that is open takes any number of users
}

func TestHeed_RootsThatAreNoneAreAnError(t *testing.T) {
	if _, err := openWays(t).take(way{Roots: "nonsense"}); err == nil {
		t.Error("no error")
	}
}

// goes returns the proxy that a request for target takes; empty for none.
func goes(t *testing.T, p *upstreamProxy, target string) string {
	t.Helper()
	choose, err := p.choice()
	if err != nil {
		t.Fatal(err)
	}
	if choose == nil {
		return ""
	}
	r, err := http.NewRequest("GET", target, nil)
	if err != nil {
		t.Fatal(err)
	}
	u, err := choose(r)
	if err != nil {
		t.Fatal(err)
	}
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
		p := upstreamOfEnviron(strings.Fields(c.environ))
		if got := goes(t, p, c.target); got != c.want {
			t.Errorf("%s: %s goes through %q, want %q", c.environ, c.target, got, c.want)
		}
	}
	if p := upstreamOfEnviron([]string{"NO_PROXY=x", "HTTPS_PROXY="}); p != nil {
		t.Errorf("an environment without a proxy gives %+v", p)
	}
}

func TestHeed_ANamedUpstreamProxyTakesEverything(t *testing.T) {
	p := &upstreamProxy{All: "http://user:pw@p:1"}
	for _, target := range []string{"http://site.test/", "https://site.test/", "http://127.0.0.1:80/", "http://localhost/"} {
		if got := goes(t, p, target); got != "http://user:pw@p:1" {
			t.Errorf("%s goes through %q", target, got)
		}
	}
	if got := goes(t, nil, "https://site.test/"); got != "" {
		t.Errorf("without one it goes through %q", got)
	}
}

func TestHeed_TheConfiguredUpstreamProxyCountsUnlessARunNamesAnother(t *testing.T) {
	environ := []string{"https_proxy=http://env:1"}
	for value, want := range map[string]string{"": "", "env": "http://env:1", "http://own:2": "http://own:2"} {
		p, err := upstreamOfConfig(&Config{Upstream: UpstreamConfig{Proxy: value}}, environ)
		if err != nil {
			t.Fatal(err)
		}
		if got := goes(t, p, "https://site.test/"); got != want {
			t.Errorf("upstream.proxy = %q leads through %q, want %q", value, got, want)
		}
	}
}
