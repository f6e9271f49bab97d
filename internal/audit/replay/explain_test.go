package replay

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func listed(t *testing.T, record *store.Record, f store.Filter) (all []*Decision) {
	t.Helper()
	must.OK(t, List(t.Context(), []*store.Record{record}, f, func(d *Decision) error { all = append(all, d); return nil }))
	return all
}

func TestHeed_DecisionsAreFound(t *testing.T) {
	t.Parallel()
	record := newCrawl(t).entries(2000).closed()
	all := listed(t, record, store.Filter{})
	must.Need(t, len(all) == 2000, "%d decisions", len(all))
	half := all[1000].Time
	for name, c := range map[string]struct {
		f    store.Filter
		fits func(*Decision) bool
	}{
		"a client by address": {store.Filter{Client: "192.0.2.3"}, func(d *Decision) bool { return d.Client == "192.0.2.3" }},
		"a client by name":    {store.Filter{Client: "declared"}, func(d *Decision) bool { return d.ClientName == "declared" }},
		"a client by token":   {store.Filter{Client: "LabBot"}, func(d *Decision) bool { return slices.Contains(d.Tokens, "labbot") }},
		"a verdict":           {store.Filter{Verdict: "would-refuse"}, func(d *Decision) bool { return d.Verdict.Verdict == "would-refuse" }},
		"from":                {store.Filter{From: half}, func(d *Decision) bool { return !d.Time.Before(half) }},
		"to":                  {store.Filter{To: half}, func(d *Decision) bool { return d.Time.Before(half) }},
		"all below a host":    {store.Filter{Host: "*.test"}, func(d *Decision) bool { return d.URL != "" }},
		"none below a host":   {store.Filter{Host: "*.s1.test"}, func(*Decision) bool { return false }},
	} {
		var want []string
		for _, d := range all {
			if c.fits(d) {
				want = append(want, d.ID)
			}
		}
		var got []string
		for _, d := range listed(t, record, c.f) {
			got = append(got, d.ID)
		}
		must.Same(t, got, want, "%s: %d found of %d", name, len(got), len(want))
	}
}

// The records of a fleet are listed as one, in the order of time.
func TestHeed_SeveralRecordsAreListedAsOne(t *testing.T) {
	t.Parallel()
	one, other := newCrawl(t).entries(300).closed(), newCrawl(t).entries(200).closed()
	last, from := time.Time{}, map[string]int{}
	err := List(t.Context(), []*store.Record{one, other}, store.Filter{}, func(d *Decision) error {
		must.Need(t, !d.Time.Before(last), "%v comes after %v", d.Time, last)
		last = d.Time
		from[d.File]++
		return nil
	})
	must.True(t, err == nil && len(from) == 2 && from[one.Path] == 300 && from[other.Path] == 200, "%v, %v", from, err)
	stop := errors.New("enough of it")
	must.Equal(t, List(t.Context(), []*store.Record{one, other}, store.Filter{}, func(*Decision) error { return stop }), stop)
}

// Each decision is explained with the line of robots.txt that it rests on.
func TestHeed_ADecisionIsPrintedWithItsLine(t *testing.T) {
	t.Parallel()
	c := newCrawl(t).entries(200)
	record, parse := c.closed(), c.options().ParseRules
	lines, late := 0, 0
	for _, d := range listed(t, record, store.Filter{}) {
		explained := must.Get(ExplainID(t.Context(), record, parse, d.ID))(t)
		if explained.ID != d.ID || explained.Again != Same && explained.Again != NotByRules && explained.Again != Redacted {
			t.Errorf("%s: %s, %s", d.ID, explained.Again, explained.What)
		}
		if d.Reason == "late" {
			late++
			if explained.Late == nil || explained.Late.Verdict == "refuse" || explained.Policy == nil || explained.Late.Reason == "rule" && !strings.HasSuffix(explained.Text, explained.Late.Rule) {
				t.Errorf("%s: the verdict that followed is %+v, line %q", d.ID, explained.Late, explained.Text)
			}
		}
		if d.Reason != "rule" || d.Line == 0 {
			continue
		}
		lines++
		must.True(t, (explained.Text == d.Rule || explained.Text == "\xEF\xBB\xBF"+d.Rule) && explained.Policy.Snapshot != nil,
			"%s: line %d is %q, the rule %q", d.ID, d.Line, explained.Text, d.Rule)
		if explained.Again == Same && explained.Road.Decision.Line != d.Line {
			t.Errorf("%s: the explanation has line %d, not %d", d.ID, explained.Road.Decision.Line, d.Line)
		}
	}
	must.True(t, lines != 0 && late != 0, "rules decided %d times, %d verdicts followed", lines, late)
	for _, id := range []string{"", "x", "01a1ff09-53aa-7c7f-9f91-703e878567fa"} {
		_, err := ExplainID(t.Context(), record, parse, id)
		must.True(t, errors.Is(err, ErrNone), "%q: %v", id, err)
	}
}

func TestHeed_TheLastDecisionOnAURLIsPrinted(t *testing.T) {
	t.Parallel()
	c := newCrawl(t).entries(1500)
	record, parse := c.closed(), c.options().ParseRules
	first, last := map[string]*Decision{}, (*Decision)(nil)
	for _, d := range listed(t, record, store.Filter{}) {
		switch seen := first[d.URL]; {
		case d.Redacted || d.entry.Target == "":
		case seen == nil:
			first[d.URL] = d
		case seen.Time.Before(d.Time) && (last == nil || last.URL == d.URL):
			last = d
		}
	}
	u := must.Get(url.Parse(last.URL))(t)
	o := must.Get(rules.OriginOf(u))(t)
	explained, err := ExplainURL(t.Context(), record, parse, o, last.entry.Target, store.Filter{})
	must.True(t, err == nil && explained.ID == last.ID, "%v, %v", explained, err)
	before, err := ExplainURL(t.Context(), record, parse, o, last.entry.Target, store.Filter{To: last.Time})
	must.True(t, err == nil && before.Time.Before(last.Time) && before.URL == last.URL, "%v, %v", before, err)
	_, err = ExplainURL(t.Context(), record, parse, o, "/never", store.Filter{})
	must.True(t, errors.Is(err, ErrNone), "%v", err)
}

func TestHeed_LinesAreCountedAsRulesCountThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		n    int
		want string
	}{
		{"a\nb\r\nc\rd", 1, "a"}, {"a\nb\r\nc\rd", 2, "b"}, {"a\nb\r\nc\rd", 3, "c"}, {"a\nb\r\nc\rd", 4, "d"}, {"a\nb\r\nc\rd", 5, ""},
		{"\n\nx", 3, "x"}, {"\n\nx", 2, ""}, {"a", 0, ""}, {"", 1, ""}, {"\xFF\xFEa\x00", 1, ""},
	} {
		must.Equal(t, lineOf([]byte(c.body), c.n), c.want, "line %d of %q", c.n, c.body)
	}
}
