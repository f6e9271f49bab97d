package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unsafe"

	"heed/internal/tools/testkit/must"
	"heed/proxy/refusal"
	"heed/rules"
)

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello from %s", r.RequestURI) }

// An exchange is allocated for every request, in the size class of 1,792 octets of the Go
// runtime; the next one has 2,048, which each request would take. A field that exceeds it
// can be a pointer where most requests do not have it.
func TestAnExchangeFitsItsSizeClass(t *testing.T) {
	n := unsafe.Sizeof(exchange{})
	must.True(t, n <= 1792, "an exchange has %d octets", n)
}

// A client fetches an allowed page and is refused a disallowed one, by each of
// the five ways to a site.
func TestHeed_AllowsAndRefusesInEveryMode(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.raw(m)
		c.Send(get(prefix, "/public?q=1", "User-Agent: curl/8"))
		if a := c.Answer("GET"); a.StatusCode != 200 || string(a.Body) != "hello from /public?q=1" {
			t.Fatalf("public page: %s %q", a.Status, a.Body)
		}
		c.Send(get(prefix, "/private/page", "User-Agent: curl/8"))
		a := c.Answer("GET")
		must.Equal(t, a.Status, "403 Refused by heed: robots.txt line 3 Disallow: /private", "status line")
		c.Send(get(prefix, "/private/ok", "User-Agent: curl/8"))
		must.Status(t, c.Answer("GET").Response, 200, "after a refusal the same connection must go on")
		c.Send(get(prefix, "/public", "User-Agent: Mozilla/5.0 (compatible; BadBot/1.0; +http://bad.example/)"))
		must.Status(t, c.Answer("GET").Response, 403, "BadBot is shut out of everything")
	})
	t.Run("h2", func(t *testing.T) {
		c := r.client(mitmH2)
		resp, err := c.Get("https://site.test/public")
		must.Need(t, err == nil && resp.StatusCode == 200 && resp.ProtoMajor == 2, "public page: %v %v", resp, err)
		resp, err = c.Get("https://site.test/private/x")
		must.Need(t, err == nil && resp.StatusCode == 403, "private page: %v %v", resp, err)
	})
	for _, seen := range r.site.reached() {
		must.True(t, !strings.Contains(seen, "/private/page") && !strings.Contains(seen, "/private/x"),
			"a disallowed request reached the site: %s", seen)
	}
}

// The body of a refusal contains everything a reviewer needs, the sentence first.
func TestHeed_RefusalNamesRuleLineGroupAndDecision(t *testing.T) {
	r := newRig(t, hello)
	req, _ := http.NewRequest("GET", "http://site.test/private/page", nil)
	req.Header.Set("User-Agent", "AnyBot/1.0")
	resp := must.Get(r.client(plain).Do(req))(t)
	body, _ := io.ReadAll(resp.Body)
	must.True(t, strings.HasPrefix(string(body), "{\n  \"title\": \"Refused by heed: robots.txt line 3 Disallow: /private\""),
		"the sentence comes first, got %s", body)
	var p refusal.Problem
	must.OK(t, json.Unmarshal(body, &p))
	e := r.records.target(t, "/private/page")
	if p.Line != 3 || p.Quoted == nil || p.Quoted.Rule != "Disallow: /private" || p.Quoted.Group != "*" ||
		p.RobotsURL != "http://site.test/robots.txt" || p.PolicyAge == nil || p.Retry != "no" ||
		p.DecisionID != e.ID.String() || p.Status != 403 {
		t.Errorf("incomplete problem: %s", body)
	}
	if e.Decision.Verdict != rules.Refuse || e.Outcome.Status != 403 || e.Outcome.FromSite || int(e.Outcome.BytesOut) != len(body) {
		t.Errorf("record: %+v", e)
	}
	must.Equal(t, resp.Header.Get("Content-Type"), "application/problem+json", "Content-Type")
}

// Each method is judged, and OPTIONS for the whole site as its path "/".
func TestHeed_EveryMethodIsJudged(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		r := r.in(t)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"} {
			c, prefix := r.raw(m)
			c.Send(rawRequest(method, prefix, "/private"))
			must.Status(t, c.Answer(method).Response, http.StatusForbidden, method)
		}
		if m != mitmH1 && m != inTunnel {
			return // there the target names a host
		}
		for agent, want := range map[string]int{"BadBot/1.0": http.StatusForbidden, "GoodBot/1.0": http.StatusOK} {
			c, _ := r.raw(m)
			c.Send(rawRequest("OPTIONS", "", "*", "User-Agent: "+agent))
			must.Status(t, c.Answer("OPTIONS").Response, want, "OPTIONS * of %s", agent)
		}
	})
	for _, a := range r.site.requests() {
		must.True(t, a.Target != "/private", "%s /private arrived", a.Method)
	}
}

// Signatures of a client go to the site unchanged, and do not identify the client to
// heed.
func TestHeed_SignaturesPassUnchangedAndNameNoClient(t *testing.T) {
	r := newRig(t, hello)
	fields := []string{
		`Signature-Agent: sig="https://badbot.test"`,
		`Signature-Input: sig=("@authority" "signature-agent";key="sig");created=1;expires=2;keyid="k";tag="web-bot-auth"`,
		"Signature: sig=:AAAA:",
	}
	eachMode(t, allModes, func(t *testing.T, m mode) {
		must.Status(t, r.in(t).ask(m, question{path: "/signed", header: fields}).Response, http.StatusOK)
		got := r.site.last(t, "/signed").Header
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			must.True(t, got.Get(name) == value, "%s arrived as %q", f, got.Get(name))
		}
	})
}
