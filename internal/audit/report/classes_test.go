package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/judge/reason"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// ends are the ways in which an exchange can end.
var ends = []audit.Outcome{
	{Status: 200, FromSite: true},
	{Status: 403, FromSite: true},
	{Status: 502, FromSite: true},
	{Status: http.StatusBadGateway},
	{Status: http.StatusGatewayTimeout},
	{Status: 503},
}

// everything is a decision for every reason with every verdict and every end, and what
// is to be counted. Requests of exempt clients are not recorded one by one.
func everything() (all []*audit.Entry, classes, wouldBe reason.Counts) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, info := range reason.All() {
		if info.Reason == rules.ReasonExempt {
			continue
		}
		for _, v := range []rules.Verdict{rules.Refuse, rules.Allow, rules.WouldRefuse} {
			if info.Reason == rules.ReasonRecord && v != rules.Refuse {
				continue // what cannot be recorded is refused
			}
			for _, end := range ends {
				e := &audit.Entry{
					ID: audit.NewID(), Time: at, Client: "192.0.2.7:40000", Mode: "enforce", Method: "GET", Scheme: "https", Host: "site.test", Target: "/",
					Agent: rules.Identify("NewsBot/1.0"), UserAgent: "NewsBot/1.0", Judged: audit.ByPath, Decision: rules.Decision{Verdict: v, Reason: info.Reason}, Outcome: end,
				}
				at = at.Add(time.Second)
				all = append(all, e)
				classes[reason.ClassOf(v, info.Reason, !end.FromSite)]++
				if c, observed := reason.WouldBe(v, info.Reason); observed {
					wouldBe[c]++
				}
			}
		}
	}
	return all, classes, wouldBe
}

// recorded counts the decisions with a Tally, as a run does, and writes them to a record.
func recorded(t *testing.T, all []*audit.Entry) (path string, s counts.Summary) {
	t.Helper()
	var tally counts.Tally
	for _, e := range all {
		tally.Ended(e)
	}
	return audittest.Record(t, store.Options{}, all...), tally.Summary()
}

// summed adds up the class columns of a table.
func summed(t *testing.T, text string) (classes, wouldBe reason.Counts) {
	t.Helper()
	rows := must.Get(csv.NewReader(strings.NewReader(text)).ReadAll())(t)
	for _, row := range rows[1:] {
		for _, c := range reason.Classes() {
			for prefix, sums := range map[string]*reason.Counts{"class_": &classes, "would_be_": &wouldBe} {
				if i := slices.Index(rows[0], prefix+c.Key()); i >= 0 {
					n := must.Get(strconv.ParseInt(row[i], 10, 64))(t)
					sums[c] += n
				}
			}
		}
	}
	return classes, wouldBe
}

func TestReport_EveryOutputHasTheSameClasses(t *testing.T) {
	t.Parallel()
	all, classes, wouldBe := everything()
	path, summary := recorded(t, all)
	rep, text := made(t, report.Query{Conduct: true}, path)
	got := map[string][2]reason.Counts{
		"the summary of a run": {summary.Classes, summary.WouldBe},
		"the host there":       {summary.Hosts[0].Classes, summary.Hosts[0].WouldBe},
		"the report":           {rep.Total.Classes, rep.Total.WouldBe},
		"its agent":            {rep.Agents[0].Classes, rep.Agents[0].WouldBe},
		"its site":             {rep.Sites[0].Classes, rep.Sites[0].WouldBe},
		"conduct":              {rep.Conduct[0].Classes, rep.Conduct[0].WouldBe},
	}
	var reasons, periods reason.Counts
	for i := range rep.Reasons {
		reasons.Add(&rep.Reasons[i].Classes)
	}
	for i := range rep.Periods {
		periods.Add(&rep.Periods[i].Classes)
	}
	got["its reasons"], got["its periods"] = [2]reason.Counts{reasons, wouldBe}, [2]reason.Counts{periods, wouldBe}
	both := func(name, text string) {
		c, w := summed(t, text)
		got[name] = [2]reason.Counts{c, w}
	}
	dir := papered(t, report.Paper{}, path)
	both("requests.csv", string(fileText(t, dir, "requests.csv")))
	both("hours.csv", string(fileText(t, dir, "hours.csv")))
	for name, conduct := range map[string]bool{"--csv": false, "--conduct --csv": true} {
		var out bytes.Buffer
		r, _ := made(t, report.Query{Conduct: conduct}, path)
		must.OK(t, r.WriteCSV(&out))
		both(name, out.String())
	}
	var out bytes.Buffer
	var back struct {
		Total struct {
			Classes reason.Counts
			WouldBe reason.Counts `json:"would_be"`
		}
	}
	must.OK(t, rep.WriteJSON(&out))
	must.OK(t, json.Unmarshal(out.Bytes(), &back))
	got["--json"] = [2]reason.Counts{back.Total.Classes, back.Total.WouldBe}
	for name, g := range got {
		must.Equal(t, g, [2]reason.Counts{classes, wouldBe}, "%s counts %v, of which observed %v; want %v and %v", name, g[0], g[1], classes, wouldBe)
	}
	if n := classes.Sum(); n != int64(len(all)) || n != rep.Total.Requests || uint64(n) != summary.Requests {
		t.Errorf("the classes make %d of %d", n, len(all))
	}
	plain := func(n int64) string { return strconv.FormatInt(n, 10) }
	contains(t, text, fmt.Sprintf("requests %d: %s", len(all), classes.Words(plain)), "which would be: "+wouldBe.OnlyWords(plain))
	_, root := page(t, path)
	for _, c := range reason.Classes() {
		contains(t, seen(root), fmt.Sprintf("%d %s, ", classes[c], c))
		contains(t, string(fileText(t, dir, "methods.txt")), fmt.Sprintf("%d (%.1f %%) %s", classes[c], 100*float64(classes[c])/float64(len(all)), c))
	}
}

// What is said to have been refused by a rule is a page that a rule of the site refuses.
func TestReport_ASiteWithoutRulesIsNotDisobeyed(t *testing.T) {
	t.Parallel()
	var all []*audit.Entry
	for i, info := range reason.All() {
		if reason.ClassOf(rules.Refuse, info.Reason, false) == reason.RefusedByRule || info.Reason == rules.ReasonExempt {
			continue
		}
		for _, v := range []rules.Verdict{rules.Refuse, rules.WouldRefuse} {
			all = append(all, &audit.Entry{
				ID: audit.NewID(), Time: begun, Client: "192.0.2.7:40000", Mode: "enforce", Method: "GET", Scheme: "https", Host: fmt.Sprintf("%s%d.test", v, i), Target: "/",
				Judged: audit.ByPath, Decision: rules.Decision{Verdict: v, Reason: info.Reason},
			})
		}
	}
	path, _ := recorded(t, all)
	rep, _ := made(t, report.Query{Conduct: true}, path)
	must.Equal(t, len(rep.Conduct), len(all), "sites of %d", len(all))
	for _, c := range rep.Conduct {
		if c.BreachShare != nil && *c.BreachShare > 0 {
			t.Errorf("%s: %v of the pages are against the rules", c.Site, *c.BreachShare)
		}
	}
}

func TestReport_NoReasonIsABareCode(t *testing.T) {
	t.Parallel()
	all, _, _ := everything()
	path, _ := recorded(t, all)
	rep, text := made(t, report.Query{Conduct: true}, path)
	_, root := page(t, path)
	for _, info := range reason.All() {
		if info.Reason == rules.ReasonExempt {
			continue
		}
		must.True(t, slices.ContainsFunc(rep.Reasons, func(r report.Reason) bool { return r.Reason == string(info.Reason) }),
			"the record has no %s", info.Reason)
		for name, out := range map[string]string{"text": text, "page": seen(root)} {
			must.True(t, name != "page" || strings.Contains(out, info.Words),
				"%s: the words for %s are missing", name, info.Reason)
			if strings.Contains(string(info.Reason), "-") && regexp.MustCompile(`(^|[^\w\[-])`+string(info.Reason)+`($|[^\w\]-])`).MatchString(out) {
				t.Errorf("%s: %s is a bare code", name, info.Reason)
			}
		}
	}
}

func TestReport_EveryClassHasAMarkBesideItsColour(t *testing.T) {
	t.Parallel()
	all, _, _ := everything()
	path, _ := recorded(t, all)
	text, _ := page(t, path)
	marks := map[string]bool{}
	for _, m := range regexp.MustCompile(`svg \.(\w+) \{ fill: (url\(#\w+\)|[^;]*);`).FindAllStringSubmatch(text, -1) {
		marks[m[1]] = strings.HasPrefix(m[2], "url(#"+m[1])
		must.True(t, !marks[m[1]] || strings.Contains(text, `<pattern id="`+m[1]+`"`), "%s has no pattern", m[1])
	}
	must.Need(t, len(marks) == len(reason.Classes()), "the page draws %v", marks)
	for style, pattern := range marks {
		must.True(t, pattern != (style == "allowed"), "%s: pattern %v", style, pattern) // the only one that is plain
	}
}
