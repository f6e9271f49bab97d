package audittest

import (
	"path/filepath"
	"testing"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
)

// Record makes a record of entries whose exchanges have ended, and returns its path.
func Record(t testing.TB, o store.Options, entries ...*audit.Entry) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.db")
	w := must.Get(store.Open(path, o))(t)
	for _, e := range entries {
		must.OK(t, w.Decided(e))
		w.Ended(e)
	}
	must.OK(t, w.Close(""))
	return path
}
