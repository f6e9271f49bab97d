package proof

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// oldRecord makes a record of decisions that are all too old to be kept, but for
// those at its end.
func oldRecord(t *testing.T, entries int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.db")
	must.OK(t, (audittest.Crawl{Entries: entries, PerSecond: 50, Begin: time.Now().Add(-48 * time.Hour)}).Write(path, store.Options{}))
	return path
}

// A kill while old decisions are being removed costs none of those that are kept,
// and the chain stays whole; in the end the old ones are gone.
func TestHeed_AKillWhileOldDecisionsAreRemoved(t *testing.T) {
	t.Parallel()
	rounds, entries := 1, 24_000 // more than one step of pruning
	if testkit.Full {
		rounds, entries = 40, 200_000
	}
	s, old := newSite(t), oldRecord(t, entries)
	began := must.Get(os.ReadFile(old))(t)
	head := audit(t, "seal", old) // is proved when all that it is of is gone
	config := s.config("[log]\nmark = true\nlevel = \"warn\"\n[audit]\nkeep = \"24h\"\n")
	for round := range rounds {
		state := testkit.StateDir(t)
		path := filepath.Join(state, "audit.db")
		must.OK(t, os.WriteFile(path, began, 0o600))
		before, n := s.requests(), &notes{}
		for range 3 {
			h := testkit.Start(t, testkit.Options{State: state, Config: config})
			over := n.load(client(t, h), round*100+len(n.all))
			testkit.Delay(time.Duration(rand.IntN(600)) * time.Millisecond) // heed is killed at any moment of its work
			h.Signal(syscall.SIGKILL)
			h.Exit()
			over.Wait()
			must.OK(t, store.Settle(path))
			verify(t, path)
			rows, _ := rowsAfter(t, path, int64(entries))
			if agree(t, rows, n.all, since(s.requests(), before)); t.Failed() {
				t.Fatalf("in round %d", round)
			}
		}
		h := testkit.Start(t, testkit.Options{State: state, Config: config})
		awaitOldest(t, path, int64(entries))
		h.Signal(os.Interrupt)
		h.Exit()
		verify(t, path, head)
		rows, _ := rowsAfter(t, path, int64(entries))
		agree(t, rows, n.all, since(s.requests(), before))
	}
}

// awaitOldest waits until the record has no entry up to seq.
func awaitOldest(t *testing.T, path string, seq int64) {
	t.Helper()
	db := view(t, path)
	testkit.Until(t, "the old entries are removed", func() bool {
		var oldest int64
		err := db.QueryRow("SELECT coalesce(min(seq), 1 << 62) FROM entry").Scan(&oldest)
		must.Need(t, err == nil || strings.Contains(err.Error(), "locked"), "%v", err)
		return err == nil && oldest > seq
	})
}
