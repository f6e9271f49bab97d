package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// distrust are clients that do not know heed's CA, by the host they ask; programs besides them are in
// TestClientsPrintTheCure.
func distrust(t *testing.T, r *rig) map[string]func(host string) {
	openssl := func(version string) func(string) {
		return func(host string) {
			cmd := exec.Command(testkit.Program(t, "openssl"), "s_client", "-proxy", r.addr, "-connect", host+":443", "-servername", host,
				"-verify_return_error", "-quiet", version)
			cmd.Stdin = strings.NewReader("GET /private HTTP/1.1\r\nHost: x\r\n\r\n")
			out, err := cmd.CombinedOutput()
			must.True(t, err != nil, "openssl accepted a certificate of an unknown CA:\n%s", out)
		}
	}
	return map[string]func(string){
		"go12.test":      func(host string) { r.distrustInGo(host, tls.VersionTLS12) },
		"go13.test":      func(host string) { r.distrustInGo(host, tls.VersionTLS13) },
		"openssl12.test": openssl("-tls1_2"),
		"openssl13.test": openssl("-tls1_3"),
	}
}

func (r *rig) distrustInGo(host string, version uint16) {
	r.t.Helper()
	config := &tls.Config{ServerName: host, RootCAs: x509.NewCertPool(), MinVersion: version, MaxVersion: version}
	_, err := testkit.Dial(r.t, r.addr).Connect(host + ":443").TryTLS(config)
	must.True(r.t, err != nil, "Go accepted a certificate of an unknown CA")
}

// A client that does not trust the CA is recorded as such, whatever its TLS
// library shows of it, with what to do about it and the name of its [[client]]. Nothing is
// fetched for it.
func TestClientsThatDoNotTrustTheCAGetTheReason(t *testing.T) {
	s := newSite(t, hello)
	r := newRigBefore(t, s, func(c *Config) { settle(c, &acl.Rules{Clients: []acl.Client{{Name: "desk"}}}) })
	for host, fetch := range distrust(t, r) {
		t.Run(host, func(t *testing.T) {
			fetch(host)
			e := r.records.await(t, host, func(e *audit.Entry) bool { return e.Host == host })
			if e.Decision.Reason != rules.ReasonUntrusted || e.Decision.Verdict != rules.Refuse || e.Judged != audit.NotJudged {
				t.Errorf("recorded as %q: %s", e.Decision.Reason, e.Detail)
			}
			if strings.Contains(e.Detail, audit.WrongClock) || !strings.Contains(e.Detail, "heed ca path") || e.Method != "CONNECT" || e.Client == "" || e.ClientName != "desk" {
				t.Errorf("record %+v", e)
			}
		})
	}
	must.Same(t, s.requests(), nil, "asked of the sites")
}

// A client that accepts the CA and rejects the time of a certificate has a wrong clock.
func TestAClientWithAWrongClockIsRecordedAsSuch(t *testing.T) {
	r := newRig(t, hello)
	ca := testkit.Write(t, filepath.Join(t.TempDir(), "ca.pem"), string(r.caPEM))
	for host, args := range map[string][]string{"early13.test": {"-tls1_3", "-attime", "1500000000"}, "late13.test": {"-tls1_3", "-attime", "2400000000"}, "late12.test": {"-tls1_2", "-attime", "2400000000"}} {
		cmd := exec.Command(testkit.Program(t, "openssl"), append([]string{"s_client", "-proxy", r.addr, "-connect", host + ":443", "-servername", host, "-CAfile", ca, "-verify_return_error", "-quiet"}, args...)...)
		out, err := cmd.CombinedOutput()
		must.True(t, err != nil, "%s was accepted:\n%s", host, out)
		e := r.records.await(t, host, func(e *audit.Entry) bool { return e.Host == host })
		must.True(t, e.Decision.Reason == rules.ReasonUntrusted && strings.Contains(e.Detail, audit.WrongClock),
			"%s: recorded as %q: %s", host, e.Decision.Reason, e.Detail)
	}
}

// A handshake that fails before a certificate is sent is not distrust of the CA.
func TestOtherFailuresAreNotBlamedOnTheCA(t *testing.T) {
	r := newRig(t, hello)
	for host, config := range map[string]*tls.Config{
		"alpn.test": {NextProtos: []string{"h3"}},
		"old.test":  {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
	} {
		config.RootCAs, config.ServerName = r.roots, host
		_, err := testkit.Dial(t, r.addr).Connect(host + ":443").TryTLS(config)
		must.True(t, err != nil, "%s: a handshake that cannot be", host)
		e := r.records.await(t, host, func(e *audit.Entry) bool { return e.Host == host })
		must.True(t, e.Decision.Reason == rules.ReasonHandshake, "%s: recorded as %q: %s", host, e.Decision.Reason, e.Detail)
	}
}

// A client that sends octets through the tunnel, however few, has accepted the certificate: it
// is not taken for one that does not trust the CA, as one is that says goodbye without any.
// Nor is one whose octets cannot be decrypted.
func TestTheBeginningOfARequestIsNotDistrustOfTheCA(t *testing.T) {
	r := newRig(t, hello)
	junk := "\x17\x03\x03\x00\x20" + strings.Repeat("junk", 8) // a record with data, encrypted with no key
	for host, c := range map[string]struct {
		version  uint16
		protocol string
		sends    string
		want     rules.Reason
	}{
		"junk12.test": {tls.VersionTLS12, "http/1.1", junk, rules.ReasonHandshake},
		"junk13.test": {tls.VersionTLS13, "http/1.1", junk, rules.ReasonHandshake},
		"junkh2.test": {tls.VersionTLS13, "h2", junk, rules.ReasonHandshake},

		"none12.test": {tls.VersionTLS12, "http/1.1", "", rules.ReasonUntrusted},
		"none13.test": {tls.VersionTLS13, "http/1.1", "", rules.ReasonUntrusted},
		"noneh2.test": {tls.VersionTLS13, "h2", "", rules.ReasonUntrusted},
		"one12.test":  {tls.VersionTLS12, "http/1.1", "G", rules.ReasonMalformed},
		"one13.test":  {tls.VersionTLS13, "http/1.1", "G", rules.ReasonMalformed},
		"oneh2.test":  {tls.VersionTLS13, "h2", "P", rules.ReasonHandshake},
		"line.test":   {tls.VersionTLS13, "http/1.1", "\r\n", rules.ReasonHandshake},
		"half.test":   {tls.VersionTLS13, "http/1.1", "GET / HTTP/1.1\r\nHost: half.test\r\n", rules.ReasonMalformed},
	} {
		config := r.trusting(host, c.protocol)
		config.MinVersion, config.MaxVersion = c.version, c.version
		tunnel := testkit.Dial(t, r.addr).Connect(host + ":443")
		in := tunnel.TLS(config)
		switch c.sends {
		case "":
		case junk:
			tunnel.Send(junk)
		default:
			in.Send(c.sends)
		}
		in.Close()
		if e := r.records.await(t, host, func(e *audit.Entry) bool { return e.Host == host }); e.Decision.Reason != c.want || e.Decision.Verdict != rules.Refuse {
			t.Errorf("%s: recorded as %q: %s", host, e.Decision.Reason, e.Detail)
		}
	}
}

// The certificate is for the name the client asks for in TLS, else for the
// place of the CONNECT. A name that is not the place gets its 421 inside,
// where the client can read it.
func TestCertificateFollowsTheServerName(t *testing.T) {
	r := newRig(t, hello)
	t.Run("SNI, CONNECT to an address", func(t *testing.T) {
		c := testkit.Dial(t, r.addr).Connect("127.0.0.1:1").TLS(r.trusting("site.test", "http/1.1"))
		c.Send(get("", "/page"))
		a := c.Answer("GET")
		must.True(t, a.StatusCode == 421 && proxyStatusOf(t, a.Header) == "http_request_denied", "%s", a.Status)
		e := r.records.target(t, "/page")
		must.True(t, e.Decision.Reason == rules.ReasonHostMismatch && strings.Contains(e.Detail, "site.test"),
			"record %+v", e)
	})
	t.Run("no SNI, CONNECT to a name", func(t *testing.T) {
		c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(r.withoutSNI("site.test"))
		c.Send(get("", "/private"))
		must.Status(t, c.Answer("GET").Response, 403)
	})
	t.Run("no SNI, CONNECT to an address", func(t *testing.T) {
		for _, address := range []string{"127.0.0.1", "::1"} {
			c := testkit.Dial(t, r.addr).Connect(net.JoinHostPort(address, "1")).TLS(r.withoutSNI(address))
			got := c.State().PeerCertificates[0].IPAddresses
			must.True(t, len(got) == 1 && got[0].String() == address, "certificate for %v", got)
		}
	})
	t.Run("SNI in capitals", func(t *testing.T) {
		c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(r.trusting("SITE.test", "http/1.1"))
		c.Send(get("", "/page"))
		must.Status(t, c.Answer("GET").Response, 200)
	})
	seen := r.site.reached()
	must.True(t, len(seen) == 1, "the site saw %q", seen)
}

// withoutSNI sends no server name and checks the certificate by itself.
func (r *rig) withoutSNI(host string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}, VerifyConnection: func(s tls.ConnectionState) error {
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: host, Roots: r.roots})
		return err
	}}
}

// Clients that offer one protocol only get it.
func TestProtocolIsTheClientsChoice(t *testing.T) {
	r := newRig(t, hello)
	for _, offer := range []struct {
		protocols []string
		want      string
	}{{[]string{"h2"}, "h2"}, {[]string{"http/1.1"}, "http/1.1"}, {[]string{"http/1.1", "h2"}, "h2"}, {nil, ""}, {[]string{"h2", "x"}, "h2"}} {
		c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(r.trusting("site.test", offer.protocols...))
		must.Equal(t, c.State().NegotiatedProtocol, offer.want, "offer %v", offer.protocols)
		if offer.want == "h2" {
			continue
		}
		c.Send(get("", "/private"))
		must.Status(t, c.Answer("GET").Response, 403, "offer %v", offer.protocols)
	}
}

// Sessions resume over connections of their own, on both versions of TLS, and
// a resumed tunnel is judged like any other.
func TestSessionsResume(t *testing.T) {
	r := newRig(t, hello)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := r.trusting("site.test", "http/1.1")
		config.MinVersion, config.MaxVersion = version, version
		config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		for i := range 3 {
			c := testkit.Dial(t, r.addr).Connect("site.test:443").TLS(config)
			must.Equal(t, c.State().DidResume, (i > 0), "%s, connection %d: resumed", tls.VersionName(version), i+1)
			c.Send(get("", "/private"))
			must.Status(t, c.Answer("GET").Response, 403)
			c.Close()
		}
	}
}

// A client on heed's machine is spared the post-quantum key exchange, unless it offers
// no other; a client elsewhere has it. A session of one resumes for the other.
func TestPostQuantumKeyExchangeIsForClientsElsewhere(t *testing.T) {
	r := newRig(t, hello)
	elsewhere := r.elsewhere("192.0.2.7")
	sessions := tls.NewLRUClientSessionCache(4)
	for _, c := range []struct {
		name, addr string
		offered    []tls.CurveID // nil: what Go offers
		want       tls.CurveID
		resumed    bool
	}{
		{"here", r.addr, nil, tls.X25519, false},
		{"here again", r.addr, nil, tls.X25519, true},
		{"elsewhere", elsewhere, nil, tls.X25519MLKEM768, true},
		{"here, post-quantum only", r.addr, []tls.CurveID{tls.X25519MLKEM768}, tls.X25519MLKEM768, true},
		{"elsewhere, classic only", elsewhere, []tls.CurveID{tls.CurveP256}, tls.CurveP256, true},
	} {
		config := r.trusting("site.test", "http/1.1")
		config.CurvePreferences, config.ClientSessionCache = c.offered, sessions
		conn := testkit.Dial(t, c.addr).Connect("site.test:443").TLS(config)
		if got := conn.State(); got.CurveID != c.want || got.DidResume != c.resumed {
			t.Errorf("%s: %s, resumed %v; want %s and %v", c.name, got.CurveID, got.DidResume, c.want, c.resumed)
		}
		conn.Send(get("", "/private"))
		must.Status(t, conn.Answer("GET").Response, 403, c.name)
		conn.Close()
	}
}

// elsewhere makes the proxy listen where all clients seem to come from ip.
func (r *rig) elsewhere(ip string) (addr string) {
	r.t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(r.t)
	go r.proxy.Serve(&seemingListener{l, net.ParseIP(ip)})
	return l.Addr().String()
}

// seemingListener is a listener whose connections seem to come from an address.
type seemingListener struct {
	net.Listener
	ip net.IP
}

// Accept implements net.Listener.
func (l seemingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return seemingConn{c, l.ip}, err
}

type seemingConn struct {
	net.Conn
	ip net.IP
}

// RemoteAddr implements net.Conn.
func (c seemingConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.ip, Port: 40000} }
