package replay_test

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/page"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// visitor is a crawler whose requests a test records as a proxy does.
type visitor struct {
	t        *testing.T
	path     string
	writer   *store.Writer
	agent    *rules.Agent
	purposes []signal.Purpose
	policies map[string]*rules.Policy // by host
	earlier  bool                     // its heed did not obey Content-Signal in an answer
}

// settings are those of all records of these tests: nothing is excepted.
const settings = "settings"

func newVisitor(t *testing.T, purposes ...signal.Purpose) *visitor {
	t.Helper()
	v := &visitor{t: t, path: filepath.Join(t.TempDir(), "audit.db"), agent: rules.Identify("TestBot/1.0"), purposes: purposes, policies: map[string]*rules.Policy{}}
	var err error
	v.writer, err = store.Open(v.path, store.Options{Heed: "test"})
	must.Need(t, err == nil, "%v", err)
	return v
}

// robots sets the robots.txt of a host.
func (v *visitor) robots(host, text string) {
	o := rules.Origin{Scheme: "https", Host: host, Port: 443}
	answer := &rules.Snapshot{Origin: o, Status: 200, FetchedAt: time.Now(), Chain: []string{o.RobotsURL()}}
	answer.Pack([]byte(text))
	v.policies[host] = rules.New(rules.Source{Origin: o, State: rules.Available, Status: 200, FetchedAt: answer.FetchedAt, Snapshot: answer}, []byte(text))
}

// get requests a page and records what became of it. field is a header field of the answer,
// such as "X-Robots-Tag: noindex", and html the page, which only a client with a purpose has
// read; both may be empty.
func (v *visitor) get(host, target, field, html string) {
	v.t.Helper()
	p := v.policies[host]
	e := &audit.Entry{
		ID: audit.NewID(), Time: time.Now(), Client: "192.0.2.7:4711", Mode: "enforce", Agent: v.agent, UserAgent: "TestBot/1.0", Config: "1", Settings: settings,
		Method: "GET", Scheme: "https", Host: host, Target: target, Judged: audit.ByPath, Policy: p,
	}
	q := judge.Query{Effective: (&acl.Rules{}).For(nil, p.Source().Origin, e.Time), Names: acl.Identity{Own: v.agent}, Target: rules.NewTarget(target)}
	o, needless := q.WithoutRules()
	if needless {
		e.Policy = nil
	} else {
		o, _ = q.Decide(p)
	}
	e.Decision = o.Decision
	var before *signal.Verdict
	in := signal.Input{URL: "https://" + host + target, Origin: p.Source().Origin, Target: rules.NewTarget(target), Agent: v.agent, Crawl: true}
	for _, purpose := range v.purposes {
		e.Purposes = append(e.Purposes, string(purpose))
	}
	if len(v.purposes) > 0 && o.Verdict == rules.Allow && !needless {
		in.Robots = signal.ReadRobots(p, v.agent, p.Source().Origin.RobotsURL())
		before, in.Robots = signal.Judge(in), nil
		e.Signals = v.json(before)
		if r, refused := before.Refuses(v.purposes...); refused {
			e.Decision = v.refusal(&o, &r)
		}
	}
	must.OK(v.t, v.writer.Decided(e))
	e.Outcome = audit.Outcome{Status: 403}
	if e.Decision.Verdict == rules.Allow {
		v.answer(e, &o, before, in, field, html)
	}
	v.writer.Ended(e)
}

// answer sets the outcome of a request that was sent.
func (v *visitor) answer(e *audit.Entry, o *judge.Result, before *signal.Verdict, in signal.Input, field, html string) {
	e.Outcome = audit.Outcome{Status: 200, FromSite: true}
	if field != "" || html != "" {
		in.Header = http.Header{"Content-Type": {"text/html"}}
		if name, value, ok := strings.Cut(field, ": "); ok {
			in.Header.Set(name, value)
		}
		if html != "" && len(v.purposes) > 0 {
			s := page.NewScanner(in.Header, signal.PageNames(in.Agent))
			_, _ = s.Write([]byte(html))
			head := s.Finish(true)
			in.Page = &head
		}
		after := signal.Judge(in)
		if v.earlier {
			s := &after.Statements[0]
			s.Says, s.Note, after.Results = nil, "recorded only: it is defined for robots.txt", nil
		}
		e.Outcome.Signals = v.json(after)
		if r, refused := signal.Combine(before, after).Refuses(v.purposes...); refused {
			late := v.refusal(o, &r)
			e.Outcome.Late, e.Outcome.LatePolicy = &late, e.Policy
			e.Outcome.Status, e.Outcome.FromSite, e.Outcome.SiteStatus = 403, false, 200
		}
	}
}

func (v *visitor) json(verdict *signal.Verdict) string {
	if len(verdict.Statements) == 0 && verdict.Page == "" {
		return ""
	}
	text := must.Get(json.Marshal(verdict))(v.t)
	return string(text)
}

// refusal returns the decision that a statement makes in place of o.
func (v *visitor) refusal(o *judge.Result, r *signal.Refusal) rules.Decision {
	return rules.Decision{Reason: r.Reason, Group: o.Group, Token: o.Token, Rule: r.Statement.Text, Line: r.Statement.Line}
}

// record closes the record and opens it for reading.
func (v *visitor) record() *store.Record {
	v.t.Helper()
	if v.writer != nil {
		must.OK(v.t, v.writer.Close(""))
		v.writer = nil
	}
	return must.Get(store.OpenRecord(v.path))(v.t)
}

// change changes the closed record with SQL.
func (v *visitor) change(query string) {
	v.t.Helper()
	db := must.Get(sql.Open("sqlite", v.path))(v.t)
	defer db.Close()
	must.Get(db.Exec(query))(v.t)
}

func judged(t *testing.T, record *store.Record, purposes ...signal.Purpose) *replay.Result {
	t.Helper()
	r, err := replay.Judge(t.Context(), record, replay.Options{Purposes: purposes, ParseRules: func(string) (*acl.Rules, error) { return &acl.Rules{}, nil }})
	must.OK(t, err)
	return r
}

const managed = "# BEGIN managed content\nUser-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n# END managed content\nUser-agent: *\nDisallow: /lp\n"

// Earlier heeds did not obey Content-Signal in an answer and recorded its words: by these,
// a replay reports which pages would be withheld now. The decisions come out the same.
func TestJudge_AFieldThatWasRecordedOnlyIsObeyedNow(t *testing.T) {
	t.Parallel()
	v := newVisitor(t, signal.PurposeTraining)
	v.earlier = true
	v.robots("field.example", "User-agent: *\nDisallow:\n")
	v.get("field.example", "/a", "Content-Signal: ai-train=no, search=yes", "")
	v.get("field.example", "/b", "Content-Signal: search=no", "")
	v.get("field.example", "/c", "Content-Signal: "+strings.Repeat("ai-input=no, ", 40)+"ai-train=no", "") // cut off in the record
	r := judged(t, v.record(), signal.PurposeSearch)
	must.True(t, r.Entries == 3 && r.Same == 3 && r.Different == 0 && r.Withheld == 1,
		"%d entries, %d the same, %d different, %d would be withheld; want 3, 3, 0, 1", r.Entries, r.Same, r.Different, r.Withheld)
	must.Equal(t, r.Uses.Refused, 1, "for search %+v", r.Uses.UseCounts)
}

// A crawl without a purpose met a site with a managed Content-Signal block, one that marks a
// page in the header, and one that says nothing. What would the sites have refused?
func TestJudge_ACrawlWithoutPurposeIfItHadBeenForTraining(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	v.robots("managed.example", managed)
	v.robots("marked.example", "User-agent: *\nDisallow:\n")
	v.robots("plain.example", "User-agent: *\nDisallow: /private\n")
	for _, target := range []string{"/a", "/b", "/c", "/lp", "/robots.txt"} {
		v.get("managed.example", target, "", "<title>A page</title>")
	}
	v.get("marked.example", "/draft", "X-Robots-Tag: noindex", "")
	v.get("plain.example", "/x", "", "")
	record := v.record()
	for _, c := range []struct {
		purposes []signal.Purpose
		want     replay.UseCounts
		site     string
		text     string
	}{
		{[]signal.Purpose{signal.PurposeTraining}, replay.UseCounts{Judged: 5, Refused: 3, Unknown: 2}, "https://managed.example", "Content-Signal: search=yes, ai-train=no"},
		{[]signal.Purpose{signal.PurposeSearch}, replay.UseCounts{Judged: 5, Refused: 1, Unknown: 4}, "https://marked.example", "X-Robots-Tag: noindex"},
		{[]signal.Purpose{signal.PurposeSearch, signal.PurposeTraining}, replay.UseCounts{Judged: 5, Refused: 4, Unknown: 1}, "https://managed.example", "Content-Signal: search=yes, ai-train=no"},
		{[]signal.Purpose{signal.PurposeArchive}, replay.UseCounts{Judged: 5, Unknown: 5}, "", ""},
	} {
		r := judged(t, record, c.purposes...)
		u := r.Uses
		must.True(t, r.Different == 0 && u.UseCounts == c.want && u.Others == 2,
			"%s: %+v and %d others, want %+v and 2", c.purposes, u.UseCounts, u.Others, c.want)
		must.True(t, len(u.Categories) == len(c.purposes) && u.Categories[0].Purpose == c.purposes[0],
			"%s: the categories are %+v", c.purposes, u.Categories)
		if c.site == "" {
			must.True(t, len(u.Sites) == 0, "%s: %+v", c.purposes, u.Sites)
			continue
		}
		if u.Sites[0].Site != c.site || u.Sites[0].Statements[0].Text != c.text || u.Sites[0].Statements[0].Count != u.Sites[0].Refused {
			t.Errorf("%s: %+v", c.purposes, u.Sites)
		}
	}
	if u := judged(t, record, signal.PurposeTraining).Uses; u.Sites[0].Statements[0].Line != 3 || u.Sites[0].Statements[0].URL != "https://managed.example/robots.txt" {
		t.Errorf("the statement is at %+v", u.Sites[0].Statements[0])
	}
}

// What was refused by a statement, before the request or by withholding the page, comes out
// the same by the recorded statements and the recorded purpose, and not by others.
func TestJudge_RefusalsByStatementsComeOutAgain(t *testing.T) {
	t.Parallel()
	crawl := func(t *testing.T) *visitor {
		v := newVisitor(t, signal.PurposeTraining, signal.PurposeSearch)
		v.robots("managed.example", managed)
		v.robots("plain.example", "User-agent: *\nDisallow: /private\n")
		v.get("managed.example", "/a", "", "")
		v.get("plain.example", "/x", "", "<head><title>x</title></head>")
		v.get("plain.example", "/draft", "", "<head>\n<meta name=robots content=noindex>\n</head>")
		v.get("plain.example", "/marked", "X-Robots-Tag: noindex", "<head></head>")
		v.get("plain.example", "/private/x", "", "")
		return v
	}
	v := crawl(t)
	r := judged(t, v.record(), signal.PurposeSearch)
	must.True(t, r.Entries == 5 && r.Late == 2 && r.Same == 7 && r.NotByRules == 0,
		"%d entries, %d late, %d same, %d not by rules: %+v", r.Entries, r.Late, r.Same, r.NotByRules, r.Examples)
	want := replay.UseCounts{Judged: 4, Refused: 2, Silent: 1, Unknown: 1} // the page that was not requested
	must.True(t, r.Uses.UseCounts == want && r.Uses.Others == 1 && r.Uses.Unknowns[0].Why == "the page was not requested",
		"for search: %+v, %d others, %+v", r.Uses.UseCounts, r.Uses.Others, r.Uses.Unknowns)
	for name, c := range map[string]struct {
		change                string
		different, incomplete int64
	}{
		"another purpose":            {`UPDATE asker SET purpose = '["archive"]' WHERE purpose IS NOT NULL`, 3, 0},
		"an unknown purpose":         {`UPDATE asker SET purpose = '["resale"]' WHERE purpose IS NOT NULL`, 0, 3},
		"what a page states":         {`UPDATE outcome SET signals = replace(signals, 'disallow', 'allow')`, 2, 0},
		"what robots.txt states":     {`UPDATE ground SET signals = replace(signals, 'disallow', 'allow') WHERE reason = 'signal'`, 1, 0},
		"statements that are gone":   {`UPDATE outcome SET signals = NULL`, 0, 2},
		"statements that are broken": {`UPDATE outcome SET signals = '{' WHERE signals IS NOT NULL`, 0, 2},
		"the quoted statement":       {`UPDATE ground SET rule = rule || 'x' WHERE reason = 'signal'`, 3, 0},
		"the verdict":                {`UPDATE ground SET verdict = 'would-refuse' WHERE reason = 'signal'`, 3, 0},
		"a target that rules refuse": {`UPDATE entry SET target = CAST('/lp' AS BLOB) WHERE ground IN (SELECT id FROM ground WHERE reason = 'signal')`, 1, 0},
	} {
		v := crawl(t)
		v.record()
		v.change(c.change)
		if r := judged(t, v.record()); r.Different != c.different || r.Incomplete != c.incomplete {
			t.Errorf("%s: %d different, %d incomplete, want %d and %d: %+v", name, r.Different, r.Incomplete, c.different, c.incomplete, r.Examples)
		}
	}
}

// An exception of the operator allows a page whatever the site states of its use.
func TestJudge_AnExceptionCountsBeforeStatements(t *testing.T) {
	t.Parallel()
	host := must.Get(acl.ParseHostPattern("managed.example"))(t)
	agreed := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/a"}, Reason: "a contract"}))(t)
	excepted := func(string) (*acl.Rules, error) {
		return &acl.Rules{Hosts: []acl.Host{{Match: []acl.HostPattern{host}, Exceptions: []*acl.Exception{agreed}}}}, nil
	}
	for _, stated := range [][]signal.Purpose{nil, {signal.PurposeTraining}} {
		v := newVisitor(t, stated...)
		v.robots("managed.example", managed)
		v.get("managed.example", "/a", "", "")
		v.get("managed.example", "/b", "", "")
		r, err := replay.Judge(t.Context(), v.record(), replay.Options{ParseRules: excepted, Purposes: []signal.Purpose{signal.PurposeTraining}})
		must.OK(t, err)
		must.Equal(t, r.Uses.UseCounts, (replay.UseCounts{Judged: 2, Refused: 1, Allowed: 1}), "stated %q", stated)
		if different := int64(len(stated)); r.Different != different { // the proxy of this story had no exception
			t.Errorf("stated %q: %d different, want %d: %+v", stated, r.Different, different, r.Examples)
		}
	}
}

// Under another profile the recorded statements have another meaning, and strict refuses a
// page whose head was not read.
func TestJudge_ForAPurposeUnderAnotherProfile(t *testing.T) {
	t.Parallel()
	v := newVisitor(t, signal.PurposeArchive)
	v.robots("plain.example", "User-agent: *\nDisallow: /private\n")
	v.get("plain.example", "/both", "", "<head><meta name=robots content='all, noindex'></head>")
	v.get("plain.example", "/odd", "", "no markup")
	record := v.record()
	for _, c := range []struct {
		profile rules.Profile
		want    replay.UseCounts
	}{
		{rules.Standard, replay.UseCounts{Judged: 2, Refused: 1, Unknown: 1}},
		{rules.REP1994, replay.UseCounts{Judged: 2, Allowed: 1, Unknown: 1}},
		{rules.Strict, replay.UseCounts{Judged: 2, Refused: 2}},
	} {
		r, err := replay.Judge(t.Context(), record, replay.Options{
			Purposes: []signal.Purpose{signal.PurposeSearch}, If: &replay.If{Profile: &c.profile},
			ParseRules: func(string) (*acl.Rules, error) { return &acl.Rules{}, nil },
		})
		must.OK(t, err)
		must.True(t, r.Uses.UseCounts == c.want && r.Different == 0,
			"%s: %+v, want %+v", c.profile, r.Uses.UseCounts, c.want)
	}
}

// The page is explained with the statement that withheld it, and the line of robots.txt is
// shown only when the statement is in robots.txt.
func TestExplain_AStatement(t *testing.T) {
	t.Parallel()
	v := newVisitor(t, signal.PurposeTraining, signal.PurposeSearch)
	v.robots("managed.example", managed)
	v.robots("plain.example", "User-agent: *\nDisallow: /private\n")
	v.get("managed.example", "/a", "", "")
	v.get("plain.example", "/draft", "", "<head>\n<meta name=robots content=noindex>\n</head>")
	record := v.record()
	explain := func(host, target string) *replay.Explained {
		x, err := replay.ExplainURL(t.Context(), record, func(string) (*acl.Rules, error) { return &acl.Rules{}, nil }, rules.Origin{Scheme: "https", Host: host, Port: 443}, target, store.Filter{})
		must.OK(t, err)
		return x
	}
	x := explain("managed.example", "/a")
	if x.Text != "Content-Signal: search=yes, ai-train=no" || x.Again != replay.Same || x.Use.Of(signal.TrainAI) != signal.Disallow || x.Withheld() {
		t.Errorf("line %q, %s, %+v", x.Text, x.Again, x.Use)
	}
	x = explain("plain.example", "/draft")
	if x.Text != "" || x.Again != replay.Same || x.Use.Of(signal.Search) != signal.Disallow || !x.Withheld() || x.Late.Line != 2 || x.Outcome.SiteStatus != 200 {
		t.Errorf("line %q, %s, %+v, %+v", x.Text, x.Again, x.Use, x.Late)
	}
	must.True(t, slices.Equal(x.Purposes, []string{"training", "search"}) && x.PageSignals != nil && x.Signals == nil,
		"purposes %q, signals %s, %s", x.Purposes, x.Signals, x.PageSignals)
}
