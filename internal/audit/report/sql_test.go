package report_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// rows are rows of a list, by the names of their columns.
type rows []map[string]any

// answers returns what the shell of SQLite answers to each query of --sql, by its name.
func answers(t *testing.T, script string, arguments ...string) map[string]rows {
	t.Helper()
	tables, rest, _ := strings.Cut(script, "\n-- exempt")
	input := tables
	for part := range strings.SplitSeq("exempt"+rest, "\n-- ") {
		name, query, _ := strings.Cut(part, "\n")
		input += fmt.Sprintf("\n.print '-- %s'\n%s", name, query)
	}
	cmd := exec.Command("sqlite3", append([]string{"-json"}, arguments...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s\n%s", err, out, script)
	all := map[string]rows{}
	for part := range strings.SplitSeq(string(out), "-- ") {
		name, text, _ := strings.Cut(part, "\n")
		var list rows
		err := json.Unmarshal([]byte(cmp.Or(strings.TrimSpace(text), "[]")), &list)
		must.Need(t, err == nil, "%s: %v\n%s", name, err, text)
		all[name] = list
	}
	return all
}

// plain returns the values of a row as texts that are equal for equal values, empty for none. Those
// of an object in it have its name before theirs.
func plain(row map[string]any) map[string]string {
	all := map[string]string{}
	for name, v := range row {
		switch v := v.(type) {
		case map[string]any:
			for k, v := range plain(v) {
				all[strings.Replace(name, "classes", "class", 1)+"_"+k] = v
			}
		case string:
			if all[name] = v; len(v) > 1 {
				if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
					all[name] = at.Format(time.RFC3339Nano)
				} else if n, err := strconv.ParseFloat(v, 64); err == nil {
					all[name] = strconv.FormatFloat(n, 'g', 14, 64)
				}
			}
		case float64:
			all[name] = strconv.FormatFloat(v, 'g', 14, 64)
		}
		if all[name] == "0" {
			all[name] = ""
		}
	}
	return all
}

// with returns the rows of a list with other names for some of their columns.
func with(list any, renamed ...string) (all rows) {
	items, _ := list.([]any)
	for _, item := range items {
		row := maps.Clone(item.(map[string]any))
		for i := 0; i < len(renamed); i += 2 {
			row[renamed[i+1]] = row[renamed[i]]
			delete(row, renamed[i])
		}
		all = append(all, row)
	}
	return all
}

// inner returns the rows of the lists in the rows of a list, with what names these.
func inner(list rows, name, by string) (all rows) {
	for _, row := range list {
		for _, one := range with(row[name]) {
			one[by] = row[by]
			all = append(all, one)
		}
	}
	return all
}

// A reader of a report has the record and sqlite3, and nothing of heed's.
func TestReport_TheQueriesHaveItsNumbers(t *testing.T) {
	t.Parallel()
	old := func(name string) string { return testkit.Copy(t, "../store/testdata/"+name) }
	entries, _, _ := everything()
	classes, _ := recorded(t, entries)
	crawl := filepath.Join(t.TempDir(), "crawl.db")
	must.OK(t, (audittest.Crawl{Entries: 2000}).Write(crawl, store.Options{}))
	few := newRecord(t)
	few.add("exempt", few.micros(0), 1234, nil)
	few.add("exempt", few.micros(0), 2, "disk full")
	few.add("event", few.micros(0), "robots", few.site("shop.example"), "NewsBot/1", 2, 200, nil)
	_, err := few.tx.Exec("PRAGMA user_version = 4") // which has events
	must.OK(few.t, err)
	who, free := few.asker("192.0.2.7", "newsbot", "x"), few.ground("path", "allow", "no-rule", "", 0, nil, nil)
	for _, hour := range []time.Duration{5, -24000, 5} {
		few.entry(hour*time.Hour, who, "shop.example", "/", free, 0)
	}
	day, use, empty := aDay(t), purposes(t), newRecord(t).file()
	for name, c := range map[string]struct {
		query report.Query
		paths []string
	}{
		"a day": {report.Query{}, []string{day}}, "by purpose": {report.Query{}, []string{use}}, "every class": {report.Query{}, []string{classes}}, "nothing": {report.Query{}, []string{empty}}, "few": {report.Query{}, []string{few.file()}},
		"by address": {report.Query{By: report.ByAddress}, []string{use}}, "by user": {report.Query{By: report.ByUser}, []string{day}},
		"a part":   {report.Query{Filter: store.Filter{Host: "*.example", Client: "newsbot", To: begun.AddDate(0, 0, 1)}}, []string{day}},
		"layout 2": {report.Query{}, []string{old("layout2.db")}}, "layout 3": {report.Query{}, []string{old("layout3.db")}}, "layout 4": {report.Query{}, []string{old("layout4.db")}},
		"engine 2": {report.Query{}, []string{old("engine2.db")}}, "three": {report.Query{}, []string{day, old("layout2.db"), crawl}}, "a crawl": {report.Query{}, []string{crawl}},
	} {
		t.Run(name, func(t *testing.T) {
			records := must.Get(store.Records(c.paths...))(t)
			c.query.Conduct = true
			r := must.Get(report.New(records, c.query, begun))(t)
			var text, script bytes.Buffer
			must.OK(t, cmp.Or(r.WriteJSON(&text), report.WriteSQL(&script, r, records)))
			var rep map[string]any
			must.OK(t, json.Unmarshal(text.Bytes(), &rep))
			arguments := []string{"-readonly", c.paths[0]}
			if len(c.paths) > 1 {
				arguments = nil
			}
			numbers := sameNumbers(t, rep, answers(t, script.String(), arguments...))
			if t.Logf("%d numbers are the same", numbers); numbers < 100 && name != "nothing" {
				t.Error("these are too few")
			}
		})
	}
}

// sameNumbers compares the lists of a report with the answers to its queries, and returns how many
// values are in both.
func sameNumbers(t *testing.T, rep map[string]any, got map[string]rows) (n int) {
	t.Helper()
	for _, row := range got["exempt, unrecorded, gaps, robots_asked_as_clients, clock_went_back"] {
		if what := row["what"].(string); what != "gaps" && rep[what] != row["requests"] {
			t.Errorf("%s is %v, the query has %v", what, rep[what], row["requests"])
		}
	}
	agents, sites := with(rep["agents"], "name", "agent"), with(rep["sites"])
	use, _ := rep["use"].(map[string]any)
	total := with([]any{rep["total"]})
	if rep["total"].(map[string]any)["requests"] == 0.0 {
		total = nil
	}
	some := "refusals, not_judged, exceptions, and the rows of --csv"
	for name, list := range map[string]struct {
		rows rows
		key  string
	}{
		"total": {total, ""}, "agents": {agents, "agent"}, "agents, clients": {inner(agents, "clients", "agent"), "agent address"},
		"sites": {sites, "site"}, "sites, agents": {inner(sites, "agents", "site"), "site agent"}, "reasons": {with(rep["reasons"]), "judged verdict reason"},
		some: {append(append(with(rep["refusals"], "settled", "exception", "count", "requests"), with(rep["not_judged"], "settled", "exception", "count", "requests")...), with(rep["exceptions"], "settled", "exception", "count", "requests")...),
			"agent site judged verdict reason group rule line exception"},
		"periods": {with(rep["periods"]), "from"}, "unreachable": {with(rep["unreachable"], "state", "policy"), "site policy"},
		"use, purposes": {with(use["purposes"], "refused", ""), "purpose"}, "use, site_answers": {with(use["site_answers"], "count", "requests"), "site site_answer"},
		"conduct": {with(rep["conduct"]), "agent site"},
	} {
		key := func(row map[string]string) (key string) {
			for _, name := range strings.Fields(list.key) {
				key += row[name] + " | "
			}
			return key
		}
		found := map[string]map[string]string{}
		for _, row := range got[name] {
			found[key(plain(row))] = plain(row)
		}
		for _, row := range list.rows {
			want := plain(row)
			answer := found[key(want)]
			if answer == nil && (name != "periods" || want["allowed"]+want["refused"]+want["would_refuse"]+want["not_judged"] != "") {
				t.Errorf("%s: no query has %q, of %d", name, key(want), len(found))
			}
			for column, v := range want {
				if is, answered := answer[column]; answered {
					if n++; is != v {
						t.Errorf("%s, %q: %s is %q, the query has %q", name, key(want), column, v, is)
					}
				}
			}
		}
		if name != some && name != "periods" && len(list.rows) != len(found) {
			t.Errorf("%s has %d rows, the query %d", name, len(list.rows), len(found))
		}
	}
	return n
}
