package auditcmd

import (
	"testing"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/config"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestReplay_RecordOfAnEarlierVersionComesOutTheSame(t *testing.T) {
	t.Parallel()
	record := must.Get(store.OpenRecord(testkit.Copy(t, "../../audit/store/testdata/engine2.db")))(t)
	r, err := replay.Judge(t.Context(), record, replay.Options{ParseRules: config.RecordedRules})
	must.True(t, err == nil && r.Entries == 15 && r.Same == 15,
		"%d of %d entries come out the same, want 15 of 15: %v", r.Same, r.Entries, err)
}
