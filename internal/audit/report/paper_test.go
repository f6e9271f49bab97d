package report_test

import (
	"context"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heed/internal/audit/report"
)

// papered writes the tables about the records and returns where they are.
func papered(t *testing.T, p report.Paper, paths ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tables")
	var records []report.Record
	for _, path := range paths {
		records = append(records, read(t, path))
	}
	p.Now = begun
	if err := p.Write(context.Background(), dir, records); err != nil {
		t.Fatal(err)
	}
	return dir
}

func tableOf(t *testing.T, text []byte) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func fileText(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A reader of the paper has the record and sqlite3, and nothing of heed's.
func TestHeed_TheQueryBesideATableMakesThatTable(t *testing.T) {
	path := aDay(t)
	for name, query := range map[string]report.Query{"all": {}, "a part": {Host: "*.example", Client: "newsbot", To: begun.AddDate(0, 0, 1)}} {
		dir := papered(t, report.Paper{Query: query}, path)
		queries, err := filepath.Glob(filepath.Join(dir, "*.sql"))
		if err != nil || len(queries) != 7 {
			t.Fatalf("there are %d queries, %v", len(queries), err)
		}
		for _, q := range queries {
			cmd := exec.Command("sqlite3", "-csv", "-header", "-readonly", path)
			cmd.Stdin = strings.NewReader(string(fileText(t, q)))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", q, err, out)
			}
			want, got := tableOf(t, fileText(t, strings.TrimSuffix(q, ".sql")+".csv")), tableOf(t, out)
			if len(want) < 2 || !slices.EqualFunc(want, got, slices.Equal[[]string]) {
				t.Errorf("%s, %s: the table is %q, sqlite3 makes %q", name, filepath.Base(q), want, got)
			}
		}
	}
}

func TestHeed_TheCodebookExplainsEveryColumn(t *testing.T) {
	dir := papered(t, report.Paper{Sensitivity: func(context.Context, report.Record) ([]report.Sensitivity, error) {
		return []report.Sensitivity{{Profile: "strict", Judged: 8, Refused: 3}}, nil
	}}, aDay(t))
	explained := map[string]bool{}
	for _, row := range tableOf(t, fileText(t, dir, "codebook.csv"))[1:] {
		if row[3] == "" {
			t.Errorf("%s.%s is not explained", row[0], row[1])
		}
		explained[row[0]+"."+row[1]] = true
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tables {
		name := strings.TrimSuffix(filepath.Base(path), ".csv")
		if name == "codebook" {
			continue
		}
		for _, column := range tableOf(t, fileText(t, path))[0] {
			if column != "record" && !explained[name+"."+column] {
				t.Errorf("the codebook has no %s.%s", name, column)
			}
			delete(explained, name+"."+column)
		}
	}
	for left := range explained {
		t.Errorf("the codebook explains %s, which is not there", left)
	}
}

func TestHeed_TheParagraphOnMethodsSaysWhatTheTablesSay(t *testing.T) {
	dir := papered(t, report.Paper{Sensitivity: func(context.Context, report.Record) ([]report.Sensitivity, error) {
		return []report.Sensitivity{{Profile: "strict", Judged: 8, Refused: 3}}, nil
	}}, aDay(t))
	tells(t, string(fileText(t, dir, "methods.txt")),
		"through heed 1.0, a forward proxy", "rules engine 2, profile standard",
		"From 2026-03-02T08:00:00Z to 2026-03-02T15:00:00Z it recorded 9 requests by 2 agents to 2 sites: 5 (55.6 %) were allowed, 2 (22.2 %) refused",
		"88.9 % of all requests were judged by their path", "14.3 % were decided while it could not be had",
		"under the profile strict, 3 of 8 would have had another verdict",
		"whose head was abababababababababababababababababababababababababababababababab at commit 1",
	)
}

func TestHeed_TablesOfSeveralRecordsAndOfNone(t *testing.T) {
	dir := papered(t, report.Paper{}, aDay(t), newRecord(t).file())
	rows := tableOf(t, fileText(t, dir, "record.csv"))
	if len(rows) != 3 {
		t.Errorf("two records make %d rows", len(rows)-1)
	}
	fileText(t, dir, "requests-2.sql")
	tells(t, string(fileText(t, dir, "methods.txt")), "holds no requests")
	err := (&report.Paper{}).Write(context.Background(), dir, nil)
	if err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("tables are written over: %v", err)
	}
}
