package auditcmd

import (
	"os"
	"path/filepath"
	"testing"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/config"
)

func TestReplay_RecordOfAnEarlierVersionComesOutTheSame(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../audit/store/testdata/engine2.db")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "audit.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	record, err := store.OpenRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Judge(t.Context(), record, replay.Options{ParseRules: config.RecordedRules})
	if err != nil || r.Entries != 15 || r.Same != 15 {
		t.Errorf("%d of %d entries come out the same, want 15 of 15: %v", r.Same, r.Entries, err)
	}
}
