package study_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/analysis/accesslog"
	"heed/internal/analysis/study"
	"heed/internal/tools/testkit/must"
)

// read runs a study over a log.
func read(t *testing.T, o study.Options, logs ...string) *study.Result {
	t.Helper()
	r := must.Get(accesslog.Open(accesslog.Options{Files: logs}))(t)
	s := study.New(o)
	for {
		q, err := r.Next()
		if err == io.EOF {
			break
		}
		must.OK(t, err)
		must.OK(t, s.Add(&q))
	}
	return s.Finish(r.Counts(), false, time.Date(2025, 4, 1, 0, 0, 0, 0, time.UTC))
}

// small reads the log that was written by hand, with the two versions of its robots.txt.
func small(t *testing.T, o study.Options) *study.Result {
	t.Helper()
	policies := must.Get(study.LoadPolicies(context.Background(), "testdata/small/versions", "example.org"))(t)
	o.Site, o.Policies, o.Endpoint = "example.org", policies, "/private/"
	return read(t, o, "testdata/small/access.log")
}

// values writes a table as lines of the columns named first.
func values(t *testing.T, r *study.Result, name, columns string) string {
	t.Helper()
	table := r.Table(name)
	must.Need(t, table != nil, "there is no table %s", name)
	var out strings.Builder
	for _, row := range table.Rows {
		for i, column := range strings.Fields(columns) {
			at := slices.IndexFunc(table.Columns, func(c study.Column) bool { return c.Name == column })
			must.Need(t, at >= 0, "the table %s has no column %s", name, column)
			if i > 0 {
				out.WriteString(" | ")
			}
			cell := row[at]
			if ratio, is := cell.(interface{ Cells() []any }); is {
				cell = ratio.Cells()[0]
			}
			switch v := cell.(type) {
			case nil:
				out.WriteString("-")
			case float64:
				out.WriteString(strconv.FormatFloat(math.Round(v*10000)/10000, 'f', -1, 64))
			default:
				fmt.Fprint(&out, v)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// The answers below were worked out by hand from testdata/small/access.log: ties, a line
// out of order, two time zones, IPv6, missing fields, escaped quotes, \xHH, an
// absolute-form target, CONNECT, and % without digits are among its 45 lines.
func TestHeed_TheTablesOfASmallLogAreThoseOfTheHand(t *testing.T) {
	t.Parallel()
	r := small(t, study.Options{})
	check := func(name, columns, want string) {
		t.Helper()
		want = strings.ReplaceAll(strings.TrimLeft(want, "\n"), "\t", "")
		must.Equal(t, values(t, r, name, columns), want, "%s (%s)", name, columns)
	}
	var text strings.Builder
	must.OK(t, r.WriteText(&text))
	for _, want := range []string{"\n34 are of 3 programs by name, 1 without a User-Agent.\n", "\n- 2 of 3 programs asked for robots.txt.\n", "1 request without a User-Agent"} {
		must.True(t, strings.Contains(text.String()+"\n"+r.Methods(), want),
			"there is no %q in\n%.800s\n%s", want, text.String(), r.Methods())
	}
	check("versions", "version since status bytes requests", `
		1 | 2025-02-01T00:00:00Z | - | 50 | 34
		2 | 2025-03-03T00:00:00Z | - | 99 | 10
	`)
	check("agents", "token category requests share addresses networks user_agents bytes", `
		gptbot | ai-training | 14 | 0.3182 | 2 | 1 | 1 | 220
		greedybot | other robot | 12 | 0.2727 | 2 | 2 | 1 | 120
		(no name) |  | 9 | 0.2045 | 2 | 2 | 1 | 90
		politebot | other robot | 8 | 0.1818 | 1 | 1 | 1 | 460
		(no User-Agent) | no name | 1 | 0.0227 | 1 | 1 | 1 | 0
	`)
	check("asked", "token asked first_ask before statuses median_interval_s within_1h within_72h within_168h", `
		gptbot | 2 | 2025-03-01T13:02:40Z | no | 200:2 | 345440 | 0 | 0 | 1
		greedybot | 0 | - | never |  | - | - | - | -
		politebot | 2 | 2025-03-01T10:00:00Z | yes | 200:1 304:1 | 345600 | 0 | 0 | 1
		(no User-Agent) | 0 | - | never |  | - | - | - | -
	`)
	// The last ask of politebot is 3 h before the end of the log: it counts for 1 h only.
	check("reasks", "hours tokens tokens_within asks asks_within", `
		1 | 2 | 0 | 3 | 0
		6 | 2 | 0 | 2 | 0
		12 | 2 | 0 | 2 | 0
		24 | 2 | 0 | 2 | 0
		48 | 2 | 0 | 2 | 0
		72 | 2 | 0 | 2 | 0
		168 | 2 | 2 | 2 | 2
	`)
	check("obedience", "token robots allowed not_allowed within_cache_life judged share no_path", `
		gptbot | 2 | 5 | 6 | 1 | 12 | 0.5 | 0
		greedybot | 0 | 5 | 6 | 0 | 11 | 0.5455 | 1
		politebot | 2 | 5 | 1 | 0 | 6 | 0.1667 | 0
		(no User-Agent) | 0 | 1 | 0 | 0 | 1 | 0 | 0
	`)
	check("kim", "token gaps gaps_30s delay endpoint_requests robots disallow", `
		gptbot | 12 | 6 | 0.5 | 2 | 2 | 0.1429
		greedybot | 10 | 0 | 0 | 6 | 0 | 0
		politebot | 7 | 5 | 0.7143 | 2 | 2 | 0.25
		(no User-Agent) | 0 | 0 | - | 0 | 0 | 0
	`)
	// greedybot: 6 paths begin with /private/, that of the absolute-form target included.
	check("delays", "token asked_s gaps median_s p5_s limited kept near undecidable fastest_minute client_gaps client_limited client_kept", `
		gptbot | 30 | 11 | 40 | 1 | 4 | 4 | 4 | 0 | 6 | 11 | 4 | 4
		greedybot | 30 | 11 | 1 | 0 | 11 | 1 | 1 | 0 | 11 | 10 | 10 | 0
		politebot | 30 | 5 | 30 | 29 | 5 | 4 | 5 | 2 | 3 | 5 | 5 | 4
		(no User-Agent) | - | 0 | - | - | 0 | 0 | 0 | 0 | 1 | 0 | 0 | 0
	`)
	check("sessions", "token sessions requests median_requests median_s longest_s robots_first", `
		gptbot | 3 | 14 | 6 | 10 | 200 | 1
		greedybot | 2 | 12 | 6 | 4.5 | 9 | 0
		politebot | 3 | 8 | 2 | 10 | 119 | 2
		(no User-Agent) | 1 | 1 | 1 | 0 | 0 | 0
	`)
	// p = 2/13, z = (1/7 - 1/6) / sqrt(2/13 * 11/13 * (1/6 + 1/7)) = -0.1186
	check("shifts", "token measure x1 n1 x2 n2 z p remark", `
		gptbot | not allowed | 5 | 5 | 6 | 6 | 0 | 1 | 
		gptbot | robots.txt | 1 | 6 | 1 | 7 | -0.1186 | 0.9056 | 
		greedybot | not allowed | 6 | 11 | 0 | 0 | - | - | too few
		greedybot | robots.txt | 0 | 12 | 0 | 0 | - | - | too few
		greedybot | delay | 1 | 11 | 0 | 0 | - | - | too few
		politebot | not allowed | 0 | 5 | 1 | 1 | - | - | too few
		politebot | robots.txt | 1 | 6 | 1 | 2 | - | - | too few
		politebot | delay | 4 | 4 | 1 | 1 | - | - | too few
		(no User-Agent) | not allowed | 0 | 1 | 0 | 0 | - | - | too few
		(no User-Agent) | robots.txt | 0 | 1 | 0 | 0 | - | - | too few
	`)
	check("impostors", "token by side networks requests judged not_allowed limited kept", `
		greedybot | network | dominant | 1 | 11 | 10 | 5 | 10 | 0
		greedybot | network | rest | 1 | 1 | 1 | 1 | 0 | 0
	`)
	check("undeclared", "sign clients requests share judged not_allowed", `
		no assets | 1 | 6 | 0.6667 | 5 | 1
		asked for robots.txt | 1 | 6 | 0.6667 | 5 | 1
		both | 1 | 6 | 0.6667 | 5 | 1
		any client | 2 | 9 | 1 | 8 | 1
	`)
	check("levels", "version token paths allowed level level_google named", `
		1 | gptbot | 3 | 2 | partial | partial | no
		2 | gptbot | 4 | 0 | full | full | yes
	`)
	check("substrings", "token identified requests robots other outside", `
		gptbot | 14 | 14 | 2 | 12 | 0
	`)
	check("repeats", "token fetched repeated not_modified repeated_bytes", `
		gptbot | 14 | 1 | 0 | 50
		greedybot | 10 | 0 | 0 | 0
		politebot | 6 | 1 | 2 | 100
		(no User-Agent) | 1 | 0 | 0 | 0
	`)
	check("refused", "token s403 refused", `
		gptbot | 0 | 0
		greedybot | 1 | 1
		politebot | 0 | 0
		(no User-Agent) | 0 | 0
	`)
}

// A program of its own, in another language, computes the tables that have no query.
func TestHeed_PythonMakesTheSameTables(t *testing.T) {
	t.Parallel()
	r := small(t, study.Options{})
	cmd := exec.Command("python3", "testdata/second.py", "testdata/small/access.log", "testdata/small/versions", "gptbot")
	said, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "%v (is the Debian package python3 installed?)\n%s", err, said)
	ours := map[string]string{
		"coverage":   values(t, r, "coverage", "what value"),
		"levels":     values(t, r, "levels", "version token paths allowed level named"),
		"substrings": values(t, r, "substrings", "token requests robots other"),
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	must.True(t, len(lines) >= 13, "there are %d lines\n%s", len(lines), said)
	for _, line := range lines {
		table, row, _ := strings.Cut(line, ",")
		row = strings.ReplaceAll(row, ",", " | ")
		must.True(t, strings.Contains("\n"+ours[table], "\n"+row+"\n"), "%s has no row %q:\n%s", table, row, ours[table])
	}
}

// The query beside each table is a second implementation of it.
func TestHeed_SQLiteMakesTheSameTables(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("sqlite3")
	must.Need(t, err == nil, "sqlite3 is missing: install the Debian package sqlite3")
	dir := filepath.Join(t.TempDir(), "tables")
	out := must.Get(study.NewDirectory(dir))(t)
	r := small(t, study.Options{Rows: out.Row})
	must.OK(t, out.Close(r))
	compareSQL(t, dir, r)
}

// compareSQL holds each table with a query against what SQLite makes of requests.csv.
func compareSQL(t *testing.T, dir string, r *study.Result) {
	t.Helper()
	queries := 0
	for _, table := range r.Tables {
		if table.Query == "" {
			continue
		}
		queries++
		cmd := exec.Command("sqlite3", "-csv", "-header", ":memory:", ".read load.sql", ".read "+table.Name+".sql")
		cmd.Dir = dir
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s.sql: %v\n%s", table.Name, err, text)
			continue
		}
		ours := must.Get(os.ReadFile(filepath.Join(dir, table.Name+".csv")))(t)
		if len(table.Rows) == 0 && len(text) == 0 {
			continue
		}
		got, columns := parse(t, string(text), nil)
		want, _ := parse(t, string(ours), columns)
		must.Same(t, got, want, "%s.sql makes\n%s\nthe table is\n%s", table.Name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	must.True(t, queries >= 13, "%d tables have a query", queries)
}

// parse returns the rows of a CSV text in a fixed order and form, of some columns; nil: all.
func parse(t *testing.T, text string, columns []string) (rows, all []string) {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must.Need(t, err == nil && len(records) > 0, "%v in %q", err, text)
	if columns == nil {
		columns = records[0]
	}
	for _, record := range records[1:] {
		var cells []string
		for _, name := range columns {
			at := slices.Index(records[0], name)
			must.Need(t, at >= 0, "there is no column %s in %q", name, records[0])
			cell := record[at]
			if f, err := strconv.ParseFloat(cell, 64); err == nil {
				cell = strconv.FormatFloat(math.Round(f*1e9)/1e9+0, 'f', -1, 64)
			}
			cells = append(cells, cell)
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	slices.Sort(rows)
	return rows, columns
}

// A narrow page shows the cells of a row beside the heads of their columns: they must differ.
func TestHeed_TheHeadsOfATableDiffer(t *testing.T) {
	t.Parallel()
	for _, d := range study.Definitions() {
		seen := map[string]string{}
		for _, c := range d.Columns {
			other, again := seen[c.Head]
			must.True(t, !again || c.Head == "", "%s: the columns %s and %s have the head %q", d.Name, other, c.Name, c.Head)
			seen[c.Head] = c.Name
		}
	}
}

// The place of a line that could not be read is printed in full, however long the name of
// its file is.
func TestHeed_TheTextHasThePlacesOfLinesThatAreNoRequests(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 20))
	must.OK(t, os.Mkdir(dir, 0o777))
	log := filepath.Join(dir, "access.log")
	text := "192.0.2.7 - - [01/Mar/2025:10:00:00 +0000] \"GET / HTTP/1.1\" 200 50\n" + strings.Repeat("nonsense\n", 1234)
	must.OK(t, os.WriteFile(log, []byte(text), 0o600))
	var out strings.Builder
	must.OK(t, read(t, study.Options{}, log).WriteText(&out))
	for _, want := range []string{"1,234 (" + log + ":2, " + log + ":3, ", log + ":6, ...)\n", " 1,234\n"} {
		must.Contain(t, out.String(), want)
	}
}
