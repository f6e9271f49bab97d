package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"heed/internal/judge/acl"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A client that sends two User-Agent lines is judged under both names, and the
// site sees both: net/http would send it the first alone.
func TestHeed_EveryUserAgentLineIsJudgedAndSent(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		r := r.in(t)
		path := "/two-names-" + string(m)
		r.ask(m, question{path: path, header: []string{"User-Agent: first/1", "User-Agent: second/2"}})
		got := r.site.last(t, path).Header["User-Agent"]
		must.True(t, len(got) == 1 && got[0] == "first/1, second/2", "the site saw %q", got)
		must.Equal(t, r.records.target(t, path).UserAgent, "first/1, second/2", "the record has")
	})
}

// The name under which a reluctant site is asked for its rules is the name it
// will see: the declared one.
func TestHeed_RulesAreFetchedUnderTheNameThatIsSent(t *testing.T) {
	var asked []string
	r := newRig(t, hello, func(c *Config) {
		settle(c, &acl.Rules{Clients: []acl.Client{{Agent: rules.Declare("NewsBot"), SendUserAgent: "NewsBot/1.0 (+https://bot.example/)"}}})
		c.Policies = policiesFunc(func(_ rules.Origin, userAgent string) *rules.Policy {
			asked = append(asked, userAgent)
			return rules.New(rules.Source{State: rules.Unavailable}, nil)
		})
	})
	c, prefix := r.raw(plain)
	c.Send(get(prefix, "/declared", "User-Agent: curl/8"))
	c.Answer("GET")
	must.True(t, len(asked) == 1 && asked[0] == "NewsBot/1.0 (+https://bot.example/)", "asked as %q", asked)
}

// Fields of a WebSocket handshake on an ordinary answer do not cost its body. A 426 keeps
// those that name what the client of HTTP/1.1 has to ask for.
func TestRFC9110_UpgradeFieldsOnAnOrdinaryAnswer(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.WriteHeader(http.StatusUpgradeRequired)
		fmt.Fprint(w, "come as a WebSocket")
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		for range 2 { // the connection goes on
			c.Send(get(prefix, "/426", "Connection: Upgrade", "Upgrade: websocket"))
			if a := c.Answer("GET"); a.StatusCode != 426 || string(a.Body) != "come as a WebSocket" || a.Header.Get("Upgrade") != "websocket" || a.Header.Get("Connection") != "Upgrade" {
				t.Errorf("%s %v %q", a.Status, a.Header, a.Body)
			}
		}
	})
	f := r.rawH2()
	got := f.ask(fields("GET", "/426")...)
	must.True(t, got == "426" && f.field("upgrade") == "" && f.field("connection") == "", "over HTTP/2 %s %v", got, f.head)
}

// A refusal because robots.txt could not be fetched contains no address of heed's
// network, and no age of a file that was never fetched.
func TestHeed_ARefusalForUnreachableRulesContainsNoAddress(t *testing.T) {
	r := newRig(t, hello, func(c *Config) {
		c.Policies = policiesFunc(func(rules.Origin, string) *rules.Policy {
			err := &net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 9, 8, 7), Port: 4321}, Err: io.ErrUnexpectedEOF}
			return rules.New(rules.Source{State: rules.Unreachable, Err: err}, nil)
		})
	})
	c, prefix := r.raw(plain)
	c.Send(get(prefix, "/page", "User-Agent: x"))
	a := c.Answer("GET")
	if a.StatusCode != 503 || strings.Contains(string(a.Body), "127.9.8.7") || strings.Contains(string(a.Body), "policy_age") {
		t.Errorf("%s %s", a.Status, a.Body)
	}
	must.Contain(t, r.records.target(t, "/page").Detail, "127.9.8.7", "the record keeps what happened")
}

// policiesFunc gives policies that a test makes up.
type policiesFunc func(o rules.Origin, userAgent string) *rules.Policy

func (f policiesFunc) Policy(_ context.Context, o rules.Origin, userAgent string) *rules.Policy {
	return f(o, userAgent)
}

func (policiesFunc) Held(rules.Origin) []*rules.Policy { return nil }

// A body that the client breaks is the client's fault, in the answer and in
// the record.
func TestHeed_BrokenUploadIsNotBlamedOnTheSite(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		r := r.in(t)
		c, prefix := r.raw(m)
		path := "/broken-upload-" + string(m)
		c.Send(rawRequest("POST", prefix, path, "Transfer-Encoding: chunked") + "-1\r\nx\r\n0\r\n\r\n")
		a := c.Answer("POST")
		must.True(t, a.StatusCode == 400, "%s %s", a.Status, a.Body)
		e := r.records.target(t, path)
		must.True(t, strings.HasPrefix(e.Outcome.Err, "client: ") && e.Outcome.Status == 400, "recorded as %+v", e.Outcome)
	})
}
