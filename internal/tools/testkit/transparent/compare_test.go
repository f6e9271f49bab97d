package transparent

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// ofOneHop are the fields that a proxy takes off a message, in lower case (RFC
// 9110 §7.6.1, §11.7).
var ofOneHop = []string{"connection", "keep-alive", "proxy-connection", "transfer-encoding", "te", "upgrade",
	"proxy-authenticate", "proxy-authorization", "proxy-authentication-info"}

// mustChange takes off h, whose names are in lower case, what a proxy must not
// pass on.
func mustChange(h fields) {
	for _, line := range h["connection"] {
		for name := range strings.SplitSeq(line, ",") {
			delete(h, strings.ToLower(strings.TrimSpace(name)))
		}
	}
	for _, name := range ofOneHop {
		delete(h, name)
	}
}

// compare asks a shape both ways and reports every difference.
func (w *world) compare(t *testing.T, m way, s *shape) {
	for len(w.seen) > 0 {
		<-w.seen // of a shape that failed
	}
	want, sent := w.direct(m, s), w.last(s)
	got, arrived := w.through(m, s), w.last(s)

	sent.header, arrived.header = lower(sent.header), lower(arrived.header)
	mustChange(sent.header)
	mustChange(arrived.header)
	mustChange(want.header)
	mustChange(want.trailer)
	delete(got.header, "connection") // heed's own connection with the client
	delete(got.header, "keep-alive")
	delete(got.header, "transfer-encoding")
	checkVia(t, want, got)
	checkDate(t, want, got)
	if want.major == 2 || got.major == 2 {
		want.phrase, got.phrase = "", ""
	}
	if s.changed != nil {
		s.changed(m, want, sent)
	}
	for _, a := range []*answer{want, got} {
		a.trailer = nonEmpty(a.trailer)
		delete(a.header, "trailer") // the order of names in it means nothing; the trailers themselves are compared
		a.noBoundary()
	}
	differ(t, "interim answers", want.interim, got.interim)
	differ(t, "status", want.status, got.status)
	differ(t, "reason phrase", want.phrase, got.phrase)
	same(t, "answer", want.header, got.header)
	same(t, "trailer", want.trailer, got.trailer)
	differ(t, "broken off", fmt.Sprint(want.broken), fmt.Sprint(got.broken))
	must.True(t, want.body == got.body,
		"body: %d octets %.60q directly, %d octets %.60q through heed", len(want.body), want.body, len(got.body), got.body)
	if s.site == static {
		return
	}
	differ(t, "request line", fmt.Sprint(sent.method, " ", sent.target, " of ", sent.host), fmt.Sprint(arrived.method, " ", arrived.target, " of ", arrived.host))
	same(t, "request", sent.header, arrived.header)
	same(t, "request's trailer", nonEmpty(lower(sent.trailer)), nonEmpty(lower(arrived.trailer)))
	must.Equal(t, sent.body, arrived.body, "the site read %d octets directly, %d through heed", len(sent.body), len(arrived.body))
}

// checkVia takes heed's own member off the answer.
func checkVia(t *testing.T, want, got *answer) {
	t.Helper()
	own := want.version + " " + name
	via := got.header["via"]
	if len(via) == 0 || via[len(via)-1] != own {
		t.Errorf("Via of the answer is %q; heed received it by %s", via, want.version)
		return
	}
	got.header["via"] = via[:len(via)-1]
	got.header, want.header = nonEmpty(got.header), nonEmpty(want.header)
}

// checkDate allows for the seconds between two answers, and for the Date that
// a proxy adds where the site had none (RFC 9110 §6.6.1).
func checkDate(t *testing.T, want, got *answer) {
	t.Helper()
	if _, err := http.ParseTime(strings.Join(got.header["date"], "|")); err != nil {
		t.Errorf("Date %q", got.header["date"])
	}
	delete(want.header, "date")
	delete(got.header, "date")
}

var boundary = regexp.MustCompile(`boundary=([0-9A-Za-z]+)`)

// noBoundary replaces what nginx makes up for each answer of several ranges.
func (a *answer) noBoundary() {
	if own := boundary.FindStringSubmatch(strings.Join(a.header["content-type"], "")); own != nil {
		a.body = strings.ReplaceAll(a.body, own[1], "BOUNDARY")
		a.header["content-type"] = []string{strings.ReplaceAll(a.header["content-type"][0], own[1], "BOUNDARY")}
	}
}

// nonEmpty is h without names that have no line.
func nonEmpty(h fields) fields {
	full := fields{}
	for name, values := range h {
		if len(values) > 0 {
			full[name] = values
		}
	}
	return full
}

func differ(t *testing.T, what string, want, got any) {
	t.Helper()
	must.Equal(t, fmt.Sprintf("%q", want), fmt.Sprintf("%q", got), "%s: %q directly, %q through heed", what, want, got)
}

// same compares fields without the order between different names.
func same(t *testing.T, what string, want, got fields) {
	t.Helper()
	for name := range want {
		must.True(t, slices.Equal(want[name], got[name]),
			"%s: %s is %.200q directly, %.200q through heed", what, name, want[name], got[name])
	}
	for name := range got {
		_, ok := want[name]
		must.True(t, ok, "%s: %s: %q is there through heed only", what, name, got[name])
	}
}
