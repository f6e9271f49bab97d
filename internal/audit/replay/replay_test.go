package replay

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"heed/rules"
)

// What was decided is decided again: all that rests on rules and settings, of
// every kind, and what does not is counted by its reason.
func TestHeed_EveryVerdictComesOutAgain(t *testing.T) {
	n := 5_000 // all kinds of decisions; a million with HEED_TEST_FULL
	if os.Getenv("HEED_TEST_FULL") != "" {
		n = 1_000_000
	}
	c := newCrawl(t).entries(n)
	db := c.closed()
	start := time.Now()
	r, err := Judge(context.Background(), db, c.options())
	if err != nil {
		t.Fatal(err)
	}
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
	c := newCrawl(t).entries(1500)
	db := c.closed()
	o := c.options()
	o.parse = func(p rules.Profile, s rules.Source, body []byte) *rules.Policy {
		if p == rules.Standard {
			p = rules.Strict // where Disallow wins a tie
		}
		return rules.NewAs(p, s, body)
	}
	r, err := Judge(t.Context(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Different == 0 || r.OtherEngine > 0 || len(r.Examples) == 0 || r.Examples[0].Recorded == r.Examples[0].Now {
		t.Fatalf("%d different, %d of another engine: %+v", r.Different, r.OtherEngine, r.Examples)
	}
	different := r.Different
	db.Close()
	c.change("UPDATE ground SET engine = engine - 1")
	if r, err = Judge(t.Context(), c.view(), o); err != nil {
		t.Fatal(err)
	}
	if r.OtherEngine != different || r.Different > 0 || r.Engines[rules.Engine-1] != r.Entries {
		t.Errorf("%d different, %d of another engine of %d; %v", r.Different, r.OtherEngine, different, r.Engines)
	}
}

// What was changed in the record afterwards no longer comes out.
func TestHeed_AChangedRecordDoesNotComeOutAgain(t *testing.T) {
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
			c := newCrawl(t).entries(700)
			c.closed().Close()
			c.change(change)
			r, err := Judge(t.Context(), c.view(), c.options())
			if err != nil {
				t.Fatal(err)
			}
			if r.Different == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A record that was made to hurt cannot make the result as long as itself.
func TestHeed_OfManyReasonsSomeAreTold(t *testing.T) {
	r := newResult()
	for i := range 10 * maxWhys {
		r.addWhy(Why{Class: Different, Reason: "rule", Why: fmt.Sprint(i)}, 2)
	}
	r.addWhy(Why{Class: Incomplete, Reason: "rule"}, 1)
	sum := int64(0)
	for _, w := range r.Why {
		sum += w.Count
	}
	if len(r.Why) > maxWhys+2 || sum != 20*maxWhys+1 {
		t.Errorf("%d reasons for %d entries", len(r.Why), sum)
	}
}

// What the record does not have is said, and nothing is guessed.
func TestHeed_WhatIsMissingIsSaid(t *testing.T) {
	c := newCrawl(t).entries(1000)
	c.closed().Close()
	c.change("UPDATE policy SET snapshot = NULL")
	r, err := Judge(t.Context(), c.view(), c.options())
	if err != nil {
		t.Fatal(err)
	}
	if r.Incomplete == 0 || r.Different > 0 {
		t.Errorf("%d incomplete, %d different", r.Incomplete, r.Different)
	}
	for _, change := range []string{"UPDATE policy SET profile = 'of 2040'", "UPDATE configuration SET text = '{'"} {
		c := newCrawl(t).entries(1000)
		c.closed().Close()
		c.change(change)
		r, err := Judge(t.Context(), c.view(), c.options())
		if err != nil {
			t.Fatal(err)
		}
		if r.Incomplete == 0 || r.Different > 0 {
			t.Errorf("%s: %d incomplete, %d different", change, r.Incomplete, r.Different)
		}
	}
	c.change("DELETE FROM ground WHERE id = 3")
	if _, err := Judge(t.Context(), c.view(), c.options()); err == nil || !strings.Contains(err.Error(), "heed audit verify") {
		t.Errorf("a record with holes: %v", err)
	}
}

func TestHeed_WhatWouldHaveBeenIsCounted(t *testing.T) {
	c := newCrawl(t).entries(1500)
	db := c.closed()
	judge := func(f If) *Changes {
		t.Helper()
		o := c.options()
		o.If = &f
		r, err := Judge(t.Context(), db, o)
		if err != nil {
			t.Fatal(err)
		}
		return r.If
	}
	all := judge(If{})
	if all.Judged == 0 || all.Allowed+all.Refused+all.Otherwise > 0 {
		t.Errorf("nothing was changed: %+v", all)
	}
	strict := rules.Strict
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
	if got.Refused == 0 || got.Allowed > 0 || got.Further > 0 {
		t.Errorf("closed: %+v", got)
	}
	for _, s := range got.Sites {
		if !strings.Contains(s.Site, "//s7.test") {
			t.Errorf("%+v is another site's", s)
		}
	}
}
