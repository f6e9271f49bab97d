package auditcmd

import (
	"os"
	"path/filepath"
	"testing"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/config"
	"heed/internal/tools/testkit/must"
)

func TestReplay_RecordOfAnEarlierVersionComesOutTheSame(t *testing.T) {
	t.Parallel()
	data := must.Get(os.ReadFile("../../audit/store/testdata/engine2.db"))(t)
	path := filepath.Join(t.TempDir(), "audit.db")
	must.OK(t, os.WriteFile(path, data, 0o600))
	record := must.Get(store.OpenRecord(path))(t)
	r, err := replay.Judge(t.Context(), record, replay.Options{ParseRules: config.RecordedRules})
	if err != nil || r.Entries != 15 || r.Same != 15 {
		t.Errorf("%d of %d entries come out the same, want 15 of 15: %v", r.Same, r.Entries, err)
	}
}
