package proxy

import (
	"net/http"
	"strings"
	"testing"
)

// Each method is judged, and OPTIONS for the whole site as its path "/".
func TestHeed_EveryMethodIsJudged(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		r := r.in(t)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"} {
			c, prefix := r.raw(m)
			c.Send(request(method, prefix, "/private"))
			if a := c.Answer(method); a.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s", method, a.Status)
			}
		}
		if m != mitmH1 && m != inTunnel {
			return // there the target names a host
		}
		for agent, want := range map[string]int{"BadBot/1.0": http.StatusForbidden, "GoodBot/1.0": http.StatusOK} {
			c, _ := r.raw(m)
			c.Send(request("OPTIONS", "", "*", "User-Agent: "+agent))
			if a := c.Answer("OPTIONS"); a.StatusCode != want {
				t.Errorf("OPTIONS * of %s: %s, want %d", agent, a.Status, want)
			}
		}
	})
	for _, a := range r.site.requests() {
		if a.Target == "/private" {
			t.Errorf("%s /private arrived", a.Method)
		}
	}
}

// Signatures of a client go to the site as they came, and name nobody.
func TestHeed_SignaturesPassUntouchedAndNameNobody(t *testing.T) {
	r := newRig(t, hello)
	fields := []string{
		`Signature-Agent: sig="https://badbot.test"`,
		`Signature-Input: sig=("@authority" "signature-agent";key="sig");created=1;expires=2;keyid="k";tag="web-bot-auth"`,
		"Signature: sig=:AAAA:",
	}
	eachMode(t, allModes, func(t *testing.T, m mode) {
		if a := r.in(t).ask(m, question{path: "/signed", header: fields}); a.StatusCode != http.StatusOK {
			t.Errorf("%s", a.Status)
		}
		got := r.site.last(t, "/signed").Header
		for _, f := range fields {
			if name, value, _ := strings.Cut(f, ": "); got.Get(name) != value {
				t.Errorf("%s arrived as %q", f, got.Get(name))
			}
		}
	})
}
