package proxy

import (
	"context"
	"io"
	"net/http"
	"testing"

	"heed/internal/audit"
	"heed/rules"
)

// A client that leaves while robots.txt is being fetched for it has left: the
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
		c.Close()
		e := r.records.target(t, path)
		if d := e.Decision; d.Verdict != rules.Refuse || d.Reason != rules.ReasonClientLeft || e.Judged != audit.NotJudged {
			t.Errorf("the record says %v, %s, judged %v", d.Verdict, d.Reason, e.Judged)
		}
	})
	close(answer)
	if got := site.reached(); len(got) > 0 {
		t.Errorf("reached the site: %v", got)
	}
}

// A client that closes only its sending direction still reads the answer.
func TestHeed_AClientThatClosedItsSideGetsTheReason(t *testing.T) {
	asked, answer := make(chan bool, 1), make(chan bool)
	defer close(answer)
	r := newRig(t, hello, func(c *Config) { c.Policies = waiting{c.Policies, asked, answer} })
	c, prefix := r.raw(plain)
	c.Send(get(prefix, "/half"))
	<-asked
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	a := c.Answer("GET")
	want := "503 Refused by heed: the client closed its connection before the rules of site.test had arrived"
	if a.Status != want || a.Header.Get("Retry-After") != "1" {
		t.Errorf("%s, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
	}
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
			c.Close()
			if o := r.records.target(t, path).Outcome; o.Truncated || o.Err != "" || o.BytesOut != 5 || !o.FromSite {
				t.Errorf("the record says %+v", o)
			}
		})
	}
	t.Run(string(mitmH2), func(t *testing.T) {
		ctx, leave := context.WithCancel(context.Background())
		defer leave()
		q, err := http.NewRequestWithContext(ctx, "GET", "https://site.test/whole/h2", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := r.in(t).h2("site.test").RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, resp.Body, "whole")
		leave()
		if o := r.records.target(t, "/whole/h2").Outcome; o.Truncated || o.Err != "" || o.BytesOut != 5 {
			t.Errorf("the record says %+v", o)
		}
	})
}
