package proxy

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// userFile is a Users with the password of each user.
type userFile map[string]string

func (u userFile) Verify(_ context.Context, _ netip.Addr, user, password string) (bool, time.Duration) {
	return u[user] == password, 0
}

func (u userFile) Proof(user string) (proof [32]byte) {
	copy(proof[:], u[user])
	return proof
}

// reloadable makes a rig whose settings can be replaced: reload does what a daemon does.
func reloadable(t *testing.T, s *site, https acl.HTTPS, users acl.Users) (r *rig, reload func(acl.Users, ...netip.Prefix)) {
	var live atomic.Pointer[Settings]
	settings := func(base Settings, users acl.Users, from []netip.Prefix) *Settings {
		base.Limits = base.Limits.WithDefaults()
		base.Rules = &acl.Rules{Users: users, From: from, HTTPS: https}
		return &base
	}
	var base Settings
	r = newRigBefore(t, s, func(c *Config) {
		base = c.Settings
		live.Store(settings(base, users, nil))
		c.Live = live.Load
	})
	return r, func(users acl.Users, from ...netip.Prefix) {
		live.Store(settings(base, users, from))
		r.proxy.Recheck()
	}
}

// TestARemovedUserLosesItsTunnels has ann open a tunnel, or a WebSocket, and then takes
// away what let her. Where requests can be seen each of them is asked, and what cannot
// be seen is closed.
func TestARemovedUserLosesItsTunnels(t *testing.T) {
	ann, elsewhere := userFile{"ann": "open sesame"}, netip.MustParsePrefix("192.0.2.0/24")
	changes := map[string]struct {
		before, after acl.Users
		from          []netip.Prefix
		why           string
	}{
		"removed":            {ann, userFile{"bob": "x"}, nil, "the user who opened this tunnel may not use this proxy any more"},
		"another password":   {ann, userFile{"ann": "shut"}, nil, "the password of the user who opened this tunnel was changed since; open a new one"},
		"another network":    {ann, ann, []netip.Prefix{elsewhere}, "clients at this address may not use this proxy"},
		"users from now on":  {nil, ann, nil, "this proxy asks for a user name and a password since this tunnel was opened; open a new one"},
		"nothing is changed": {ann, userFile{"bob": "x", "ann": "open sesame"}, nil, ""},
	}
	for name, c := range changes {
		for _, https := range []acl.HTTPS{acl.Intercept, acl.HostOnly, acl.Tunnel} {
			t.Run(name+" "+https.String(), func(t *testing.T) {
				r, reload := reloadable(t, newSite(t, hello), https, c.before)
				trust := r.trusting("site.test", "http/1.1")
				if https != acl.Intercept {
					trust = r.bySite("site.test", "http/1.1")
				}
				conn := testkit.Dial(t, r.addr).Connect("site.test:443", annIs).TLS(trust)
				conn.Send(get("", "/page"))
				a := conn.Answer("GET")
				must.Need(t, a.StatusCode == 200, "before: %s", a.Status)
				reload(c.after, c.from...)
				switch {
				case c.why == "":
					conn.Send(get("", "/after"))
					must.Status(t, conn.Answer("GET").Response, 200, "after")
				case https == acl.Intercept:
					conn.Send(get("", "/after"))
					a := conn.Answer("GET")
					e := r.records.await(t, "the refusal", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonAccess })
					must.True(t, a.StatusCode == 403 && e.Host == "site.test" && e.Method == "GET" && e.Detail == c.why,
						"after: %s, recorded %+v", a.Status, e)
				default:
					_, err := conn.Read(make([]byte, 1))
					must.True(t, err != nil, "the tunnel is open")
					r.expectEnded("CONNECT", c.why)
				}
			})
		}
	}
}

// expectEnded waits for the end of the exchange of a method that was closed for a reason.
func (r *rig) expectEnded(method, why string) {
	r.t.Helper()
	want := "heed: the tunnel was closed, since the settings have changed: " + why
	e := r.records.await(r.t, "the end", func(e *audit.Entry) bool { return e.Method == method && e.Outcome.Err != "" })
	must.True(r.t, e.Outcome.Truncated && e.Outcome.Err == want, "recorded %q, want %q", e.Outcome.Err, want)
}

func TestARemovedUserLosesItsWebSockets(t *testing.T) {
	eachMode(t, []mode{plain, mitmH1}, func(t *testing.T, m mode) {
		r, reload := reloadable(t, newSite(t, webSocketSite(make(chan string, 1))), acl.Intercept, nil)
		c := r.openWebSocket(m, "/socket")
		reload(userFile{"ann": "open sesame"})
		_, err := io.Copy(io.Discard, c)
		must.True(t, err == nil || strings.Contains(err.Error(), "reset"), "%v", err)
		r.expectEnded("GET", "this proxy asks for a user name and a password since this tunnel was opened; open a new one")
	})
}

// A tunnel in which nothing was sent yet ends in the same way.
func TestARemovedUserLosesAnIdleTunnel(t *testing.T) {
	r, reload := reloadable(t, newSite(t, hello), acl.HostOnly, nil)
	c := testkit.Dial(t, r.addr).Connect("site.test:443")
	testkit.Until(t, "the tunnel is registered", func() bool { return len(r.proxy.open.all()) == 1 })
	reload(userFile{})
	_, err := c.Read(make([]byte, 1))
	must.True(t, err != nil, "the tunnel is open")
	r.expectEnded("CONNECT", "this proxy asks for a user name and a password since this tunnel was opened; open a new one")
}
