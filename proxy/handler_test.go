package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unsafe"

	"heed/internal/tools/testkit/must"
)

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello from %s", r.RequestURI) }

// An exchange is allocated for every request, in the size class of 1,792 octets of the Go
// runtime; the next one has 2,048, which each request would take. A field that exceeds it
// can be a pointer where most requests do not have it.
func TestAnExchangeFitsItsSizeClass(t *testing.T) {
	n := unsafe.Sizeof(exchange{})
	must.True(t, n <= 1792, "an exchange has %d octets", n)
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
