package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/rules"
)

// serveAuthorize has other proxies ask r over HTTP, and returns the address.
func (r *rig) serveAuthorize(changes ...func(*Asked)) (addr string) {
	return r.serveAsked(r.proxy.ServeAuthorize, changes)
}

// serveAsked has other proxies ask r by serve, and returns the address.
func (r *rig) serveAsked(serve func(Asked) error, changes []func(*Asked)) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(r.t, err)
	asked := Asked{Listener: l, Trust: func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }}
	for _, change := range changes {
		change(&asked)
	}
	served := make(chan error, 1)
	go func() { served <- serve(asked) }()
	r.t.Cleanup(func() {
		r.proxy.close()
		err := <-served
		must.True(r.t, err == nil, "serving those who ask: %v", err)
	})
	return l.Addr().String()
}

// asks are the fields with which a proxy asks about a GET of site.test, for a client at
// 192.0.2.7.
func asks(target string, more ...string) []string {
	return append([]string{"X-Forwarded-Method: GET", "X-Forwarded-Proto: http", "X-Forwarded-Host: site.test",
		"X-Forwarded-Uri: " + target, "X-Forwarded-For: 203.0.113.9, 192.0.2.7"}, more...)
}

// authorized returns the answer to a question at path with the fields of header.
func (r *rig) authorized(addr, path string, header ...string) *http.Response {
	r.t.Helper()
	c := testkit.Dial(r.t, addr)
	defer c.Close()
	c.Send(requestTo("heed.test", "GET", "", path, header...))
	return c.Head("GET")
}

func TestAsked_WhatMayPassIsAnswered200AndRecordedAsNotSeen(t *testing.T) {
	r := newRig(t, func(http.ResponseWriter, *http.Request) { t.Error("heed sent a request that another proxy sends") })
	addr := r.serveAuthorize()
	for _, c := range []struct {
		path   string
		header []string
		status int
		target string
	}{
		{"/authorize", asks("/page?q=1"), 200, "/page?q=1"},
		{"/authorize", asks("/private/x"), 403, "/private/x"},
		{"/authorize", asks("/private/ok"), 200, "/private/ok"},
		{"/authorize", asks("/as-badbot", "User-Agent: BadBot/1.0"), 403, "/as-badbot"},
		{"/envoy/by-path", []string{"X-Forwarded-Proto: http", "Host: site.test"}, 400, ""}, // two Host lines
	} {
		resp := r.authorized(addr, c.path, c.header...)
		must.True(t, resp.StatusCode == c.status, "%s %s: %s, want %d", c.path, c.header, resp.Status, c.status)
		if c.target == "" {
			continue
		}
		e := r.records.target(t, c.target)
		allowed := c.status == 200
		if e.Host != "site.test" || e.Client != "192.0.2.7:0" || e.Outcome.Elsewhere != allowed || allowed && e.Outcome.Status != 0 {
			t.Errorf("%s is recorded as %+v", c.target, e)
		}
	}
	for target, want := range map[string]int{"/by-envoy": 200, "/private/by-envoy?x=1": 403} {
		c := testkit.Dial(t, addr)
		c.Send("POST /envoy" + target + " HTTP/1.1\r\nHost: site.test\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Uri: /page\r\nContent-Length: 0\r\n\r\n")
		resp := c.Head("GET")
		must.True(t, resp.StatusCode == want, "Envoy asks about %s: %s, want %d", target, resp.Status, want)
		e := r.records.target(t, target)
		must.True(t, e.Method == "POST", "%s was recorded with the method %s", target, e.Method)
	}
}

// A proxy that was set up wrongly, or whose client sends the fields of a question itself,
// gets no permission.
func TestAsked_WhatIsNoQuestionIsRefused(t *testing.T) {
	r := newRig(t, hello)
	addr := r.serveAuthorize()
	whole := asks("/page")
	for name, header := range map[string][]string{
		"nothing":         {},
		"no method":       whole[1:],
		"no scheme":       append([]string{whole[0]}, whole[2:]...),
		"no target":       whole[:3],
		"two targets":     append([]string{"X-Forwarded-Uri: /private/x"}, whole...),
		"two hosts":       append([]string{"X-Forwarded-Host: other.test"}, whole...),
		"another scheme":  append([]string{"X-Forwarded-Method: GET", "X-Forwarded-Proto: ftp"}, whole[2:]...),
		"an absolute URL": asks("http://other.test/page"),
		"no path":         asks("page"),
		"an empty target": asks(""),
		"a user":          {"X-Forwarded-Method: GET", "X-Forwarded-Proto: http", "X-Forwarded-Host: ann@site.test", "X-Forwarded-Uri: /page"},
		"a host and path": {"X-Forwarded-Method: GET", "X-Forwarded-Proto: http", "X-Forwarded-Host: site.test/x", "X-Forwarded-Uri: /page"},
		"a tunnel":        append([]string{"X-Forwarded-Method: CONNECT"}, whole[1:]...),
		"no address":      append(append([]string{}, whole[:4]...), "X-Forwarded-For: unknown"),
		"a blank":         asks("/pa ge"),
		"a fragment":      asks("/page#/private/x"), // servers cut it off
		"no token":        append([]string{"X-Forwarded-Method: G T"}, whole[1:]...),
	} {
		resp := r.authorized(addr, "/authorize", header...)
		says := map[string]string{"an empty target": "an empty X-Forwarded-Uri", "two hosts": "2 fields X-Forwarded-Host"}[name]
		must.True(t, resp.StatusCode == 400 && strings.Contains(resp.Status, says), "%s: %s, want 400 and %q", name, resp.Status, says)
	}
	for _, path := range []string{"/", "/authorize/", "/Authorize", "/envoy", "/envoy/page", "http://site.test/page"} {
		resp := r.authorized(addr, path)
		must.True(t, resp.StatusCode == 400, "%s: %s, want 400", path, resp.Status)
	}
	testkit.Until(t, "23 records", func() bool { return len(r.records.all()) == 23 })
	stranger := r.serveAuthorize(func(a *Asked) { a.Trust = func() []netip.Prefix { return nil } })
	resp := r.authorized(stranger, "/authorize", whole...)
	must.True(t, resp.StatusCode == 403, "a proxy that is not in trust got %s", resp.Status)
	e := r.records.await(t, "the stranger", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonAccess })
	must.True(t, strings.HasPrefix(e.Client, "127.0.0.1:"), "the question of a stranger is recorded as that of %s", e.Client)
}

// nginx passes on 401 and 403, and makes everything else a 500.
func TestAsked_EachRefusalIs403WhereItIsAskedFor(t *testing.T) {
	r := newPaced(t, &turnstile{answer: func(context.Context, *pace.Ask) pace.Answer {
		return pace.Answer{Refused: true, RetryAfter: time.Minute, Position: pace.Position{Wait: time.Minute}, Owed: time.Minute}
	}})
	addr := r.serveAuthorize()
	for path, want := range map[string]int{"/authorize": 429, "/authorize?refuse=403": 403} {
		if resp := r.authorized(addr, path, asks("/page", slow...)...); resp.StatusCode != want || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s, Retry-After %q, want %d", path, resp.Status, resp.Header.Get("Retry-After"), want)
		}
	}
}

func TestAsked_AnAnswerWaitsForItsTurn(t *testing.T) {
	p := &turnstile{answer: atOnce}
	r := newPaced(t, p)
	brief := time.Second
	addr := r.serveAuthorize(func(a *Asked) { a.Patience = func() *time.Duration { return &brief } })
	resp := r.authorized(addr, "/authorize", asks("/page", slow...)...)
	must.Need(t, resp.StatusCode == 200, "%s", resp.Status)
	must.Equal(t, p.ended(t), "going, started, ended", "its turn")
	if ask := p.asked[0]; ask.Patience == nil || *ask.Patience != brief || ask.Who.Address != "192.0.2.7" {
		t.Errorf("its turn was asked for with %+v", ask)
	}
	p.late.Store(true)
	if resp := r.authorized(addr, "/authorize", asks("/late", slow...)...); resp.StatusCode != 200 || len(p.asked) != 3 {
		t.Errorf("a turn that was over: %s, and %d were taken, want 3", resp.Status, len(p.asked))
	}
}

// What a page states of its use is in an answer that heed does not see.
func TestAsked_AClientWithAPurposeIsRefusedUnlessTheOperatorLetsIt(t *testing.T) {
	for _, allow := range []bool{false, true} {
		r := newRig(t, hello, purposeOf(signal.Purposes()[0]))
		addr := r.serveAuthorize(func(a *Asked) { a.UseUnseen = func() bool { return allow } })
		want := map[bool]int{false: 403, true: 200}[allow]
		resp := r.authorized(addr, "/authorize", asks("/page")...)
		must.True(t, resp.StatusCode == want, "allowed %v: %s, want %d", allow, resp.Status, want)
	}
}

// The limits of a client are its own, not those of the proxy through which all come.
func TestAsked_EachClientHasItsOwnLimits(t *testing.T) {
	enter, leave := make(chan bool), make(chan bool)
	p := &turnstile{answer: func(ctx context.Context, q *pace.Ask) pace.Answer {
		enter <- true
		<-leave
		return atOnce(ctx, q)
	}}
	r := newPaced(t, p, func(c *Config) { c.Limits = limit.Limits{RequestsPerClient: 1}; settle(c, &acl.Rules{}) })
	addr := r.serveAuthorize()
	var wait sync.WaitGroup
	wait.Go(func() { r.authorized(addr, "/authorize", asks("/held", slow...)...) })
	<-enter
	resp := r.authorized(addr, "/authorize", asks("/second")...)
	must.True(t, resp.StatusCode == 429, "a second request of one client: %s, want 429", resp.Status)
	resp = r.authorized(addr, "/authorize", append(asks("/other")[:4], "X-Forwarded-For: 192.0.2.8")...)
	must.True(t, resp.StatusCode == 200, "a request of another client: %s, want 200", resp.Status)
	close(leave)
	wait.Wait()
}

// The proxy that heed's own fetch goes through may ask heed about it: there is no record of that
// question, and it passes once.
func TestAsked_AFetchOfHeedsOwnPassesOnce(t *testing.T) {
	own := &upstream.OwnFetches{}
	r := newRig(t, hello, func(c *Config) { c.Fetches = own })
	addr := r.serveAuthorize()
	site, other := rules.Origin{Scheme: "http", Host: "site.test", Port: 80}, rules.Origin{Scheme: "http", Host: "other.test", Port: 80}
	value, end := own.Begin(site)
	for i, want := range []int{200, 403} {
		resp := r.authorized(addr, "/authorize", asks("/private/x", "Heed-Fetch: "+value)...)
		must.True(t, resp.StatusCode == want, "question %d: %s, want %d", i+1, resp.Status, want)
	}
	late, ended := own.Begin(site)
	ended()
	end()
	foreign, end := own.Begin(other) // which that site has got
	defer end()
	for _, value := range []string{late, foreign, "", "guessed"} {
		resp := r.authorized(addr, "/authorize", asks("/private/x", "Heed-Fetch: "+value)...)
		must.True(t, resp.StatusCode == 403, "%q passes as a fetch of heed's own: %s", value, resp.Status)
	}
	value, end = own.Begin(site)
	defer end()
	stranger := r.serveAuthorize(func(a *Asked) { a.Trust = func() []netip.Prefix { return nil } })
	resp := r.authorized(stranger, "/authorize", asks("/page", "Heed-Fetch: "+value)...)
	must.True(t, resp.StatusCode == 403, "a fetch passes for a proxy that is not in trust: %s", resp.Status)
	testkit.Until(t, "six records", func() bool { return len(r.records.all()) == 6 })
}
