package replay

import (
	"cmp"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// crawl is a heed that is not there: it decides at random questions as a proxy
// does, and records what it decides.
type crawl struct {
	t        testing.TB
	path     string
	random   *rand.Rand
	writer   *store.Writer
	now      time.Time
	settings map[string]*acl.Rules // by their text
	order    []*acl.Rules

	policies map[rules.Origin]*rules.Policy
}

// crowd has more names than a row of the record has room for.
var crowd = func() string {
	var b strings.Builder
	for i := range 700 {
		fmt.Fprintf(&b, "b%03d ", i)
	}
	return b.String()
}()

// noon is when crawls begin.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newCrawl(t testing.TB) *crawl {
	t.Helper()
	c := &crawl{
		t: t, path: filepath.Join(t.TempDir(), "audit.db"), random: rand.New(rand.NewPCG(7, 11)), now: noon,
		settings: map[string]*acl.Rules{}, policies: map[rules.Origin]*rules.Policy{},
	}
	c.agree()
	privacy := must.Get(audit.NewPrivacy(audit.ClientsFull, []string{"token"}, make([]byte, audit.PrivacyKeySize)))(t)
	c.writer = must.Get(store.Open(c.path, store.Options{Heed: "test", Privacy: privacy}))(t)
	return c
}

// agree makes settings in which everything occurs that verdicts rest on.
func (c *crawl) agree() {
	exception := func(e acl.Exception) *acl.Exception {
		return must.Get(acl.NewException(e))(c.t)
	}
	clients := []acl.Client{
		{Name: "declared", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, Agent: rules.Declare("LabBot"), SendUserAgent: "LabBot/2 (+https://lab.test)"},
		{Name: "hidden", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/32")}, Agent: rules.Declare("NewsBot")},
		{Name: "shown", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.3/32")}, SendUserAgent: "OtherBot/1"},
		{Name: "browser", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.4/32")}, AllowSubresources: true, RefuseUnnamed: true},
		{Name: "watched", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.5/32")}, Mode: new(acl.Observe)},
	}
	host := func(text string) []acl.HostPattern {
		p := must.Get(acl.ParseHostPattern(text))(c.t)
		return []acl.HostPattern{p}
	}
	hosts := []acl.Host{
		{Match: host("s1.test"), Exceptions: []*acl.Exception{exception(acl.Exception{Patterns: []string{"/a"}, Reason: "agreed", Expires: noon.Add(3 * time.Minute)})}},
		{Match: host("s2.test"), Exceptions: []*acl.Exception{exception(acl.Exception{Patterns: []string{"/b/"}, Refuse: true, Reason: "asked to", Clients: []string{"declared", "shown"}})}},
		{Match: host("s3.test"), Service: "a service"},
		{Match: host("s4.test"), NeverAllow: true, HTTPS: new(acl.HostOnly)},
		{Match: host("s5.test"), HTTPS: new(acl.Tunnel), Exceptions: []*acl.Exception{exception(acl.Exception{Patterns: []string{"/"}, Refuse: true, Reason: "no tunnels there"})}},
		{Match: host("s6.test"), HTTPS: new(acl.HostOnly)},
	}
	breaks := []acl.ModeOverride{{Mode: acl.Observe, Client: "hidden", Since: noon, Until: noon.Add(2 * time.Minute), Reason: "break-glass"}}
	for i, b := range []*acl.Rules{{}, {Clients: clients, Hosts: hosts}, {Clients: clients, Hosts: hosts, Overrides: breaks}, {Observe: true, Hosts: hosts}} {
		b.Text = fmt.Sprintf("settings %d", i)
		b.Hash = fmt.Sprintf("%064d", i)
		c.settings[b.Text] = b
		c.order = append(c.order, b)
	}
}

// pick returns one of all.
func pick[T any](c *crawl, all ...T) T { return all[c.random.IntN(len(all))] }

// file writes a robots.txt.
func (c *crawl) file() string {
	var b strings.Builder
	for range c.random.IntN(5) {
		fmt.Fprintf(&b, "User-agent: %s\n", pick(c, "*", "LabBot", "NewsBot", "otherbot", "curl", "Mozilla"))
		for range c.random.IntN(8) {
			fmt.Fprintf(&b, "%s: %s\n", pick(c, "Allow", "Disallow", "Disallow"), c.pattern())
		}
		if c.random.IntN(3) == 0 {
			b.WriteString("Crawl-delay: 2\n\n")
		}
	}
	return pick(c, b.String(), b.String(), b.String(), "\xEF\xBB\xBF"+b.String(), "<html>no such page</html>")
}

func (c *crawl) pattern() string {
	return "/" + pick(c, "", "a", "b/", "a/b", "A", "%61", "*", "*.png$", "a*b", "~x", "a?q=", "index.html")
}

func (c *crawl) target() string {
	t := "/" + pick(c, "", "a", "b/", "b/c.png", "a/b", "A", "%61", "%7Ex", "a/../b/", "a%2Fb", "x;y", "index.html", "robots.txt", "deep/er/page-"+fmt.Sprint(c.random.IntN(1000)))
	if t != "/robots.txt" && c.random.IntN(4) == 0 {
		t += "?" + pick(c, "q=1", "token=s3cret", "a=b&c=%20d")
	}
	return t
}

func (c *crawl) origin() rules.Origin {
	return rules.Origin{Scheme: pick(c, "http", "https"), Host: fmt.Sprintf("s%d.test", c.random.IntN(40)), Port: pick[uint16](c, 80, 443, 8443)}
}

// policy is what o's robots.txt says now; now and then it changes.
func (c *crawl) policy(o rules.Origin) *rules.Policy {
	if p := c.policies[o]; p != nil && c.random.IntN(200) > 0 {
		return p
	}
	profile := pick(c, rules.Standard, rules.Standard, rules.Strict, rules.Google, rules.REP1994)
	s := rules.Source{Origin: o, FetchedAt: c.now, FreshUntil: c.now.Add(time.Hour)}
	s.State = pick(c, rules.Available, rules.Available, rules.Available, rules.Unavailable, rules.Unreachable)
	text := []byte(c.file())
	answer := &rules.Snapshot{Origin: o, FetchedAt: c.now, Chain: []string{o.RobotsURL()}, SHA256: rules.DigestOf(nil), Header: map[string][]string{"Server": {"test"}}}
	s.Status, s.Snapshot = 200, answer
	switch s.State {
	case rules.Available:
		answer.Pack(text)
		s.Stale = c.random.IntN(10) == 0
	case rules.Unavailable:
		s.Status = pick(c, 404, 403)
	default:
		s.Status = pick(c, 503, 0)
		if s.Err = fmt.Errorf("it answered %d", s.Status); s.Status == 0 {
			s.Snapshot, s.NoConnection = nil, true
		}
	}
	answer.Status = s.Status
	c.policies[o] = rules.NewAs(profile, s, text)
	return c.policies[o]
}

// entries records n decisions.
func (c *crawl) entries(n int) *crawl {
	c.t.Helper()
	for range n {
		c.now = c.now.Add(time.Duration(c.random.IntN(20)) * time.Millisecond)
		e := c.entry()
		must.OK(c.t, c.writer.Decided(e))
		e.Outcome.Status, e.Outcome.FromSite = 200, true
		c.writer.Ended(e)
	}
	return c
}

func (c *crawl) entry() *audit.Entry {
	o := c.origin()
	e := &audit.Entry{
		ID: audit.NewID(), Time: c.now, Client: fmt.Sprintf("192.0.2.%d:4000", c.random.IntN(8)), Method: pick(c, "GET", "GET", "HEAD", "POST"),
		Scheme: o.Scheme, Host: o.Authority(), Target: c.target(), Judged: audit.ByPath,
		UserAgent: pick(c, "", "curl/8.1", "LabBot/1.0", "Mozilla/5.0 (compatible; NewsBot/2.1; +https://news.test)", "python-requests/2", crowd),
	}
	if c.random.IntN(10) == 0 {
		e.Decision.Reason = pick(c, rules.ReasonAccess, rules.ReasonDestination, rules.ReasonMalformed, rules.ReasonLimit, rules.ReasonLoop)
		e.Judged, e.Agent, e.Mode, e.Detail = audit.NotJudged, rules.Identify(e.UserAgent), "enforce", "as it was"
		return e
	}
	if c.random.IntN(5) == 0 {
		e.Part, e.Page = "image", "https://"+e.Host+"/"
	}
	c.decide(e, o, pick(c, c.order...))
	return e
}

// decide does what a proxy does.
func (c *crawl) decide(e *audit.Entry, o rules.Origin, b *acl.Rules) {
	at, _ := netip.ParseAddrPort(e.Client)
	q := judge.Query{Target: rules.NewTarget(e.Target), Now: c.now, Effective: b.For(b.ClientOf(acl.ClientInfo{Addr: at.Addr(), UserAgent: e.UserAgent}), o, c.now)}
	q.Names = q.Effective.Identity(e.UserAgent, rules.Identify)
	if h := q.Effective.HTTPS(); h != acl.Intercept && c.random.IntN(2) == 0 {
		e.Method, e.Target, q.Target, q.HTTPS = "CONNECT", "", rules.NewTarget(""), h
		e.Judged = audit.ByHost
		q.Names = q.Effective.TunnelIdentity(q.Names, e.UserAgent, rules.Identify)
	}
	e.Config, e.Settings, e.Agent, e.ClientName, e.Mode = b.Hash, b.Text, q.Names.Own, q.Effective.Name(), q.Effective.Mode.String()
	if q.Names.Shown != e.UserAgent {
		e.Sent = q.Names.Shown
	}
	answer, ok := q.WithoutRules()
	if !ok {
		e.Policy = c.policy(o)
		if e.Mode == "observe" && c.random.IntN(20) == 0 {
			c.late(e, &q)
			return
		}
		answer, _ = q.Decide(e.Policy)
	}
	if answer.Unjudged {
		e.Judged = audit.NotJudged
	}
	if e.Part != "" && judge.MayBeSubresource(q.Effective, answer) && c.random.IntN(2) == 0 {
		answer = judge.AsSubresource(q.Effective, answer, e.Part)
	}
	answer = judge.Apply(q.Effective, answer)
	e.Decision, e.Settled, e.Unseen = answer.Decision, answer.OperatorReason, int32(answer.Unseen)
}

// late lets a request through whose verdict follows.
func (c *crawl) late(e *audit.Entry, q *judge.Query) {
	o, _ := q.Decide(e.Policy)
	if o = judge.Apply(q.Effective, o); o.Verdict == rules.Refuse {
		o.Verdict = rules.WouldRefuse
	}
	e.Outcome.Late, e.Outcome.LatePolicy, e.Outcome.LateSettled = &o.Decision, e.Policy, o.OperatorReason
	e.Policy, e.Judged = nil, audit.NotJudged
	e.Decision = rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonRulesPending}
}

// options are those under which c's record is judged again.
func (c *crawl) options() Options {
	return Options{ParseRules: func(text string) (*acl.Rules, error) {
		if b := c.settings[text]; b != nil {
			return b, nil
		}
		return nil, fmt.Errorf("%q are no settings", text)
	}}
}

// closed closes the record and opens it for reading.
func (c *crawl) closed() *store.Record {
	c.t.Helper()
	must.OK(c.t, c.writer.Close("the test is over"))
	return c.view()
}

// view opens the closed record for reading.
func (c *crawl) view() *store.Record {
	c.t.Helper()
	return must.Get(store.OpenRecord(c.path))(c.t)
}

// change changes the closed record with SQL.
func (c *crawl) change(text string, values ...any) {
	c.t.Helper()
	db, err := sql.Open("sqlite", c.path)
	must.OK(c.t, err)
	_, err = db.Exec(text, values...)
	must.OK(c.t, cmp.Or(err, db.Close()))
}

// copied returns c, which is closed, with a copy of its record.
func (c *crawl) copied(t testing.TB) *crawl {
	t.Helper()
	text, err := os.ReadFile(c.path)
	copied := *c
	copied.t, copied.path = t, filepath.Join(t.TempDir(), "audit.db")
	if err == nil {
		err = os.WriteFile(copied.path, text, 0o600)
	}
	must.OK(t, err)
	return &copied
}
