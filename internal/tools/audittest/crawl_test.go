package audittest_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
)

func TestHeed_ACrawlThatIsMadeUpHasAllKinds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	must.OK(t, (audittest.Crawl{Entries: 8_000, Sites: 60, PerSecond: 5}).Write(path, store.Options{}))
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	for kind, query := range map[string]string{
		"all":            "SELECT count(*) = 8000 FROM decisions",
		"ended":          "SELECT count(*) = 8000 FROM outcome",
		"allowed":        "SELECT count(*) > 4000 FROM decisions WHERE verdict = 'allow'",
		"refused":        "SELECT count(*) > 300 FROM decisions WHERE verdict = 'refuse' AND rule != ''",
		"would refuse":   "SELECT count(*) > 40 FROM decisions WHERE verdict = 'would-refuse'",
		"not judged":     "SELECT count(*) > 10 FROM decisions WHERE judged = 'no'",
		"unreachable":    "SELECT count(*) > 10 FROM decisions WHERE policy_state = 'unreachable'",
		"changed policy": "SELECT count(*) > 0 FROM (SELECT site FROM snapshot GROUP BY site HAVING count(DISTINCT body) > 1)",
	} {
		var is bool
		err := db.QueryRow(query).Scan(&is)
		must.True(t, err == nil && is, "%s: %v (%v)", kind, is, err)
	}
}

// In full, a million entries:
//
//	HEED_TEST_FULL=1 go test -count=1 ./internal/tools/audittest -run LittleRoom -v
func TestHeed_ACrawlTakesLittleRoom(t *testing.T) {
	entries := 10_000
	if os.Getenv("HEED_TEST_FULL") != "" {
		entries = 1_000_000
	}
	path := filepath.Join(t.TempDir(), "audit.db")
	must.OK(t, (audittest.Crawl{Entries: entries}).Write(path, store.Options{}))
	info := must.Get(os.Stat(path))(t)
	t.Logf("%d entries take %d octets", entries, info.Size())
	each := info.Size() / int64(entries)
	must.True(t, each <= 165, "an entry with its outcome and its part of all else takes %d octets, want at most 165", each)
}
