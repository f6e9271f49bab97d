package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"heed/internal/terms"
	"heed/internal/testkit"
)

// decisionOf is the decision that a's Proxy-Status names; empty when it names none.
func decisionOf(t *testing.T, h http.Header) string {
	t.Helper()
	list, err := httpsfv.UnmarshalList(h["Proxy-Status"])
	if err != nil || len(list) == 0 {
		t.Errorf("Proxy-Status %q: %v", h["Proxy-Status"], err)
		return ""
	}
	item, ok := list[len(list)-1].(httpsfv.Item)
	if !ok || item.Value != "rig-7f3a" {
		t.Errorf("Proxy-Status %q names %v last", h["Proxy-Status"], list)
		return ""
	}
	id, _ := item.Params.Get("decision")
	text, _ := id.(string)
	return text
}

func marked(c *Config) { c.Mark = true }

// With [log] mark every answer says under which id the record has its decision.
func TestHeed_AnAnswerNamesItsDecisionWhereItIsAskedTo(t *testing.T) {
	r := newRig(t, hello, marked)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		for path, status := range map[string]int{"/page/" + string(m): 200, "/private/" + string(m): 403} {
			a := r.in(t).ask(m, question{path: path})
			if e := r.records.target(t, path); a.StatusCode != status || decisionOf(t, a.Header) != e.ID.String() {
				t.Errorf("%s: %s, %q, not %s", path, a.Status, a.Header["Proxy-Status"], e.ID)
			}
		}
	})
}

// A request that is observed only carries both, the remark and the id.
func TestHeed_WhatWouldBeRefusedNamesItsDecisionToo(t *testing.T) {
	r := newRig(t, hello, marked, func(c *Config) { settle(c, &terms.Book{Mode: terms.Observe}) })
	a := r.ask(plain, question{path: "/private"})
	if e := r.records.target(t, "/private"); decisionOf(t, a.Header) != e.ID.String() || !strings.Contains(a.Header.Get("Proxy-Status"), "observed only") {
		t.Errorf("%q", a.Header["Proxy-Status"])
	}
}

// A tunnel is a decision, too: its one answer is the one to CONNECT.
func TestHeed_ATunnelNamesItsDecision(t *testing.T) {
	r := newRig(t, hello, marked, settled(t, map[string]terms.HTTPS{"site.test": terms.HostOnly}))
	c := testkit.Dial(t, r.addr)
	c.Send("CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\nUser-Agent: curl/8\r\n\r\n")
	a := c.Head("CONNECT")
	inside := c.TLS(r.bySite("site.test", "http/1.1"))
	inside.Send(get("", "/page"))
	inside.Answer("GET")
	inside.Close()
	if e := r.connectTo("site.test"); a.StatusCode != 200 || decisionOf(t, a.Header) != e.ID.String() {
		t.Errorf("%s %q, not %s", a.Status, a.Header["Proxy-Status"], e.ID)
	}
}
