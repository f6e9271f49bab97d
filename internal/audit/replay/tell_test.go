package replay

import (
	"database/sql"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/rules"
)

func listed(t *testing.T, db *sql.DB, f Filter) (all []*Decision) {
	t.Helper()
	if err := List(t.Context(), db, f, func(d *Decision) error { all = append(all, d); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestHeed_DecisionsAreFound(t *testing.T) {
	db := newCrawl(t).entries(2000).closed()
	all := listed(t, db, Filter{})
	if len(all) != 2000 {
		t.Fatalf("%d decisions", len(all))
	}
	half := all[1000].Time
	for name, c := range map[string]struct {
		f    Filter
		fits func(*Decision) bool
	}{
		"a client by address": {Filter{Client: "192.0.2.3"}, func(d *Decision) bool { return d.Client == "192.0.2.3" }},
		"a client by name":    {Filter{Client: "declared"}, func(d *Decision) bool { return d.ClientName == "declared" }},
		"a client by token":   {Filter{Client: "LabBot"}, func(d *Decision) bool { return slices.Contains(d.Tokens, "labbot") }},
		"a verdict":           {Filter{Verdict: "would-refuse"}, func(d *Decision) bool { return d.Verdict.Verdict == "would-refuse" }},
		"from":                {Filter{From: half}, func(d *Decision) bool { return !d.Time.Before(half) }},
		"to":                  {Filter{To: half}, func(d *Decision) bool { return d.Time.Before(half) }},
		"all below a host":    {Filter{Host: "*.test"}, func(d *Decision) bool { return d.URL != "" }},
		"none below a host":   {Filter{Host: "*.s1.test"}, func(*Decision) bool { return false }},
	} {
		var want []string
		for _, d := range all {
			if c.fits(d) {
				want = append(want, d.ID)
			}
		}
		var got []string
		for _, d := range listed(t, db, c.f) {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d found of %d", name, len(got), len(want))
		}
	}
}

// The records of a fleet are listed as one, in the order of time.
func TestHeed_SeveralRecordsAreListedAsOne(t *testing.T) {
	one, other := newCrawl(t).entries(300).closed(), newCrawl(t).entries(200).closed()
	n, last, from := 0, time.Time{}, [2]int{}
	err := ListAll(t.Context(), []*sql.DB{one, other}, Filter{}, func(record int, d *Decision) error {
		if d.Time.Before(last) {
			t.Fatalf("%v comes after %v", d.Time, last)
		}
		last = d.Time
		from[record]++
		n++
		return nil
	})
	if err != nil || from != [2]int{300, 200} {
		t.Errorf("%v, %v", from, err)
	}
	stop := errors.New("enough of it")
	if err := ListAll(t.Context(), []*sql.DB{one, other}, Filter{}, func(int, *Decision) error { return stop }); err != stop {
		t.Errorf("%v", err)
	}
}

// Each decision is told with the line of robots.txt that it rests on.
func TestHeed_ADecisionIsToldWithItsLine(t *testing.T) {
	c := newCrawl(t).entries(200)
	db, books := c.closed(), c.options().Books
	lines, late := 0, 0
	for _, d := range listed(t, db, Filter{}) {
		told, err := Tell(t.Context(), db, books, d.ID)
		if err != nil {
			t.Fatal(err)
		}
		if told.ID != d.ID || told.Again != Same && told.Again != NotByRules && told.Again != Redacted {
			t.Errorf("%s: %s, %s", d.ID, told.Again, told.What)
		}
		if d.Reason == "late" {
			late++
			if told.Late == nil || told.Late.Verdict == "refuse" || told.Policy == nil || told.Late.Reason == "rule" && !strings.HasSuffix(told.Text, told.Late.Rule) {
				t.Errorf("%s: the verdict that followed is %+v, line %q", d.ID, told.Late, told.Text)
			}
		}
		if d.Reason != "rule" || d.Line == 0 {
			continue
		}
		lines++
		if told.Text != d.Rule && told.Text != "\xEF\xBB\xBF"+d.Rule || told.Policy.Snapshot == nil {
			t.Errorf("%s: line %d is %q, the rule %q", d.ID, d.Line, told.Text, d.Rule)
		}
		if told.Again == Same && told.Road.Decision.Line != d.Line {
			t.Errorf("%s: the road leads to line %d, not %d", d.ID, told.Road.Decision.Line, d.Line)
		}
	}
	if lines == 0 || late == 0 {
		t.Errorf("rules decided %d times, %d verdicts followed", lines, late)
	}
	for _, id := range []string{"", "x", "01a1ff09-53aa-7c7f-9f91-703e878567fa"} {
		if _, err := Tell(t.Context(), db, books, id); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestHeed_OfAURLTheLastDecisionIsTold(t *testing.T) {
	c := newCrawl(t).entries(1500)
	db, books := c.closed(), c.options().Books
	first, last := map[string]*Decision{}, (*Decision)(nil)
	for _, d := range listed(t, db, Filter{}) {
		switch seen := first[d.URL]; {
		case d.Redacted || d.target == "":
		case seen == nil:
			first[d.URL] = d
		case seen.Time.Before(d.Time) && (last == nil || last.URL == d.URL):
			last = d
		}
	}
	u, err := url.Parse(last.URL)
	if err != nil {
		t.Fatal(err)
	}
	o, err := rules.OriginOf(u)
	if err != nil {
		t.Fatal(err)
	}
	told, err := TellURL(t.Context(), db, books, o, last.target, Filter{})
	if err != nil || told.ID != last.ID {
		t.Errorf("%v, %v", told, err)
	}
	before, err := TellURL(t.Context(), db, books, o, last.target, Filter{To: last.Time})
	if err != nil || !before.Time.Before(last.Time) || before.URL != last.URL {
		t.Errorf("%v, %v", before, err)
	}
	if _, err := TellURL(t.Context(), db, books, o, "/never", Filter{}); !errors.Is(err, ErrNone) {
		t.Errorf("%v", err)
	}
}

func TestHeed_LinesAreCountedAsRulesCountThem(t *testing.T) {
	for _, c := range []struct {
		body string
		n    int
		want string
	}{
		{"a\nb\r\nc\rd", 1, "a"}, {"a\nb\r\nc\rd", 2, "b"}, {"a\nb\r\nc\rd", 3, "c"}, {"a\nb\r\nc\rd", 4, "d"}, {"a\nb\r\nc\rd", 5, ""},
		{"\n\nx", 3, "x"}, {"\n\nx", 2, ""}, {"a", 0, ""}, {"", 1, ""}, {"\xFF\xFEa\x00", 1, ""},
	} {
		if got := lineOf([]byte(c.body), c.n); got != c.want {
			t.Errorf("line %d of %q: %q", c.n, c.body, got)
		}
	}
}
