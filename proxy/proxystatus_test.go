package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
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
	r := newRig(t, hello, marked, func(c *Config) { settle(c, &acl.Rules{Mode: acl.Observe}) })
	a := r.ask(plain, question{path: "/private"})
	if e := r.records.target(t, "/private"); decisionOf(t, a.Header) != e.ID.String() || !strings.Contains(a.Header.Get("Proxy-Status"), "observed only") {
		t.Errorf("%q", a.Header["Proxy-Status"])
	}
}

// A tunnel is a decision, too: its one answer is the one to CONNECT.
func TestHeed_ATunnelNamesItsDecision(t *testing.T) {
	r := newRig(t, hello, marked, settled(t, map[string]acl.HTTPS{"site.test": acl.HostOnly}))
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

// A tunnel that would be refused says so in the answer to its CONNECT, as a request
// does.
func TestObservedTunnelReportsWhatWouldBeRefused(t *testing.T) {
	r := newRig(t, hello, settled(t, map[string]acl.HTTPS{"site.test": acl.HostOnly}), func(c *Config) { c.Rules.Mode = acl.Observe })
	c := testkit.Dial(t, r.addr)
	c.Send("CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\nUser-Agent: BadBot/1\r\n\r\n")
	if a := c.Head("CONNECT"); a.StatusCode != 200 || !strings.Contains(a.Header.Get("Proxy-Status"), "observed only") {
		t.Errorf("%s, Proxy-Status %q", a.Status, a.Header["Proxy-Status"])
	}
}

// proxyStatusOf parses the Proxy-Status field as a structured field, checks
// that its one member is the rig's proxy, and returns the error type.
func proxyStatusOf(t *testing.T, h http.Header) string {
	t.Helper()
	list, err := httpsfv.UnmarshalList(h["Proxy-Status"])
	if err != nil || len(list) != 1 {
		t.Errorf("Proxy-Status %q: %d members, %v", h["Proxy-Status"], len(list), err)
		return ""
	}
	item, ok := list[0].(httpsfv.Item)
	if !ok || item.Value != "rig-7f3a" {
		t.Errorf("Proxy-Status %q names %v", h["Proxy-Status"], list[0])
		return ""
	}
	value, _ := item.Params.Get("error")
	token, ok := value.(httpsfv.Token)
	must.True(t, ok, "Proxy-Status %q: error is %T", h["Proxy-Status"], value)
	if details, ok := item.Params.Get("details"); ok {
		_, ok := details.(string)
		must.True(t, ok, "Proxy-Status %q: details is %T", h["Proxy-Status"], details)
	}
	return string(token)
}
