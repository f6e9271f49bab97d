package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// What was decided is decided again: all that rests on rules and settings, of
// every kind, and what does not is counted by its reason.
func TestHeed_EveryVerdictComesOutAgain(t *testing.T) {
	t.Parallel()
	n := 2_500 // all kinds of decisions; a million with HEED_TEST_FULL
	if os.Getenv("HEED_TEST_FULL") != "" {
		n = 1_000_000
	}
	c := newCrawl(t).entries(n)
	record := c.closed()
	start := time.Now()
	r := must.Get(Judge(context.Background(), record, c.options()))(t)
	t.Logf("%d entries judged again in %v", r.Entries, time.Since(start).Round(time.Millisecond))
	if r.Entries != int64(n) || r.Different+r.OtherEngine+r.Incomplete > 0 {
		t.Errorf("%d entries, %d different, %d of another engine, %d incomplete", r.Entries, r.Different, r.OtherEngine, r.Incomplete)
		for _, x := range r.Examples {
			t.Logf("%+v", x)
		}
	}
	if sum := r.Same + r.Redacted + r.NotByRules; sum != r.Entries+r.Late || r.Late == 0 || r.Redacted == 0 {
		t.Errorf("%d same, %d redacted, %d without rules, %d late", r.Same, r.Redacted, r.NotByRules, r.Late)
	}
	for _, w := range r.Why {
		t.Logf("%+v", w)
	}
}

// An engine that was changed on purpose is caught, whatever the change, as long
// as its number is the same; if the number was raised, the differences are
// reported apart.
func TestHeed_AChangedEngineIsCaught(t *testing.T) {
	t.Parallel()
	c := newCrawl(t).entries(1500)
	c.closed()
	o := c.options()
	c.change("UPDATE policy SET profile = 'strict' WHERE profile = 'standard'") // where Disallow wins a tie
	r, err := Judge(t.Context(), c.view(), o)
	must.OK(t, err)
	must.Need(t, r.Different != 0 && r.OtherEngine == 0 && len(r.Examples) > 0 && r.Examples[0].Recorded != r.Examples[0].Now,
		"%d different, %d of another engine: %+v", r.Different, r.OtherEngine, r.Examples)
	different := r.Different
	c.change("UPDATE ground SET engine = engine - 1")
	r, err = Judge(t.Context(), c.view(), o)
	must.Need(t, err == nil, "%v", err)
	must.True(t, r.OtherEngine == different && r.Different == 0 && r.Engines[rules.Engine-1] == r.Entries,
		"%d different, %d of another engine of %d; %v", r.Different, r.OtherEngine, different, r.Engines)
}

// A record of two engines, of which the older one decided otherwise: the differences are
// reported separately, and each form of the report names both engines.
func TestHeed_ARecordOfTwoEngines(t *testing.T) {
	t.Parallel()
	c := newCrawl(t).entries(700)
	record := c.closed()
	o := c.options()
	before := must.Get(Judge(t.Context(), record, o))(t)
	c.change(fmt.Sprintf("UPDATE ground SET engine = %d, line = line + 1 WHERE reason = 'rule'", rules.Engine-1))
	r := must.Get(Judge(t.Context(), c.view(), o))(t)
	if r.OtherEngine == 0 || r.Different > 0 || r.Same != before.Same-r.OtherEngine || r.Engines[rules.Engine-1] == 0 || r.Engines[rules.Engine] == 0 {
		t.Errorf("%d of another engine, %d different, %d same of %d; %v", r.OtherEngine, r.Different, r.Same, before.Same, r.Engines)
	}
	rep := must.Get(report.New([]*store.Record{c.view()}, report.Query{}, noon))(t)
	dir := filepath.Join(t.TempDir(), "tables")
	must.OK(t, (&report.Paper{Now: noon}).Write(t.Context(), dir, []*store.Record{c.view()}))
	methods := must.Get(os.ReadFile(filepath.Join(dir, "methods.txt")))(t)
	want := fmt.Sprintf("rules engines %d, %d", rules.Engine-1, rules.Engine)
	var text, page strings.Builder
	must.OK(t, errors.Join(rep.WriteText(&text), rep.WriteHTML(&page)))
	for form, text := range map[string]string{"text": text.String(), "page": page.String(), "methods": strings.Join(strings.Fields(string(methods)), " ")} {
		must.Contain(t, text, want, "the %s does not name the %s", form, want)
	}
}

// What was changed in the record afterwards no longer comes out.
func TestHeed_AChangedRecordDoesNotComeOutAgain(t *testing.T) {
	t.Parallel()
	made := newCrawl(t).entries(700)
	made.closed()
	for name, change := range map[string]string{
		"a verdict":          "UPDATE ground SET verdict = 'allow' WHERE id = (SELECT min(g.id) FROM ground g JOIN entry e ON e.ground = g.id WHERE g.reason = 'rule' AND g.verdict = 'refuse' AND e.redacted = 0)",
		"a line":             "UPDATE ground SET line = line + 1 WHERE reason = 'rule'",
		"a rule":             "UPDATE ground SET rule = rule || 'x' WHERE reason = 'rule'",
		"a reason":           "UPDATE ground SET reason = 'no-rule', rule = NULL, line = NULL WHERE reason = 'rule'",
		"a target":           "UPDATE entry SET target = CAST('/elsewhere' AS BLOB) WHERE redacted = 0",
		"a mode":             "UPDATE asker SET mode = 'enforce' WHERE mode = 'observe'",
		"the names":          "UPDATE asker SET tokens = '[\"other\"]'",
		"a User-Agent":       "UPDATE asker SET user_agent = 'SomeOtherBot/1' WHERE user_agent IS NOT NULL",
		"whose exception":    "UPDATE ground SET settled = 'somebody else' WHERE reason = 'override'",
		"which settings":     "UPDATE ground SET configuration = 1",
		"a profile":          "UPDATE policy SET profile = 'rep1994'",
		"whose robots.txt":   "UPDATE snapshot SET body = (SELECT min(id) FROM body) WHERE body IS NOT NULL",
		"a robots.txt":       "UPDATE body SET sha256 = zeroblob(32)",
		"that a site failed": "UPDATE policy SET state = 'unavailable' WHERE state = 'unreachable'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := made.copied(t)
			c.change(change)
			r := must.Get(Judge(t.Context(), c.view(), c.options()))(t)
			must.True(t, r.Different != 0, "%+v", r)
			o := c.options()
			strict := rules.Strict
			o.If, o.Purposes = &If{Profile: &strict}, []signal.Purpose{signal.PurposeTraining}
			then, err := Judge(t.Context(), c.view(), o)
			must.True(t, err == nil && then.Different == r.Different, "with another profile, %+v, %v", then, err)
		})
	}
}

// A record that was made to hurt cannot make the result as long as itself.
func TestHeed_OfManyReasonsSomeArePrinted(t *testing.T) {
	t.Parallel()
	r := newResult("")
	for i := range 10 * maxWhys {
		r.countWhy(Why{Class: Different, Reason: "rule", Why: fmt.Sprint(i)})
	}
	r.countWhy(Why{Class: Incomplete, Reason: "rule"})
	r.finish()
	sum := int64(0)
	for _, w := range r.Why {
		sum += w.Count
	}
	must.True(t, len(r.Why) <= maxWhys+2 && sum == 10*maxWhys+1, "%d reasons for %d entries", len(r.Why), sum)
}

// What the record does not have is said, and nothing is guessed.
// Numbers that another maker of records chose cost nothing: the gaps between them are not
// read.
func TestHeed_GapsBetweenDecisionsCostNothing(t *testing.T) {
	t.Parallel()
	c := newCrawl(t).entries(30)
	c.closed()
	c.change("UPDATE entry SET seq = 9223372036854775807 WHERE seq = (SELECT max(seq) FROM entry)")
	c.change("UPDATE entry SET seq = -9223372036854775808 WHERE seq = (SELECT min(seq) FROM entry)")
	result, err := Judge(t.Context(), c.view(), c.options())
	must.True(t, err == nil && result.Entries >= 30, "%+v, %v", result, err)
}

func TestHeed_WhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	made := newCrawl(t).entries(1000)
	made.closed()
	c := made.copied(t)
	c.change("UPDATE policy SET snapshot = NULL")
	r := must.Get(Judge(t.Context(), c.view(), c.options()))(t)
	must.True(t, r.Incomplete != 0 && r.Different == 0, "%d incomplete, %d different", r.Incomplete, r.Different)
	for _, change := range []string{"UPDATE policy SET profile = 'of 2040'", "UPDATE configuration SET text = '{'"} {
		c := made.copied(t)
		c.change(change)
		r := must.Get(Judge(t.Context(), c.view(), c.options()))(t)
		must.True(t, r.Incomplete != 0 && r.Different == 0,
			"%s: %d incomplete, %d different", change, r.Incomplete, r.Different)
	}
	c.change("DELETE FROM ground WHERE id = 3")
	must.Fail(t, must.Err(Judge(t.Context(), c.view(), c.options())), "heed audit verify", "a record with holes")
}

func TestHeed_WhatWouldHaveBeenIsCounted(t *testing.T) {
	t.Parallel()
	c := newCrawl(t).entries(1500)
	record := c.closed()
	judge := func(f If) *Changes {
		t.Helper()
		o := c.options()
		o.If = &f
		r := must.Get(Judge(t.Context(), record, o))(t)
		return r.If
	}
	all := judge(If{})
	must.True(t, all.Judged != 0 && all.Allowed+all.Refused+all.Otherwise == 0, "nothing was changed: %+v", all)
	strict := rules.Strict
	o := c.options()
	o.Profiles = []rules.Profile{rules.Standard, strict, rules.Google}
	if r, err := Judge(t.Context(), record, o); err != nil || !reflect.DeepEqual(r.Profiles[1], judge(If{Profile: &strict})) {
		t.Errorf("strict beside other profiles: %+v, %v", r.Profiles, err)
	}
	if got := judge(If{Profile: &strict}); got.Judged != all.Judged || got.Refused == 0 || len(got.Sites) == 0 || len(got.Examples) == 0 {
		t.Errorf("strict: %+v", got)
	}
	if got := judge(If{Agent: "NewsBot/1"}); got.Allowed == 0 || got.Refused == 0 {
		t.Errorf("as another: %+v", got)
	}
	closed := func(o rules.Origin) ([]byte, bool, error) {
		return []byte("User-agent: *\nDisallow: /\n"), o.Host == "s7.test", nil
	}
	got := judge(If{Policies: closed})
	must.True(t, got.Refused != 0 && got.Allowed == 0 && got.Further == 0, "closed: %+v", got)
	for _, s := range got.Sites {
		must.Contain(t, s.Site, "//s7.test", "%+v is another site's", s)
	}
}
