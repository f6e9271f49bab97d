package compare_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/audit/compare"
	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// record makes a record of requests, each a target, under a robots.txt and a key.
func record(t *testing.T, robots string, key byte, targets ...string) *store.Record {
	t.Helper()
	return recordOf(t, "alphabot", robots, key, targets...)
}

// recordOf is record for agents, of which each makes all requests. A target may have a method
// other than GET before it.
func recordOf(t *testing.T, names, robots string, key byte, targets ...string) *store.Record {
	t.Helper()
	privacy, err := audit.NewPrivacy(audit.ClientsFull, []string{"token"}, slices.Repeat([]byte{key}, audit.PrivacyKeySize))
	must.OK(t, err)
	var entries []*audit.Entry
	policy := rules.New(rules.Source{Origin: rules.Origin{Scheme: "https", Host: "a.test", Port: 443}, State: rules.Available}, []byte(robots))
	for i := range len(targets) * len(strings.Fields(names)) {
		target, agent := targets[i%len(targets)], rules.Declare(strings.Fields(names)[i/len(targets)])
		method, rest, ok := strings.Cut(target, " ")
		if target = rest; !ok {
			method, target = "GET", method
		}
		entries = append(entries, &audit.Entry{
			ID: audit.NewID(), Client: "192.0.2.7:4711", ClientName: "run", Mode: "enforce", Agent: agent, Method: method, Scheme: "https", Host: "a.test", Target: target,
			Judged: audit.ByPath, Decision: policy.Decide(agent, rules.NewTarget(target)), Policy: policy,
		})
	}
	return must.Get(store.OpenRecord(audittest.Record(t, store.Options{Heed: "test", Privacy: privacy}, entries...)))(t)
}

// Records of the layout and the engine of older heeds are compared. A page that was
// withheld counts with the verdict that withheld it.
func TestRecords_OfOlderHeeds(t *testing.T) {
	t.Parallel()
	file := func(name string) *store.Record {
		return must.Get(store.OpenRecord(testkit.Copy(t, "../store/testdata/"+name)))(t)
	}
	r, err := compare.Records(t.Context(), file("engine2.db"), file("layout2.db"), compare.Options{})
	must.Need(t, err == nil && r.A.Requests == 15 && r.B.Requests == 20 && r.Equal+int64(len(r.Different)+len(r.OnlyB)) == 20,
		"%v, %+v", err, r)
	i := slices.IndexFunc(r.OnlyB, func(s compare.Single) bool { return s.Agent == "finder" && s.URL == "http://site.test/hidden.html" })
	must.True(t, i >= 0 && r.OnlyB[i].Verdict.Verdict == "refuse" && r.OnlyB[i].Reason == "signal",
		"the withheld page is in %+v", r.OnlyB)
}

func TestRecords_RequestsArePairedByAgentMethodAndURLInTheirOrder(t *testing.T) {
	t.Parallel()
	const monday, tuesday = "User-agent: *\nDisallow: /p\n", "# new\nUser-agent: *\nDisallow: /p\nDisallow: /late\n"
	url := func(targets ...string) (all []string) {
		for _, target := range targets {
			all = append(all, "alphabot GET https://a.test"+target)
		}
		return all
	}
	of := func(q compare.Request) string { return q.Agent + " " + q.Method + " " + q.URL }
	for name, c := range map[string]struct {
		a, b                  *store.Record
		equal                 int64
		changed, onlyA, onlyB []string
	}{
		"the same, in another order": {record(t, monday, 1, "/x", "/p", "/x?token=s"), record(t, monday, 2, "/x?token=t", "/p", "/x"), 3, nil, nil, nil},
		"another line of a rule":     {record(t, monday, 1, "/p"), record(t, tuesday, 1, "/p"), 1, nil, nil, nil},
		"another verdict":            {record(t, monday, 1, "/late", "/x"), record(t, tuesday, 1, "/x", "/late"), 1, url("/late"), nil, nil},
		"repeated":                   {record(t, monday, 1, "/x", "/x", "/x"), record(t, monday, 1, "/x", "/x"), 2, nil, url("/x"), nil},
		"a text like a hidden value": {record(t, monday, 1, "/redacted-0123456789abcdef"), record(t, monday, 1, "/redacted-fedcba9876543210"), 0, nil, url("/redacted-0123456789abcdef"), url("/redacted-fedcba9876543210")},
		"others":                     {record(t, monday, 1, "/1", "/x"), record(t, monday, 1, "/x", "/\xff"), 1, nil, url("/1"), url(`/\xFF`)},
	} {
		r := must.Get(compare.Records(t.Context(), c.a, c.b, compare.Options{}))(t)
		var changed, onlyA, onlyB []string
		for _, x := range r.Different {
			if changed = append(changed, of(x.Request)); x.A.Verdict != "allow" || x.B.Verdict != "refuse" || x.B.Rule != "Disallow: /late" {
				t.Errorf("%s: from %+v to %+v", name, x.A, x.B)
			}
		}
		for _, x := range r.OnlyA {
			onlyA = append(onlyA, of(x.Request))
		}
		for _, x := range r.OnlyB {
			onlyB = append(onlyB, of(x.Request))
		}
		if r.Equal != c.equal || !reflect.DeepEqual([][]string{changed, onlyA, onlyB}, [][]string{c.changed, c.onlyA, c.onlyB}) {
			t.Errorf("%s: %d equal, changed %q, only in the first %q, only in the second %q", name, r.Equal, changed, onlyA, onlyB)
		}
		must.Equal(t, r.EqualRecords(), (c.changed == nil && c.onlyA == nil && c.onlyB == nil), "%s: equal", name)
	}
}

// Two crawlers under two names: what one may fetch and the other may not.
func TestRecords_OfTwoAgents(t *testing.T) {
	t.Parallel()
	const robots = "User-agent: alphabot\nDisallow: /a\n\nUser-agent: betabot\nDisallow: /b\nDisallow: /both\n\nUser-agent: alphabot\nDisallow: /both\n"
	a := recordOf(t, "alphabot", robots, 1, "/a", "/b", "/both", "/x", "/x", "HEAD /x", "/1")
	b := recordOf(t, "betabot", robots, 2, "/a", "/b", "/both", "/x", "/x", "/x", "/2")
	for o, want := range map[compare.Options]string{
		{}:                  "both 0, 0 0, equal 0, different 0, only 7 7",
		{IgnoreAgent: true}: "both 5, 1 1, equal 3, different 2, only 2 2",
		{ByURL: true}:       "both 4, 1 1, equal 2, different 2, only 1 1",
	} {
		r := must.Get(compare.Records(t.Context(), a, b, o))(t)
		got := fmt.Sprintf("both %d, %d %d, equal %d, different %d, only %d %d", r.Both, r.AllowedA, r.AllowedB, r.Equal, len(r.Different), len(r.OnlyA), len(r.OnlyB))
		must.True(t, got == want && r.A.Requests == 7, "%+v: %s, want %s", o, got, want)
	}
}

// A URL that one record has both allowed and refused is neither.
func TestRecords_AMixedVerdict(t *testing.T) {
	t.Parallel()
	const robots = "User-agent: alphabot\nDisallow: /x\n\nUser-agent: betabot\nDisallow:\n"
	r, err := compare.Records(t.Context(), recordOf(t, "alphabot betabot", robots, 1, "/x"), recordOf(t, "betabot", robots, 1, "/x", "HEAD /x"), compare.Options{ByURL: true})
	if err != nil || r.Both != 1 || r.AllowedA+r.AllowedB+r.Equal != 0 || len(r.Different) != 1 || r.Different[0].A.Verdict != compare.Mixed || r.Different[0].B.Verdict != "allow" {
		t.Errorf("%v, %+v", err, r)
	}
}
