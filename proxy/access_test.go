package proxy

import (
	"context"
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// oneUser is a Users that knows ann, whose password is "open sesame".
type oneUser struct{ wait time.Duration }

func (u oneUser) Verify(_ context.Context, _ netip.Addr, user, password string) (bool, time.Duration) {
	return u.wait == 0 && user == "ann" && password == "open sesame", u.wait
}

func (u oneUser) Proof(user string) (proof [32]byte) {
	if user == "ann" {
		proof[0] = 1
	}
	return proof
}

const (
	annIs    = "Proxy-Authorization: Basic YW5uOm9wZW4gc2VzYW1l"
	annIsNot = "Proxy-Authorization: Basic YW5uOm9wZW4gc2F5cyBtZQ=="
)

// The client's own side of a connection, before any tunnel: plain requests,
// absolute https ones and CONNECT alike.
func TestRFC9110_CredentialsForTheProxy(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { settle(c, &acl.Rules{Users: oneUser{}}) })
	for _, target := range []string{"GET http://site.test/page", "GET https://site.test/page", "CONNECT site.test:443"} {
		for _, header := range []string{"", annIsNot, annIs + "\r\n" + annIs, "Proxy-Authorization: Bearer YW5uOm9wZW4gc2VzYW1l", "Proxy-Authorization: Basic %%%"} {
			c, _ := r.raw(plain)
			if header != "" {
				header += "\r\n"
			}
			c.Send(target + " HTTP/1.1\r\nHost: site.test\r\n" + header + "\r\n")
			got := c.Head("GET")
			must.True(t, got.StatusCode == 407 && got.Header.Get("Proxy-Authenticate") == `Basic realm="heed", charset="UTF-8"`,
				"%s with %q: %d, %q", target, header, got.StatusCode, got.Header)
		}
	}
	must.Same(t, r.site.reached(), nil, "asked of the site")
	for _, e := range r.records.all() {
		if e.URL() != "http://site.test" && e.URL() != "https://site.test" {
			t.Errorf("the record does not tell for which site it was: %q", e.URL())
		}
	}
	c, prefix := r.raw(plain)
	c.Send(get(prefix, "/page", annIs))
	must.Status(t, c.Head("GET"), 200, "with the right ones")
	must.Equal(t, r.records.target(t, "/page").User, "ann", "the record names")
	must.Same(t, r.site.last(t, "/page").Header["Proxy-Authorization"], nil, "what the site saw")
}

// The record has the name of wrong credentials, never the password, and the answer how both
// are given.
func TestHeed_AWrongPasswordIsRecordedWithItsName(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello, func(c *Config) { settle(c, &acl.Rules{Users: oneUser{}}) })
	for _, x := range []struct{ name, header, tried, says string }{
		{"none", "", "", "asks for a user name and a password. Give both"},
		{"a wrong password", annIsNot, "ann", "the user name or the password is wrong. Give both"},
		{"a name that is no text, with a colon in the password", "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("b\xf6b\n:s3:cret")), "b\xf6b\n", "the user name or the password is wrong"},
		{"a name alone", "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("s3cret")), "", "the Proxy-Authorization field is not that of the scheme Basic"},
		{"another scheme", "Proxy-Authorization: Bearer s3cret", "", "by the scheme Basic, and not by"},
		{"two fields", annIs + "\r\n" + annIs, "", "once, and not in several"},
	} {
		c, prefix := r.raw(plain)
		if x.header != "" {
			x.header += "\r\n"
		}
		c.Send("GET " + prefix + "/page HTTP/1.1\r\nHost: site.test\r\n" + x.header + "\r\n")
		got := c.Answer("GET")
		body := string(got.Body)
		if got.StatusCode != 407 || !strings.Contains(body, x.says) || !strings.Contains(body, "http://USER:PASSWORD@HOST:PORT") || !strings.HasSuffix(got.Status, "http://USER:PASSWORD@HOST:PORT") {
			t.Errorf("%s: %d, %s", x.name, got.StatusCode, body)
		}
		all := r.records.all()
		e := all[len(all)-1]
		detail := e.DetailWith(strings.ToUpper)
		if e.Tried != x.tried || e.User != "" || strings.Contains(detail, "s3") || strings.Contains(detail, "the name tried was") != (x.tried != "") || strings.Contains(detail, "\n") || strings.Contains(detail, "\xf6") {
			t.Errorf("%s: the record has %q and %q", x.name, e.Tried, detail)
		}
	}
}

// The user who opened a tunnel needs no credentials inside it and is recorded with the
// requests in it.
func TestHeed_ATunnelKnowsItsUser(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Users: oneUser{}, Clients: []acl.Client{{Name: "annsbot", User: "ann", Agent: rules.Declare("BadBot")}}})
	})
	c, _ := r.raw(plain)
	c.Send("CONNECT site.test:80 HTTP/1.1\r\nHost: site.test:80\r\n" + annIs + "\r\n\r\n")
	must.Is(t, c.Head("CONNECT").StatusCode, 200)
	c.Send(get("", "/inside"))
	must.Status(t, c.Head("GET"), 403, "inside")
	if e := r.records.target(t, "/inside"); e.ClientName != "annsbot" || e.Decision.Reason != rules.ReasonRule {
		t.Errorf("the record has %q, %+v", e.ClientName, e.Decision)
	}
}

func TestRFC6585_TooManyWrongPasswords(t *testing.T) {
	r := newRig(t, hello, func(c *Config) { settle(c, &acl.Rules{Users: oneUser{wait: 40 * time.Second}}) })
	c, prefix := r.raw(plain)
	c.Send(get(prefix, "/page", annIs))
	got := c.Head("GET")
	must.True(t, got.StatusCode == 429 && got.Header.Get("Retry-After") == "40", "%d, %q", got.StatusCode, got.Header)
}

func TestHeed_OnlyClientsOfTheNamedNetworks(t *testing.T) {
	for network, status := range map[string]int{"192.0.2.0/24": 403, "127.0.0.0/8": 200} {
		r := newRig(t, hello, func(c *Config) { settle(c, &acl.Rules{From: []netip.Prefix{netip.MustParsePrefix(network)}}) })
		got := r.ask(plain, question{path: "/page"})
		must.Equal(t, got.StatusCode, status, network)
		if status == 403 {
			e := r.records.await(t, "the refusal", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonAccess })
			if e.Judged != audit.NotJudged || e.URL() != "http://site.test" || !strings.Contains(got.Header.Get("Proxy-Status"), "may not use this proxy") {
				t.Errorf("%+v, %q", e, got.Header)
			}
		}
	}
}
