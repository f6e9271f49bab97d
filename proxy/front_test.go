package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"heed/rules"
)

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello from %s", r.RequestURI) }

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
		if want := "403 Refused by heed: robots.txt line 3 Disallow: /private"; a.Status != want {
			t.Errorf("status line %q, want %q", a.Status, want)
		}
		c.Send(get(prefix, "/private/ok", "User-Agent: curl/8"))
		if a := c.Answer("GET"); a.StatusCode != 200 {
			t.Errorf("after a refusal the same connection must go on: %s", a.Status)
		}
		c.Send(get(prefix, "/public", "User-Agent: Mozilla/5.0 (compatible; BadBot/1.0; +http://bad.example/)"))
		if a := c.Answer("GET"); a.StatusCode != 403 {
			t.Errorf("BadBot is shut out of everything, got %s", a.Status)
		}
	})
	t.Run("h2", func(t *testing.T) {
		c := r.client(mitmH2)
		resp, err := c.Get("https://site.test/public")
		if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 2 {
			t.Fatalf("public page: %v %v", resp, err)
		}
		resp, err = c.Get("https://site.test/private/x")
		if err != nil || resp.StatusCode != 403 {
			t.Fatalf("private page: %v %v", resp, err)
		}
	})
	for _, seen := range r.site.reached() {
		if strings.Contains(seen, "/private/page") || strings.Contains(seen, "/private/x") {
			t.Errorf("a disallowed request reached the site: %s", seen)
		}
	}
}

// The body of a refusal tells everything a reviewer asks for, the sentence first.
func TestHeed_RefusalNamesRuleLineGroupAndDecision(t *testing.T) {
	r := newRig(t, hello)
	req, _ := http.NewRequest("GET", "http://site.test/private/page", nil)
	req.Header.Set("User-Agent", "AnyBot/1.0")
	resp, err := r.client(plain).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if !strings.HasPrefix(string(body), "{\n  \"title\": \"Refused by heed: robots.txt line 3 Disallow: /private\"") {
		t.Errorf("the sentence comes first, got %s", body)
	}
	var p problem
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	e := r.records.target(t, "/private/page")
	if p.Line != 3 || p.Quoted == nil || p.Quoted.Rule != "Disallow: /private" || p.Quoted.Group != "*" ||
		p.RobotsURL != "http://site.test/robots.txt" || p.PolicyAge == nil || p.Retry != "no" ||
		p.DecisionID != e.ID.String() || p.Status != 403 {
		t.Errorf("incomplete problem: %s", body)
	}
	if e.Decision.Verdict != rules.Refuse || e.Outcome.Status != 403 || e.Outcome.FromSite || int(e.Outcome.BytesOut) != len(body) {
		t.Errorf("record: %+v", e)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
}
