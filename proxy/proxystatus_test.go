package proxy

import (
	"net/http"
	"testing"

	"github.com/dunglas/httpsfv"
)

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
	if !ok {
		t.Errorf("Proxy-Status %q: error is %T", h["Proxy-Status"], value)
	}
	if details, ok := item.Params.Get("details"); ok {
		if _, ok := details.(string); !ok {
			t.Errorf("Proxy-Status %q: details is %T", h["Proxy-Status"], details)
		}
	}
	return string(token)
}

// Every reason's answer carries a Proxy-Status that parses, with the error
// type of the one table.
func TestRFC9209_ProxyStatusIsAStructuredField(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, allModes, func(t *testing.T, m mode) {
		a := r.in(t).ask(m, question{path: `/private/"quoted\"?a="\`})
		if got := proxyStatusOf(t, a.Header); a.StatusCode != 403 || got != "http_request_denied" {
			t.Errorf("%s %q", a.Status, got)
		}
	})
}
