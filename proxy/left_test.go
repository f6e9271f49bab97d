package proxy

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"heed/internal/audit"
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

// A client that ends what it sends when the site has its request still gets the answer (RFC
// 9112 §9.6).
func TestHeed_AnEndAfterTheRequestIsNoDeparture(t *testing.T) {
	arrived, goOn := make(chan bool), make(chan bool)
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-goOn
		io.WriteString(w, "the page")
	})
	eachMode(t, []mode{plain, inTunnel}, func(t *testing.T, m mode) {
		path := "/half/" + string(m)
		c, prefix := r.in(t).raw(m)
		c.Send(get(prefix, path))
		<-arrived
		c.CloseWrite()
		goOn <- true
		a := c.Answer("GET")
		must.True(t, a.StatusCode == 200 && string(a.Body) == "the page", "%s %q", a.Status, a.Body)
		o := r.records.target(t, path).Outcome
		must.True(t, o.Status == 200 && o.Err == "", "the record says %+v", o)
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
