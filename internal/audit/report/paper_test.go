package report_test

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/output/figures"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// papered writes the tables about the records and returns where they are.
func papered(t *testing.T, p report.Paper, paths ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tables")
	records := read(t, paths...)
	p.Now = begun
	must.OK(t, p.Write(context.Background(), dir, records))
	return dir
}

func tableOf(t *testing.T, text []byte) [][]string {
	t.Helper()
	return must.Get(csv.NewReader(strings.NewReader(string(text))).ReadAll())(t)
}

func fileText(t *testing.T, path ...string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join(path...)))(t)
}

// A reader of the paper has the record and sqlite3, and nothing of heed's.
func TestHeed_TheQueryBesideATableMakesThatTable(t *testing.T) {
	path := aDay(t)
	db, err := sql.Open("sqlite", path)
	must.OK(t, err)
	_, err = db.Exec("UPDATE outcome SET from_site = 1, status = 302 WHERE entry IN (1, 2)")
	must.OK(t, errors.Join(err, db.Close()))
	for name, query := range map[string]report.Query{"all": {}, "a part": {Filter: store.Filter{Host: "*.example", Client: "newsbot", To: begun.AddDate(0, 0, 1)}}} {
		dir := papered(t, report.Paper{Query: query}, path)
		queries, err := filepath.Glob(filepath.Join(dir, "*.sql"))
		must.Need(t, err == nil && len(queries) == 11, "there are %d queries, %v", len(queries), err)
		for _, q := range queries {
			cmd := exec.Command("sqlite3", "-csv", "-header", "-readonly", path)
			cmd.Stdin = strings.NewReader(string(fileText(t, q)))
			out, err := cmd.CombinedOutput()
			must.Need(t, err == nil, "%s: %v\n%s", q, err, out)
			want, got := tableOf(t, fileText(t, strings.TrimSuffix(q, ".sql")+".csv")), tableOf(t, out)
			must.True(t, len(want) >= 2 && slices.EqualFunc(want, got, slices.Equal[[]string]),
				"%s, %s: the table is %q, sqlite3 makes %q", name, filepath.Base(q), want, got)
		}
	}
}

// The queries about records with common decisions leave out what the tables leave out.
func TestPaper_TheQueryOfARecordThatSharesDecisions(t *testing.T) {
	path := aDay(t)
	run := testkit.Copy(t, path)
	db, err := sql.Open("sqlite", run)
	must.OK(t, err)
	_, err = db.Exec("UPDATE about SET value = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ-123456789' WHERE key = 'store'; UPDATE entry SET id = randomblob(16) WHERE seq > 6; " +
		"INSERT INTO exempt VALUES (1, 0, 5, NULL), (2, (SELECT min(time) FROM entry), 3, NULL)")
	must.OK(t, errors.Join(err, db.Close()))
	records, err := store.Records(path, run)
	must.Need(t, err == nil && len(records) == 2, "%d records, %v", len(records), err)
	dir := filepath.Join(t.TempDir(), "tables")
	must.OK(t, (&report.Paper{Query: report.Query{Filter: store.Filter{From: begun}}, Now: begun}).Write(t.Context(), dir, records))
	out, err := exec.Command("sqlite3", "-csv", "-readonly", run, ".read "+filepath.Join(dir, "record-2.sql")).CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	want, got := tableOf(t, fileText(t, dir, "record.csv"))[2], tableOf(t, out)[0]
	must.True(t, slices.Equal(want, got) && want[6] == "3" && want[9] == "3", "the table is %q, sqlite3 makes %q", want, got)
}

func TestHeed_TheCodebookExplainsEveryColumn(t *testing.T) {
	dir := papered(t, report.Paper{Sensitivity: func(context.Context, *store.Record) ([]report.Sensitivity, error) {
		return []report.Sensitivity{{Profile: "standard", Judged: 8}, {Profile: "strict", Judged: 8, Refused: 3}}, nil
	}}, aDay(t))
	explained := map[string]bool{}
	for _, row := range tableOf(t, fileText(t, dir, "codebook.csv"))[1:] {
		if row[3] == "" {
			t.Errorf("%s.%s is not explained", row[0], row[1])
		}
		if row[0] != "class" && row[0] != "reason" { // these explain values, not columns
			explained[row[0]+"."+row[1]] = true
		}
	}
	tables := must.Get(filepath.Glob(filepath.Join(dir, "*.csv")))(t)
	for _, path := range tables {
		name := strings.TrimSuffix(filepath.Base(path), ".csv")
		if name == "codebook" {
			continue
		}
		for _, column := range tableOf(t, fileText(t, path))[0] {
			must.True(t, column == "record" || explained[name+"."+column], "the codebook has no %s.%s", name, column)
			delete(explained, name+"."+column)
		}
	}
	for left := range explained {
		t.Errorf("the codebook explains %s, which is not there", left)
	}
}

func TestHeed_TheParagraphOnMethodsSaysWhatTheTablesSay(t *testing.T) {
	dir := papered(t, report.Paper{Sensitivity: func(context.Context, *store.Record) ([]report.Sensitivity, error) {
		return []report.Sensitivity{{Profile: "strict", Judged: 8, Refused: 3}}, nil
	}}, aDay(t))
	contains(t, string(fileText(t, dir, "methods.txt")),
		"through heed 1.0, a forward proxy", "rules engine 2, profile standard",
		"From 2026-03-02T08:00:00Z to 2026-03-02T15:00:00Z it recorded 9 requests by 2 agents to 2 sites: 6 (66.7 %) allowed, 1 (11.1 %) refused by rule, 1 (11.1 %) rules unavailable",
		"88.9 % of all requests were judged by their path", "14.3 % were decided while it could not be read",
		"Only requests that robots.txt decided can be judged again: not those that a setting,", "under the profile strict, 3 of 8 would have had another verdict (37.5 %, 95 % interval 13.7-69.4)",
		"whose head was abababababababababababababababababababababababababababababababab at commit 1",
	)
	must.Lack(t, string(fileText(t, dir, "methods.txt")), "under the profile standard", "it was judged again under its own profile")
}

// Several records are one paragraph, with the sums of their tables.
func TestHeed_TheParagraphOnMethodsIsOfAllRecords(t *testing.T) {
	dir := papered(t, report.Paper{}, aDay(t), aDay(t))
	text := string(fileText(t, dir, "methods.txt"))
	contains(t, text, "it recorded 18 requests by 2 agents to 2 sites: 12 (66.7 %) allowed, 2 (11.1 %) refused by rule")
	if paragraphs := strings.Count(text, "Requests were made through heed"); paragraphs != 1 || strings.Count(strings.Join(strings.Fields(text), " "), "whose head was") != 2 {
		t.Errorf("%d paragraphs:\n%s", paragraphs, text)
	}
}

// A reviewer asks by which files a second crawler was judged, what heed itself requested and under
// which names, what bypassed it, how long sites took, and what redirects led to.
func TestPaper_WhatElseAReviewerAsks(t *testing.T) {
	first, second := aDay(t), aDay(t)
	db, err := sql.Open("sqlite", second)
	must.OK(t, err)
	_, err = db.Exec(`PRAGMA user_version = 4; UPDATE about SET value = '2026-03-02T09:30:00Z' WHERE key = 'created'; UPDATE asker SET also_obey = '["CCBot","GPTBot"]' WHERE id = 1;
INSERT INTO event SELECT 1, time, 'robots', 1, 'NewsBot/2.1', 2, 403, NULL FROM entry WHERE seq = 1 UNION ALL SELECT 2, time, 'bypassed', NULL, 'node', 4, NULL, NULL FROM entry WHERE seq = 1;
UPDATE outcome SET from_site = 1, status = 302 WHERE entry IN (1, 3)`)
	must.OK(t, errors.Join(err, db.Close()))
	dir := papered(t, report.Paper{}, first, second)
	contains(t, strings.Join(strings.Fields(string(fileText(t, dir, "methods.txt"))), " "),
		"For 4 requests (28.6 %) the answer to the request for the robots.txt had been received before the record was begun",
		"; for 4 of them it is the one that ",
		"covered by a chain or a tree of SHA-256 hashes", // layout 2, then 4
		"these agents obeyed others: newsbot those for CCBot, GPTBot.",
		"14.3 % were decided while it could not be read, and 0 % by a file of the operator in its place. ",
		"Sites answered 3 requests for robots.txt of heed under its own name, and after an answer of 401 or 403 2 under the name of the client (NewsBot/2.1);",
		"opened about 4 connections that did not come through heed",
		"Sites answered 2 requests with a redirect; where it led is judged as any other request, and the client's next one was refused by rule after 1 of them",
	)
	for table, want := range map[string][]string{
		"agents":    {"newsbot", "CCBot GPTBot", "1", "1", "5", "2.000000"},
		"times":     {"https://shop.example:443", "5", "0.096000", "0.120000", "0.120000", "0.120000"},
		"redirects": {"https://shop.example:443", "2", "2", "1", "1", "0"},
		"events":    {"bypassed", "", "node", "", "4", "2026-03-02T08:00:00Z", "2026-03-02T08:00:00Z"},
	} {
		if !slices.ContainsFunc(tableOf(t, fileText(t, dir, table+".csv")), func(row []string) bool { return slices.Equal(row[1:min(len(row), len(want)+1)], want) }) {
			t.Errorf("%s has no row %q:\n%s", table, want, fileText(t, dir, table+".csv"))
		}
	}
	_, text := made(t, report.Query{}, second)
	contains(t, text, "also obeyed newsbot: the groups for CCBot, GPTBot", "asked besides 2 requests of heed for robots.txt under the name of a client")
}

// The state of a policy is a text of the file, which may have been changed.
func TestHeed_AStateIsNotCountedAsAVerdict(t *testing.T) {
	path := aDay(t)
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	must.Get(db.Exec("UPDATE policy SET state = 'refused'"))(t)
	contains(t, string(fileText(t, papered(t, report.Paper{}, path), "methods.txt")), "6 (66.7 %) allowed, 1 (11.1 %) refused by rule, 1 (11.1 %) rules unavailable")
}

func TestHeed_TablesOfSeveralRecordsAndOfNone(t *testing.T) {
	dir := papered(t, report.Paper{}, aDay(t), newRecord(t).file())
	rows := tableOf(t, fileText(t, dir, "record.csv"))
	must.Equal(t, len(rows), 3, "two records make %d rows", len(rows)-1)
	fileText(t, dir, "requests-2.sql")
	contains(t, string(fileText(t, dir, "methods.txt")), "holds no requests")
	err := (&report.Paper{}).Write(context.Background(), dir, nil)
	must.Fail(t, err, "not empty", "tables are written over")
}

// A share has its interval beside it, as figures.Wilson: 1 of 9 is refused by rule.
func TestPaper_SharesHaveIntervals(t *testing.T) {
	dir := papered(t, report.Paper{Sensitivity: func(context.Context, *store.Record) ([]report.Sensitivity, error) {
		return []report.Sensitivity{{Profile: "strict", Judged: 8, Refused: 3}}, nil
	}}, aDay(t))
	interval := func(part, all int64) (cells []string) {
		low, high := figures.Wilson(part, all)
		for _, v := range []float64{float64(part) / float64(all), low, high} {
			cells = append(cells, fmt.Sprintf("%.6f", v))
		}
		return cells
	}
	last := func(name string) (all [][]string) {
		for _, row := range tableOf(t, fileText(t, dir, name+".csv"))[1:] {
			for i := len(row) - 3; i < len(row); i++ {
				v, _ := strconv.ParseFloat(row[i], 64)
				row[i] = fmt.Sprintf("%.6f", v)
			}
			all = append(all, row[len(row)-3:])
		}
		return all
	}
	got := last("requests")
	must.True(t, slices.Equal(got[0], interval(1, 5)), "of requests: %q", got)
	for name, of := range map[string]int64{"coverage": 9, "sensitivity": 8} {
		for _, row := range last(name) {
			if !slices.ContainsFunc([]int64{1, 2, 3, 4, 5, 6}, func(n int64) bool { return slices.Equal(row, interval(n, of)) }) {
				t.Errorf("of %s: %q is no share of %d with its interval", name, row, of)
			}
		}
	}
}
