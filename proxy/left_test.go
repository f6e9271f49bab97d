package proxy

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A client that is gone while robots.txt is being fetched for it has left: the
// record blames no site, and nothing was judged. In observe mode nothing is let
// through for it either.
func TestHeed_WhoLeavesBeforeTheRulesAreHereHasLeft(t *testing.T) {
	asked, answer := make(chan bool, 10), make(chan bool)
	site := newSite(t, hello)
	r := newRigBefore(t, site, func(c *Config) { c.Policies = waiting{c.Policies, asked, answer} })
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		r := r.in(t)
		c, prefix := r.raw(m)
		path := "/left/" + string(m)
		c.Send(get(prefix, path))
		<-asked
		depart(c)
		e := r.records.target(t, path)
		if d := e.Decision; d.Verdict != rules.Refuse || d.Reason != rules.ReasonClientLeft || e.Judged != audit.NotJudged {
			t.Errorf("the record says %v, %s, judged %v", d.Verdict, d.Reason, e.Judged)
		}
	})
	close(answer)
	must.Same(t, site.reached(), nil, "what reached the site")
}

// depart makes a client go: over TLS it closes its connection, and over TCP it resets it, since
// there a close could be the end of what it sends.
func depart(c *testkit.Conn) {
	if _, secure := c.Conn.(*tls.Conn); secure {
		c.Close()
	} else {
		c.Reset()
	}
}

// A client that ends what it sends together with its request still gets the answer (RFC
// 9112 §9.6), whatever that waits for: the rules, a turn, or the site. So does one that
// ends it later, when the site has the request.
func TestHeed_AnEndWithTheRequestIsNoDeparture(t *testing.T) {
	const long = 50 * time.Millisecond // longer than watchDelay of package server
	p := &turnstile{answer: func(ctx context.Context, ask *pace.Ask) pace.Answer {
		testkit.Delay(long)
		return pace.Answer{Left: ctx.Err() != nil}
	}}
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		testkit.Delay(long)
		io.WriteString(w, "the page")
	})
	s.robots = gentle
	r := newRigBefore(t, s, func(c *Config) { c.Policies, c.Pacer = late{c.Policies, long}, p })
	r = r.with(func(p *Proxy) { p.h1.EndTime = time.Hour }) // whenever this machine sends it
	eachMode(t, []mode{plain, inTunnel}, func(t *testing.T, m mode) {
		r, path := r.in(t), "/half/"+string(m)
		c, prefix := r.raw(m)
		c.Send(get(prefix, path, slow...))
		c.CloseWrite()
		a := c.Answer("GET")
		must.True(t, a.StatusCode == 200 && string(a.Body) == "the page", "%s %q", a.Status, a.Body)
		e := r.records.target(t, path)
		must.True(t, e.Outcome.Status == 200 && e.Outcome.Err == "", "the record says %+v", e.Outcome)
	})
	arrived, goOn := make(chan bool), make(chan bool)
	r = newRig(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-goOn
		io.WriteString(w, "the page")
	})
	eachMode(t, []mode{plain, inTunnel}, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, "/later"))
		<-arrived
		c.CloseWrite()
		goOn <- true
		a := c.Answer("GET")
		must.True(t, a.StatusCode == 200 && string(a.Body) == "the page", "%s %q", a.Status, a.Body)
	})
}

// A client that ends what it sends later, while its request waits, has left: it could also be
// gone. One that still reads gets the reason.
func TestHeed_ALaterEndWhileARequestWaitsIsADeparture(t *testing.T) {
	asked, answer := make(chan bool, 1), make(chan bool)
	defer close(answer)
	r := newRig(t, hello, func(c *Config) { c.Policies = waiting{c.Policies, asked, answer} })
	r = r.with(func(p *Proxy) { p.h1.EndTime = 0 })
	c, prefix := r.raw(plain)
	c.Send(get(prefix, "/half"))
	<-asked
	c.CloseWrite()
	a := c.Answer("GET")
	want := "503 Refused by heed: the client closed its connection before the rules of site.test had arrived"
	must.True(t, a.Status == want && a.Header.Get("Retry-After") == "1",
		"%s, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
}

// late are Policies that take their time.
type late struct {
	Policies
	time time.Duration
}

// Policy implements Policies.
func (l late) Policy(ctx context.Context, o rules.Origin, agent string) *rules.Policy {
	testkit.Delay(l.time)
	if ctx.Err() != nil {
		return rules.New(rules.Source{Origin: o, State: rules.Unreachable, Err: context.Cause(ctx)}, nil)
	}
	return l.Policies.Policy(ctx, o, agent)
}

// waiting returns policies when answer is closed, and reports each question.
type waiting struct {
	Policies
	asked, answer chan bool
}

func (w waiting) Policy(ctx context.Context, o rules.Origin, agent string) *rules.Policy {
	w.asked <- true
	select {
	case <-w.answer:
		return w.Policies.Policy(ctx, o, agent)
	case <-ctx.Done():
		return rules.New(rules.Source{Origin: o, State: rules.Unreachable, Err: context.Cause(ctx)}, nil)
	}
}

// A client that has all the octets it was told of may leave: the answer is
// whole, though the site's HTTP/2 stream is still open.
func TestHeed_WhoHasAllThatWasPromisedMayLeave(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		io.WriteString(w, "whole")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	for _, m := range []mode{mitmH1, absolute} {
		t.Run(string(m), func(t *testing.T) {
			c, prefix := r.in(t).raw(m)
			path := "/whole/" + string(m)
			c.Send(get(prefix, path))
			resp := c.Head("GET")
			expect(t, resp.Body, "whole")
			depart(c)
			o := r.records.target(t, path).Outcome
			must.True(t, !o.Truncated && o.Err == "" && o.BytesOut == 5 && o.FromSite, "the record says %+v", o)
		})
	}
	t.Run(string(mitmH2), func(t *testing.T) {
		ctx, leave := context.WithCancel(context.Background())
		defer leave()
		q := must.Get(http.NewRequestWithContext(ctx, "GET", "https://site.test/whole/h2", nil))(t)
		resp := must.Get(r.in(t).h2("site.test").RoundTrip(q))(t)
		expect(t, resp.Body, "whole")
		leave()
		o := r.records.target(t, "/whole/h2").Outcome
		must.True(t, !o.Truncated && o.Err == "" && o.BytesOut == 5, "the record says %+v", o)
	})
}
