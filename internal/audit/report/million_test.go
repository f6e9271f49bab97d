package report_test

import (
	"os"
	"path/filepath"
	"testing"

	"heed/internal/audit/audittest"
	"heed/internal/audit/report"
	"heed/internal/audit/store"
)

// HEED_TEST_FULL=1 makes it a million. HEED_TEST_RECORD names where it is to
// be left.
func TestHeed_AReportOverAMillionDecisionsCountsAll(t *testing.T) {
	n, full := 5_000, os.Getenv("HEED_TEST_FULL") != ""
	if full {
		n = 1_000_000
	}
	path := filepath.Join(t.TempDir(), "audit.db")
	if keep := os.Getenv("HEED_TEST_RECORD"); keep != "" {
		path = keep
	}
	if err := (audittest.Crawl{Entries: n}).Write(path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	told := int64(0)
	for _, conduct := range []bool{false, true} {
		r, _ := made(t, report.Query{Conduct: conduct, Progress: func(done, all int64) { told = done * 100 / all }}, path)
		t.Logf("%d decisions, conduct %v: %d agents at %d sites", n, conduct, len(r.Agents), len(r.Sites))
		if r.Total.Requests != int64(n) {
			t.Errorf("it counts %d of %d decisions", r.Total.Requests, n)
		}
		if full && told < 50 || told > 100 {
			t.Errorf("its progress came to %d %%", told)
		}
	}
}

// BenchmarkReport makes a report over 100,000 decisions.
func BenchmarkReport(b *testing.B) {
	path := filepath.Join(b.TempDir(), "audit.db")
	if err := (audittest.Crawl{Entries: 100_000}).Write(path, store.Options{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		made(b, report.Query{}, path)
	}
}
