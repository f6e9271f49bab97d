package accesslog_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"heed/internal/analysis/accesslog"
	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
)

// A record of heed is read as the requests that it sent to sites.
func TestReader_TheRequestsOfARecord(t *testing.T) {
	t.Parallel()
	crawl := audittest.Crawl{Entries: 3000, Sites: 10}
	path := filepath.Join(t.TempDir(), "audit.db")
	must.OK(t, crawl.Write(path, store.Options{}))
	sent, agents := 0, map[string]bool{}
	must.OK(t, crawl.Each(func(*audit.Entry) error { return nil }, func(e *audit.Entry) error {
		o := e.Outcome
		if o.FromSite || o.SiteStatus != 0 || e.Method == http.MethodConnect && o.Status == http.StatusOK {
			sent++
			agents[e.UserAgent] = true
		}
		return nil
	}))
	got, counts := sorted(t, accesslog.Options{Files: []string{path}})
	must.True(t, len(got) == sent && int64(len(got))+counts.Unparsed == counts.Lines,
		"%d requests, %d were sent; counts %+v", len(got), sent, counts)
	for _, q := range got {
		if !agents[q.UserAgent] || q.Host == "" || q.Client == "" || q.Target == "" || q.Method == "" || q.Status == 0 || q.Line == 0 {
			t.Fatalf("%s", text(q))
		}
	}
}
