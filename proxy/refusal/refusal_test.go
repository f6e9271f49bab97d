package refusal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/rules"
)

func caseOf(r rules.Reason) Case {
	return Case{Reason: r, Entry: &audit.Entry{Host: "site.test"}, Host: "site.test", Proxy: Proxy{Member: `"rig"`, Page: "127.0.0.1:3128"}}
}

// Each reason has the answer of the one table, unless an error is more exact.
func TestNew_EachReasonHasItsAnswer(t *testing.T) {
	t.Parallel()
	for _, row := range reason.All() {
		a := New(caseOf(row.Reason))
		if a.Status != row.Status || a.ErrorType != row.Error || a.RetryAfter != row.RetryAfter || !strings.Contains(a.Phrase, "heed") {
			t.Errorf("%s: %d %q, error %q, Retry-After %v", row.Reason, a.Status, a.Phrase, a.ErrorType, a.RetryAfter)
		}
	}
}

func TestNew_AnErrorIsMoreExactThanItsReason(t *testing.T) {
	t.Parallel()
	limited := caseOf(rules.ReasonLimit)
	limited.Err = &limit.Exceeded{Kind: limit.TunnelsPerClient, Value: "2"}
	if a := New(limited); a.Status != http.StatusTooManyRequests || a.RetryAfter != time.Second || !strings.Contains(a.Phrase, "tunnels_per_client (2)") {
		t.Errorf("%+v", a)
	}
	limited.RetryAfter = time.Minute
	must.Equal(t, New(limited).RetryAfter, time.Minute, "Retry-After")
	unreachable := caseOf(rules.ReasonOriginUnreachable)
	unreachable.Err = context.DeadlineExceeded
	a := New(unreachable)
	must.True(t, a.Status == http.StatusGatewayTimeout && a.ErrorType == "connection_timeout", "%+v", a)
	paced := caseOf(rules.ReasonPaced)
	paced.Paced = &pace.Answer{Position: pace.Position{Wait: time.Hour}, RetryAfter: time.Hour}
	must.Equal(t, New(paced).RetryAfter, time.Hour, "Retry-After")
}

// notThere is an error of rules that no request will fetch.
type notThere struct{ error }

func (notThere) Lasting() bool { return true }

// The answer promises that a retry helps when the rules are asked for again, at that time,
// and never where they are not: rules of a record, and a file of the operator's.
func TestNew_ARetryIsPromisedWhenTheRulesAreAskedForAgain(t *testing.T) {
	t.Parallel()
	stars := []byte("User-agent: *\n" + strings.Repeat("Disallow: /"+strings.Repeat("*a", 1000)+"\n", rules.MaxWildcards/1000+1))
	at := time.Now().Add(time.Hour)
	down, missing := errors.New("status 503"), fmt.Errorf("judging: %w", notThere{errors.New("not in the record")})
	for name, c := range map[string]struct {
		source rules.Source
		body   []byte
		want   string // Retry-After; "later": another time than that of the reason
	}{
		"a site that fails":                            {rules.Source{Err: down, RetryAt: at}, nil, "later"},
		"a site of which no time is known":             {rules.Source{Err: down}, nil, "60"},
		"a record that lacks the site":                 {rules.Source{Err: missing}, nil, ""},
		"a file of the site that cannot be used":       {rules.Source{State: rules.Available, Status: 200, FreshUntil: at}, stars, "later"},
		"a file of the operator's that cannot be used": {rules.Source{State: rules.Available}, stars, ""},
	} {
		r := caseOf(rules.ReasonRobotsUnreachable)
		r.Entry.Policy = rules.New(c.source, c.body)
		a := New(r)
		p := a.problem()
		field, promised := a.Response(&http.Request{}).Header.Get("Retry-After"), c.want != ""
		if later := field != "" && field != "60"; later != (c.want == "later") || !later && field != c.want || a.Status != http.StatusServiceUnavailable || (p.Retry == "after") != promised ||
			strings.Contains(a.Phrase, "again") != promised || strings.Contains(p.Detail, "A retry will not help") == promised {
			t.Errorf("%s: Retry-After %q, %q, %q", name, field, a.Phrase, p.Detail)
		}
	}
}

// What a site writes into robots.txt can hurt neither a browser, a terminal,
// a log, nor a parser of status lines and fields.
func TestResponse_HostileRuleTextIsHarmless(t *testing.T) {
	t.Parallel()
	const hostile = "/x<script>alert(1)</script>\"'&\\{{.}}\x1b[31m\r\nX: y\x00\x07\u009b\u202e\u200b\xff\tend"
	for name, text := range map[string]string{"hostile": hostile, "long": "/" + strings.Repeat("g\u00e9", 100_000)} {
		for _, accept := range []string{"text/html", "text/plain", "application/json"} {
			c := caseOf(rules.ReasonRule)
			c.Entry.Policy = rules.New(rules.Source{}, nil)
			c.Entry.Decision = rules.Decision{Reason: c.Reason, Line: 3, Rule: "Disallow: " + text, Group: text, Token: text, Piece: text}
			a := New(c)
			resp := a.Response(&http.Request{Method: "GET", Header: http.Header{"Accept": {accept}}})
			body, _ := io.ReadAll(resp.Body)
			t.Run(name+" "+accept, func(t *testing.T) { harmless(t, a, string(body)) })
			must.True(t, !strings.Contains(string(body), "<script>") || accept != "text/html",
				"the page contains markup of the site:\n%s", body)
		}
	}
}

func harmless(t *testing.T, a *Answer, body string) {
	must.True(t, len(body) <= 8<<10 && len(a.Phrase) <= maxPhrase,
		"a body of %d octets, a phrase of %d", len(body), len(a.Phrase))
	for _, s := range []string{a.Phrase, a.ProxyStatus()} {
		must.True(t, !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }), "not printable ASCII: %q", s)
	}
	if i := strings.IndexFunc(body, func(c rune) bool {
		return c < ' ' && c != '\n' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u202e' || c == '\u200b'
	}); i >= 0 {
		t.Errorf("a deceiving character at %d of the body: %q", i, body)
	}
}

func TestWaitCause_NamesWhatAsksForTheWait(t *testing.T) {
	t.Parallel()
	for want, place := range map[string]pace.Position{
		"heed has not reached the store of its fleet, store.test:6379, since it was started: until then it gives no turns": {Store: "store.test:6379", Wait: time.Second, Visit: rules.Field{Kind: rules.VisitTime, Line: 7}},
		"site.test has answered that it is too busy":                                                {Pause: time.Minute, Wait: time.Minute},
		"heed's settings ask for 0.5 s between requests to site.test":                               {Asked: time.Second / 2, Delay: time.Second / 2, Wait: time.Second},
		"site.test asks for 86400 s between requests (robots.txt line 5), of which 3600 s are kept": {Asked: 24 * time.Hour, Delay: time.Hour, By: rules.Field{Kind: rules.CrawlDelay, Line: 5}, Wait: time.Hour},
		"site.test asks to be visited at another time of the day (robots.txt line 7)":               {Visit: rules.Field{Kind: rules.VisitTime, Line: 7}, Wait: time.Hour},
		"as many requests to site.test as heed's settings allow are under way":                      {Wait: time.Second},
	} {
		must.Equal(t, WaitCause(&place, "site.test"), want)
	}
}

// A request that was allowed and is refused its turn to be sent again quotes the
// line that paces, not the one that allowed it.
func TestProblem_OfARetryQuotesTheLineThatPaces(t *testing.T) {
	e := &audit.Entry{Host: "a.test", Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonRule, Rule: "Allow: /", Line: 2, Group: "*"}}
	turn := &pace.Answer{Refused: true, Position: pace.Position{Wait: time.Minute, By: rules.Field{Kind: rules.CrawlDelay, Value: "60", Line: 7}}}
	p := New(Case{Reason: rules.ReasonPaced, Entry: e, Paced: turn}).problem()
	must.True(t, p.Line == 7 && p.Quoted != nil && strings.HasSuffix(p.Quoted.Rule, ": 60"),
		"line %d, %+v", p.Line, p.Quoted)
}

// The answer where no request was read is one like any other: its body names the
// decision, and announces a retry exactly where the field does.
func TestRaw_BodyAgreesWithTheHead(t *testing.T) {
	for _, c := range []struct {
		kind  limit.Kind
		entry audit.Entry
		id    string
		retry string
		after int
	}{
		{limit.HeaderTime, audit.Entry{ID: audit.NewID()}, "", "no", 0},
		{limit.Connections, audit.Entry{}, "", "after", 1},
	} {
		if c.entry.ID != (audit.Entry{}).ID {
			c.id = c.entry.ID.String()
		}
		raw := Raw(Case{Reason: rules.ReasonLimit, Err: &limit.Exceeded{Kind: c.kind, Value: "1"}, Entry: &c.entry, Proxy: Proxy{Member: `"heed"`}}, &http.Request{})
		resp := must.Get(http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil))(t)
		var p Problem
		err := json.NewDecoder(resp.Body).Decode(&p)
		must.Need(t, err == nil, "%v in %s", err, raw)
		if p.DecisionID != c.id || p.Retry != c.retry || p.RetryAfter != c.after || (p.RetryAfter > 0) != (resp.Header.Get("Retry-After") != "") {
			t.Errorf("%s", raw)
		}
		if resp.StatusCode != c.kind.Status() || !strings.HasSuffix(resp.Status, " reached") || resp.Header.Get("X-Content-Type-Options") != "nosniff" || !resp.Close {
			t.Errorf("%s", raw)
		}
	}
}

// A request that fails behind an HTTP proxy, or at the name server, is not told as the site's
// failure.
func TestNew_TheRightHopIsNamed(t *testing.T) {
	t.Parallel()
	closes := testkit.RawSite(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1000))
		c.Close()
	})
	through := upstream.NewHostTransports(upstream.TransportConfig{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: closes})})
	r := must.Get(http.NewRequest(http.MethodGet, "http://site.test/", nil))(t)
	_, closed := through.RoundTrip(r)
	for want, err := range map[string]error{
		"heed reached the upstream proxy " + closes + ", but it ended the connection before the site's answer: connection_terminated": closed,
		"heed cannot look up site.test: the name server of heed's machine did not answer: dns_timeout":                                &net.DNSError{IsTimeout: true},
	} {
		c := caseOf(rules.ReasonOriginUnreachable)
		c.Err = err
		a := New(c)
		must.Equal(t, a.unreachableSentence(), want)
		if detail := new(Answer).stageDetail(upstream.FailureOf(err)); strings.Contains(detail, "The site was reached") || strings.Contains(detail, "The site itself") {
			t.Errorf("%q", detail)
		}
	}
}

// problem returns the body of a.
func (a *Answer) problem() *Problem {
	t := &told{}
	a.tell(t)
	return &t.Problem
}
