package proxy

import (
	"testing"

	"heed/internal/audit"
	"heed/internal/tools/testkit/must"
)

// Credentials in a URL or in an authority are not recorded, whatever else is wrong with
// the request.
func TestCredentialsInAURLAreNotRecorded(t *testing.T) {
	r := newRig(t, hello)
	for _, line := range []string{
		"PRI http://bob:secret@site.test/first HTTP/1.1", "http://bob:secret@site.test/ HTTP/1.1", "GET\thttp://bob:secret@site.test/ HTTP/1.1",
	} {
		c, _ := r.raw(plain)
		c.Send(line + "\r\nHost: site.test\r\nUser-Agent: A\r\n\r\n")
		c.Answer("GET")
	}
	for _, fields := range [][]string{
		{":method", "GET", ":scheme", "https", ":authority", "bob:secret@site.test", ":path", "/", "user-agent", "B"},
		{":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", "https://bob:secret@site.test/", "user-agent", "C"},
		{":method", "G T", ":scheme", "https", ":authority", "site.test", ":path", "https://bob:secret@site.test/", "user-agent", "D"},
	} {
		status := r.rawH2().ask(fields...)
		must.True(t, status != "200", "%q: 200", fields)
	}
	for _, name := range []string{"A", "C", "D"} { // net/http refuses B
		r.records.await(t, name, func(e *audit.Entry) bool { return e.UserAgent == name })
	}
	r.records.mu.Lock()
	defer r.records.mu.Unlock()
	for _, e := range r.records.ended {
		must.Lack(t, e.Method+e.Raw+e.Target+e.Host+e.Detail, "secret", "%s: recorded with", e.UserAgent)
	}
}
