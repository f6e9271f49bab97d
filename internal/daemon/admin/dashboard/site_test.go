package dashboard_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/check"
	"heed/internal/check/why"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/daemon/admin/dashboard"
	"heed/internal/judge/acl"
	"heed/internal/judge/reason"
	"heed/internal/output/figures"
	"heed/internal/pace"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/fixture"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// robots is the file of the site shop.test, with markup in a comment.
const robots = `# <script>document.title = "robots"</script>
User-agent: NewsBot
Disallow: /private
Allow: /private/press

User-agent: *
Disallow: /admin # nobody
Crawl-delay: 2
`

// settings have a client and exceptions with and without an end.
const settings = `contact = "https://example.org/bot"
[upstream]
proxy = "http://user:secret-of-upstream@proxy.example:3128"
[[client]]
name = "newsbot<b>"
user_agent = "NewsBot/*"
agent = ["NewsBot"]
[[host]]
match = ["archive.test"]
allow = ["/old/"]
reason = "written permission 2026-14"
expires = 2027-01-31
[[host]]
match = ["*.partner.test"]
refuse = ["/"]
reason = "contract ended"
`

// running is a heed whose parts are real, but which serves no requests: the counts, the
// policies and the settings, beside a record on disk.
type running struct {
	start  time.Time
	counts *counts.Counter
	config *config.Config
	policy *rules.Policy
	status control.Status
	queues []pace.SiteStatus
	writer *store.Writer // of visited

	mu      sync.Mutex
	checked int
	acts    []string
}

var shop = rules.Origin{Scheme: "https", Host: "shop.test", Port: 443}

func newRunning(t testing.TB) *running {
	h := &running{start: time.Now(), counts: counts.New(nil), config: fixture.Settings(t, settings)}
	h.policy = policyOf(h.start)
	h.status = control.Status{Since: h.start, Listeners: []string{"127.0.0.1:3128"}, Mode: "enforce", Profile: "standard", CA: control.CAStatus{DaysLeft: 300}}
	h.status.Version = "test"
	h.status.Exceptions = []control.Exception{{ID: "7", Path: "/feed", Client: "newsbot<b>", Reason: "asked on the telephone", Since: h.start, Expires: h.start.Add(time.Hour)}}
	h.queues = []pace.SiteStatus{{Origin: shop.String(), Waiting: 2, Running: 1, Pause: 30 * time.Second, Asked: true, Waiters: []pace.Waiter{{Request: "GET /<b>x", Since: h.start, Next: 3 * time.Second}}}}
	return h
}

func policyOf(at time.Time) *rules.Policy {
	snapshot := &rules.Snapshot{Origin: shop, Chain: []string{shop.RobotsURL()}, Status: 200, FetchedAt: at}
	snapshot.Pack([]byte(robots))
	return rules.New(rules.Source{Origin: shop, State: rules.Available, Status: 200, FetchedAt: at, FreshUntil: at.Add(time.Hour), Snapshot: snapshot}, []byte(robots))
}

func (h *running) Status() *control.Status {
	s := h.status
	s.Hour, s.Troubles = h.counts.Hour(time.Now()), h.counts.Troubles(time.Now())
	return &s
}

func (h *running) Recent() (counts.Counts, []counts.Period) {
	return h.counts.Minute(time.Now()), h.counts.Day(time.Now())
}

func (h *running) Check(ctx context.Context, q *control.CheckRequest) ([]*control.Judgement, error) {
	h.mu.Lock()
	h.checked++
	h.mu.Unlock()
	j := check.Judge{Now: time.Now, Rules: &acl.Rules{}, Explain: q.Explain, Client: q.Client}
	return j.AskAll(ctx, q.Agent, []string{string(q.URLs[0])}, true, func(context.Context, rules.Origin, string) (*rules.Policy, string, string) {
		return h.policy, shop.RobotsURL(), why.ByHeed
	})
}

func (h *running) entry() *control.CacheEntry {
	return &control.CacheEntry{Origin: shop.String(), State: "available", Why: "status 200", Status: 200, FetchedAt: h.start, NextAt: h.start.Add(time.Hour), Bytes: 900}
}

func (h *running) List(_ context.Context, each func(*control.CacheEntry) error) error {
	return each(h.entry())
}

func (h *running) Show(_ context.Context, origin string) ([]*control.CacheEntry, error) {
	if origin != shop.String() {
		return nil, nil
	}
	e, text := h.entry(), robots
	e.Text, e.Snapshot = &text, h.policy.Source().Snapshot
	return []*control.CacheEntry{e}, nil
}

func (h *running) Queues() []pace.SiteStatus { return h.queues }

func (h *running) Config() *config.Config { return h.config }

// act records an action.
func (h *running) act(what string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acts = append(h.acts, what)
	return nil
}

func (h *running) Purge(_ context.Context, origin string) ([]string, error) {
	return nil, h.act("forget " + origin)
}

func (h *running) Warm(_ context.Context, origin string) (*control.CacheEntry, error) {
	return nil, h.act("fetch " + origin)
}

func (h *running) Text(context.Context, string) ([]byte, error) { return []byte(robots), nil }

// heed returns h as the dashboard sees it.
func (h *running) heed() dashboard.Heed {
	return dashboard.Heed{
		Status: h.Status, Recent: h.Recent, Check: h.Check, Queues: h.Queues, Config: h.Config,
		Cache:        func(do func(control.CacheAPI) error) error { return do(h) },
		EndException: func(id string) error { return h.act("end-exception " + id) },
		EndObserving: func() error { return h.act("end-observing") },
		EndPause:     func(origin string) error { return h.act("end-pause " + origin) },
	}
}

// crawled makes a record of entries that ends a short time ago, at perSecond.
func crawled(t testing.TB, entries, perSecond int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	begin := time.Now().Add(-time.Duration(entries/perSecond) * time.Second * 5 / 4) // its pace varies
	must.OK(t, (audittest.Crawl{Entries: entries, Sites: max(40, entries/1000), PerSecond: perSecond, Begin: begin}).Write(path, store.Options{}))
	return path
}

// request is a request to shop.test that the policy judges.
func (h *running) request(agent, target string) *audit.Entry {
	e := &audit.Entry{
		ID: audit.NewID(), Time: time.Now(), Client: "192.0.2.9:40000", Mode: "enforce", Agent: rules.Identify(agent), UserAgent: agent,
		Method: "GET", Scheme: "https", Host: "shop.test", Target: target, Judged: audit.ByPath, Policy: h.policy,
	}
	e.Decision = h.policy.Decide(e.Agent, rules.NewTarget(target))
	e.Outcome = audit.Outcome{Status: 403, BytesOut: 420, Duration: time.Millisecond}
	if e.Decision.Verdict == rules.Allow {
		e.Outcome = audit.Outcome{Status: 200, FromSite: true, BytesOut: 9000, Duration: 30 * time.Millisecond}
	}
	return e
}

// serve serves the dashboard.
func serve(t testing.TB, o dashboard.Options) (address string, d *dashboard.Dashboard) {
	t.Helper()
	d = dashboard.New(complete(o))
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	t.Cleanup(d.Close)
	return s.URL, d
}

// complete returns o with what every dashboard has.
func complete(o dashboard.Options) dashboard.Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MayAct == nil {
		o.MayAct = func(context.Context) bool { return false }
	}
	if o.Admitted == nil {
		o.Admitted = func(context.Context) bool { return true }
	}
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

// recording appends decisions to the record at path.
func recording(t testing.TB, path string) *store.Writer {
	t.Helper()
	w := must.Get(store.Open(path, store.Options{}))(t)
	t.Cleanup(func() { _ = w.Close("the test ended") })
	return w
}

// hostile is text of clients that a browser would run if a page did not escape it.
var hostile = []struct{ agent, target string }{
	{`<script>document.title = "agent"</script> NewsBot/2.1`, `/private/<img src=x onerror=document.title=1>`},
	{`NewsBot/1.0 (+https://bot.example/about)`, `/private/"><script src=//other.test></script>` + strings.Repeat("very-long-", 60)},
	{"Mozilla/5.0 (X11; Linux x86_64) \u202ereverse", `/admin?q={{.}}&<svg onload=alert(1)>`},
	{`javascript:alert(1)`, `/ok`},
}

// explained is the decision with an id as replay explains it.
func explained(t testing.TB, record *store.Record, id string) *replay.Explained {
	t.Helper()
	return must.Get(replay.ExplainID(t.Context(), record, config.RecordedRules, id))(t)
}

func checkOf(form url.Values) *control.CheckRequest {
	return &control.CheckRequest{URLs: [][]byte{[]byte(form.Get("url"))}, Agent: form.Get("agent"), Explain: true, Delay: true}
}

func styleOf(c reason.Class) string { return figures.Style(c) }

// mayAct allows every request to change the running heed.
func mayAct(context.Context) bool { return true }
