package proxy

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
	"heed/rules"
)

// serveICAP has ICAP clients ask r, and returns the address.
func (r *rig) serveICAP(changes ...func(*Asked)) (addr string) {
	for scheme, port := range map[string]uint16{"http": 80, "https": 443} { // onICAP ends what it sends, which is a client that leaves while rules are fetched
		r.proxy.config.Live().Policies.Policy(r.t.Context(), rules.Origin{Scheme: scheme, Host: "site.test", Port: port}, "")
	}
	return r.serveAsked(r.proxy.ServeICAP, changes)
}

func bumped(a *Asked) { a.Bumped = func() bool { return true } }

// reqmod is a question about a request, with fields of ICAP.
func reqmod(request string, fields ...string) string {
	request = strings.ReplaceAll(request, "\n", "\r\n") + "\r\n\r\n"
	return fmt.Sprintf("REQMOD icap://heed.test/reqmod ICAP/1.0\r\n%sEncapsulated: req-hdr=0, null-body=%d\r\n\r\n%s",
		strings.Join(append(fields, ""), "\r\n"), len(request), request)
}

const (
	keeps = "Allow: 204"
	from7 = "X-Client-IP: 192.0.2.7"
)

// onICAP sends a question on a connection of its own, and returns the answer's status line, and
// all of it.
func (r *rig) onICAP(addr, question string) (status, all string) {
	r.t.Helper()
	c := testkit.Dial(r.t, addr)
	defer c.Close()
	c.Send(question)
	c.CloseWrite()
	all = string(c.Rest())
	status, _, _ = strings.Cut(all, "\r\n")
	return status, all
}

// getOf is a GET of a URL.
func getOf(url string, more ...string) string {
	host := strings.SplitN(url, "/", 4)[2]
	return strings.Join(append([]string{"GET " + url + " HTTP/1.1", "Host: " + host}, more...), "\n")
}

func TestICAP_Answers(t *testing.T) {
	r := newRig(t, func(http.ResponseWriter, *http.Request) { t.Error("heed sent a request that another proxy sends") })
	addr := r.serveICAP(bumped)
	const passes, refused = "ICAP/1.0 204 No Content", "ICAP/1.0 200 OK"
	for _, c := range []struct {
		question, status, has string
		reason                rules.Reason
	}{
		{reqmod(getOf("http://site.test/page"), keeps, from7), passes, "", rules.ReasonNoRule},
		{reqmod(getOf("http://site.test/private/x"), keeps, from7), refused, "HTTP/1.1 403 Forbidden\r\n", rules.ReasonRule},
		{reqmod(getOf("https://site.test/private/y"), keeps, from7), refused, "Proxy-Status: \"rig-7f3a\"; error=http_request_denied", rules.ReasonRule},
		{reqmod(getOf("http://site.test/as-badbot", "User-Agent: BadBot/1"), keeps), refused, "res-hdr=0, res-body=", rules.ReasonRule},
		{reqmod(getOf("http://site.test/as-it-came"), from7), refused, "req-hdr=0, null-body=61\r\n\r\nGET http://site.test/as-it-came HTTP/1.1\r\n", rules.ReasonNoRule},
		{reqmod(getOf("http://site.test/page#x"), keeps), refused, "HTTP/1.1 400 ", rules.ReasonMalformed},
		{reqmod(strings.Replace(getOf("http://site.test/other"), "Host: site.test", "Host: other.test", 1), keeps), refused, "HTTP/1.1 421 ", rules.ReasonHostMismatch},
		{reqmod("CONNECT site.test:443 HTTP/1.1\nHost: site.test:443", keeps), passes, "", rules.ReasonTunnel},
		{reqmod("GET /page HTTP/1.1\nHost: site.test", keeps), "ICAP/1.0 400 Bad Request: the encapsulated request has no URL with a scheme and a host, which alone can be judged", "Connection: close", rules.ReasonMalformed},
		{reqmod(getOf("http://site.test/page"), keeps, "X-Client-IP: nobody"), "ICAP/1.0 400 Bad Request: X-Client-IP is not an address, or X-Client-Port no port", "", rules.ReasonMalformed},
		{reqmod(getOf("http://site.test/page"), keeps, from7, from7), "ICAP/1.0 400 Bad Request: the ICAP request has 2 fields X-Client-Ip, and may have one", "", rules.ReasonMalformed},
		{reqmod(getOf("http://site.test/page"), keeps, from7, "X-Client-Port: 70000"), "ICAP/1.0 400 Bad Request: X-Client-IP is not an address, or X-Client-Port no port", "", rules.ReasonMalformed},
		{reqmod(getOf("http://site.test/page"), keeps, "X-Authenticated-User: ???"), "ICAP/1.0 400 Bad Request: X-Authenticated-User is not base64", "", rules.ReasonMalformed},
		{reqmod(getOf("http://site.test/page"), keeps, "X-Client-Username: "+strings.Repeat("a", 300)), "ICAP/1.0 400 Bad Request: the name of the user is too long, or contains what no name does", "", rules.ReasonMalformed},
		{strings.Replace(reqmod(getOf("http://site.test/page"), keeps), "REQMOD", "RESPMOD", 1), "ICAP/1.0 405 Method Not Allowed: the service has no such method: it has REQMOD and OPTIONS", "", rules.ReasonMalformed},
		{"GET http://site.test/page HTTP/1.1\r\nHost: site.test\r\n\r\n", "ICAP/1.0 505 HTTP Version Not Supported: the version is not ICAP/1.0", "", rules.ReasonMalformed},
	} {
		before := len(r.records.all())
		status, all := r.onICAP(addr, c.question)
		must.True(t, status == c.status && strings.Contains(all, c.has),
			"%.300q: %q\nwant %s and %s", c.question, all, c.status, c.has)
		e := r.records.after(t, before)
		may := status == passes || strings.Contains(all, "req-hdr")
		if e.Decision.Reason != c.reason || may != (e.Decision.Verdict == rules.Allow) || may != e.Outcome.Elsewhere || (e.Client == "192.0.2.7:0") != (strings.Contains(c.question, from7) && e.Judged != audit.NotJudged) {
			t.Errorf("%.100q is recorded as %+v", c.question, e)
		}
	}
}

// One connection serves any number of questions, also those that have come before the answer;
// after one that cannot be read nothing is.
func TestICAP_AConnectionServesManyQuestions(t *testing.T) {
	r := newRig(t, hello)
	addr := r.serveICAP()
	options := "OPTIONS icap://heed.test/reqmod ICAP/1.0\r\nHost: heed.test\r\n\r\n"
	bad := strings.Replace(reqmod(getOf("http://site.test/page"), keeps), "null-body=", "null-body=9", 1)
	_, all := r.onICAP(addr, options+reqmod(getOf("http://site.test/private/x"))+reqmod(getOf("http://site.test/page"), keeps)+bad+options)
	var lines []string
	for line := range strings.SplitSeq(all, "\r\n") {
		if strings.HasPrefix(line, "ICAP/1.0") || strings.HasPrefix(line, "HTTP/1.1") {
			lines = append(lines, line[:12])
		}
	}
	got := strings.Join(lines, ", ")
	must.True(t, got == "ICAP/1.0 200, ICAP/1.0 200, HTTP/1.1 403, ICAP/1.0 204, ICAP/1.0 400", "%s\n%s", got, all)
	for _, field := range []string{"Methods: REQMOD\r\n", "Service: rig-7f3a\r\n", "Max-Connections: 3072\r\n", "Options-TTL: 60\r\n", "Preview: 0\r\n"} {
		must.Contain(t, all, field, "OPTIONS has no %q", field)
	}
}

// Whatever the size of a body, it is passed on as it came, or stays with the client.
func TestICAP_Bodies(t *testing.T) {
	r := newRig(t, hello)
	addr := r.serveICAP()
	body := strings.Repeat("0123456789abcdef", 4<<10)
	question := func(path, chunks string, fields ...string) string {
		q := reqmod("POST http://site.test"+path+" HTTP/1.1\nHost: site.test\nContent-Length: 65536", fields...)
		return strings.Replace(q, "null-body", "req-body", 1) + chunks
	}
	whole := "10000\r\n" + body + "\r\n0\r\n\r\n"
	next := reqmod(getOf("http://site.test/page"), keeps)
	for _, c := range []struct{ question, want string }{
		{question("/up", whole), "ICAP/1.0 200"},
		{question("/up", whole, keeps) + next, "ICAP/1.0 204"},
		{question("/up", "0\r\n\r\n", "Preview: 0") + next, "ICAP/1.0 204"},
		{question("/private/up", whole), "HTTP/1.1 403"},
		{question("/private/up", "0\r\n\r\n"+whole, "Preview: 0") + next, "HTTP/1.1 403"},
		{question("/private/up", "9\r\n123456789\r\n0; ieof\r\n\r\n", "Preview: 9") + next, "HTTP/1.1 403"},
		{question("/up", "10000\r\n"+body[:9999]), "ICAP/1.0 200"}, // and not its end
	} {
		_, all := r.onICAP(addr, c.question)
		if strings.HasSuffix(c.question, next) && !strings.HasPrefix(all[strings.LastIndex(all, "ICAP/1.0"):], "ICAP/1.0 204") {
			t.Errorf("%.200q: the next question has no answer: %.300q", c.question, all)
		}
		if !strings.Contains(all, c.want) || strings.Contains(all, "ICAP/1.0 100 Continue\r\n\r\n") != strings.Contains(c.question, "0\r\n\r\n"+whole) {
			t.Errorf("%.200q: %.300q", c.question, all)
		}
		if c.want != "ICAP/1.0 200" {
			continue
		}
		_, came, _ := strings.Cut(all, "Content-Length: 65536\r\n\r\n")
		var read strings.Builder
		for came != "" {
			var n int
			size, rest, _ := strings.Cut(came, "\r\n")
			if _, err := fmt.Sscanf(size, "%x", &n); err != nil || n == 0 {
				break
			}
			n = min(n, len(rest))
			read.WriteString(rest[:n])
			_, came, _ = strings.Cut(rest[n:], "\r\n")
		}
		if ended := strings.HasSuffix(all, "\r\n0\r\n\r\n"); ended != strings.Contains(c.question, whole) || ended && read.String() != body {
			t.Errorf("%.200q: the end is there: %v, %d octets of the body", c.question, ended, read.Len())
		}
	}
}

// A client of the asking proxy is known by its address and user, for [[client]] and the record.
func TestICAP_TheClientIsWhoTheProxySays(t *testing.T) {
	rs := &acl.Rules{Clients: []acl.Client{{Name: "ann", User: "ann"}, {Name: "lab", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}}}}
	r := newRig(t, hello, func(c *Config) { settle(c, rs) })
	addr := r.serveICAP()
	encoded := func(text string) string {
		return "X-Authenticated-User: " + base64.StdEncoding.EncodeToString([]byte(text))
	}
	for fields, want := range map[string]string{
		from7 + "\r\nX-Client-Port: 4321":  "lab  192.0.2.7:4321",
		"X-Client-IP: 192.0.2.8":           "  192.0.2.8:0",
		"X-Client-Username: ann":           "ann ann ",
		encoded("Local://ann"):             "ann ann ",
		encoded("ann"):                     "ann ann ",
		encoded("LDAP://example.test/ann"): " example.test/ann ",
		"X-Client-Username: -":             "  ",
		"X-Client-Ip: ::ffff:192.0.2.7":    "lab  192.0.2.7:0",
		"X-Client-IP: -":                   "  ",
		"X-Client-IP: 2001:db8::1":         "  [2001:db8::1]:0",
	} {
		before := len(r.records.all())
		r.onICAP(addr, reqmod(getOf("http://site.test/page"), keeps, fields))
		e := r.records.after(t, before)
		got := e.ClientName + " " + e.User + " " + e.Client
		if i := strings.LastIndexByte(got, ' '); strings.HasPrefix(got[i+1:], "127.0.0.1:") {
			got = got[:i+1] // the asking proxy itself
		}
		must.Equal(t, got, want, "%q", fields)
	}
}

// Nothing in a tunnel is seen, unless the asking proxy decrypts it and asks again.
func TestICAP_CONNECTPassesOnlyWhereItIsDecrypted(t *testing.T) {
	r := newRig(t, hello)
	to := func(site string) string { return reqmod("CONNECT "+site+" HTTP/1.1\nHost: "+site, keeps) }
	question := to("site.test:443")
	_, all := r.onICAP(r.serveICAP(), question)
	must.True(t, strings.Contains(all, "HTTP/1.1 403 "), "refuse: %q", all)
	_, all = r.onICAP(r.serveICAP(bumped), question)
	must.True(t, strings.HasPrefix(all, "ICAP/1.0 204 "), "bumped: %q", all)
	e := r.records.await(t, "the second", func(e *audit.Entry) bool { return e.Decision.Verdict == rules.Allow })
	must.True(t, e.Judged == audit.NotJudged && e.Method == "CONNECT" && e.Host == "site.test", "it is recorded as %+v", e)
	_, all = r.onICAP(r.serveICAP(bumped), to(r.addr))
	must.True(t, strings.Contains(all, "HTTP/1.1 502 "), "a tunnel to heed itself: %q", all)
}

func TestICAP_OthersThanThoseInTrustAreRefused(t *testing.T) {
	r := newRig(t, hello)
	addr := r.serveICAP(func(a *Asked) { a.Trust = func() []netip.Prefix { return nil } })
	for _, question := range []string{reqmod(getOf("http://site.test/page"), keeps, from7), "OPTIONS icap://heed.test/reqmod ICAP/1.0\r\n\r\n"} {
		before := len(r.records.all())
		status, _ := r.onICAP(addr, question)
		must.True(t, status == "ICAP/1.0 403 Forbidden: "+untrusted, "%.20q: %s", question, status)
		if e := r.records.after(t, before); e.Decision.Reason != rules.ReasonAccess || !strings.HasPrefix(e.Client, "127.0.0.1:") {
			t.Errorf("%.20q is recorded as %+v", question, e)
		}
	}
}

// heed sees no page: what it states of its use is not read.
func TestICAP_AClientWithAPurposeIsRefused(t *testing.T) {
	r := newRig(t, hello, purposeOf(signal.Purposes()[0]))
	_, all := r.onICAP(r.serveICAP(), reqmod(getOf("http://site.test/page"), keeps))
	must.True(t, strings.Contains(all, "HTTP/1.1 403 "), "%q", all)
}

// A question waits for the turn of its request, as long as its connection is open.
func TestICAP_AClientThatLeavesGivesUpItsTurn(t *testing.T) {
	waits, left := make(chan bool), make(chan bool)
	r := newPaced(t, &turnstile{answer: func(ctx context.Context, q *pace.Ask) pace.Answer {
		waits <- true
		<-ctx.Done()
		left <- true
		return pace.Answer{Left: true}
	}})
	c := testkit.Dial(t, r.serveICAP())
	c.Send(reqmod(getOf("http://site.test/page", slow...), keeps))
	<-waits
	c.Close()
	select {
	case <-left:
	case <-time.After(testkit.Patience):
		t.Error("the turn is still waited for")
	}
	r.records.await(t, "the one that left", func(e *audit.Entry) bool { return e.Decision.Reason == rules.ReasonClientLeft })
}

// The tag of the service changes with the settings, and only then.
func TestICAP_TheTagChangesWithTheSettings(t *testing.T) {
	r := newRig(t, hello)
	first, second := r.proxy.config.Live(), *r.proxy.config.Live()
	live := first
	r.proxy.config.Live = func() *Settings { return live }
	one := r.proxy.settingsTag()
	again := r.proxy.settingsTag()
	must.True(t, again == one && len(one) <= 30, "%q, then %q", one, again)
	live = &second
	must.True(t, r.proxy.settingsTag() != one, "other settings have the same tag")
}

// An end of heed ends connections between two questions, and answers the one under way.
func TestICAP_Shutdown(t *testing.T) {
	r := newRig(t, hello)
	c := testkit.Dial(t, r.serveICAP())
	c.Send(reqmod(getOf("http://site.test/page"), keeps))
	r.records.target(t, "/page")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	must.OK(t, r.proxy.Shutdown(ctx))
	all := string(c.Rest())
	must.True(t, strings.HasPrefix(all, "ICAP/1.0 204 "), "%q", all)
}

// connAt is a connection at an address of this machine.
type connAt struct {
	net.Conn
	at net.Addr
}

func (c connAt) LocalAddr() net.Addr { return c.at }

// A CONNECT of heed's own passes the proxy that it goes through, once, and is known by the address
// and port of its connection, and by nothing that a client can state.
func TestICAP_ATunnelOfHeedsOwnPassesOnce(t *testing.T) {
	own := &upstream.OwnFetches{}
	r := newRig(t, hello, func(c *Config) { c.Fetches = own })
	addr := r.serveICAP()
	defer own.Opens(connAt{at: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.7:4321"))}, "site.test:443")()
	for _, c := range []struct {
		site, fields string
		passes       bool
	}{
		{"site.test:443", from7 + "\r\nX-Client-Port: 4322", false},
		{"site.test:443", from7, false},
		{"site.test:443", "X-Client-IP: 192.0.2.8\r\nX-Client-Port: 4321", false},
		{"site.test:443", from7 + "\r\nHeed-Fetch: 192.0.2.7:4321", false},
		{"other.test:443", from7 + "\r\nX-Client-Port: 4321", false},
		{"site.test:443", from7 + "\r\nX-Client-Port: 4321", true},
		{"site.test:443", from7 + "\r\nX-Client-Port: 4321", false},
	} {
		_, all := r.onICAP(addr, reqmod("CONNECT "+c.site+" HTTP/1.1\nHost: "+c.site+"\nHeed-Fetch: 192.0.2.7:4321", keeps, c.fields))
		passes := strings.HasPrefix(all, "ICAP/1.0 204 ")
		must.True(t, passes == c.passes, "%s, %q: passes %v, want %v", c.site, c.fields, passes, c.passes)
	}
	testkit.Until(t, "six records", func() bool { return len(r.records.all()) == 6 })
}
