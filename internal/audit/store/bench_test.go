package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
)

// BenchmarkRecord is one decision and its outcome, up to audit.db, in commits of 3000.
func BenchmarkRecord(b *testing.B) {
	w := open(b, filepath.Join(b.TempDir(), "audit.db"), store.Options{Heed: "bench"})
	defer w.Close("")
	p := policy("site.test")
	e := asked(p, "/a/page/of/the/site.html")
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		must.OK(b, w.Decided(e))
		e.Outcome = audit.Outcome{Status: 200, FromSite: true, BytesOut: 12345, Duration: 83 * time.Millisecond}
		w.Ended(e)
		if n%3000 > 0 {
			continue
		}
		must.OK(b, w.Complete())
	}
}
