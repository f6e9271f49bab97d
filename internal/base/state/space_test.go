package state

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestAFileIsMeasuredWithTheFilesBesideIt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.db")
	if f := SpaceOf(path); f.Bytes != 0 || f.Path != path {
		t.Errorf("a file that does not exist yet: %+v", f)
	}
	for name, size := range map[string]int{"audit.db": 1000, "audit.db-wal": 200, "audit.db.tail": 30, "audit.db2": 9999, "policies.db": 9999} {
		testkit.Write(t, filepath.Join(dir, name), string(make([]byte, size)))
	}
	f := SpaceOf(path)
	must.Equal(t, f.Bytes, 1230, "octets")
	must.True(t, f.Free != nil && *f.Free > 0, "free: %v", f.Free)
	f = SpaceOf(filepath.Join(dir, "none", "audit.db"))
	must.True(t, f.Free == nil && f.Bytes == 0, "in a directory that does not exist: %+v", f)
}

func TestTheDaysLeftFollowFromTheGrowth(t *testing.T) {
	begun := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	path := testkit.Write(t, filepath.Join(t.TempDir(), "audit.db"), string(make([]byte, 1<<20)))
	g := WatchSpace(path, 10<<20, begun)
	must.OK(t, os.Truncate(path, 2<<20))
	if now := g.Now(begun.Add(time.Minute)); now.PerDay != 0 || now.Days != nil {
		t.Errorf("after a minute: %+v", now)
	}
	now := g.Now(begun.Add(6 * time.Hour)) // 1 MiB in 6 hours: 4 MiB a day, and 8 MiB to go
	must.True(t, now.PerDay == 4<<20 && now.Days != nil && *now.Days == 2 && now.UntilLimit(), "after six hours: %+v", now)
	g.limit = 1 << 20
	full := g.Now(begun.Add(6 * time.Hour))
	must.True(t, full.Days != nil && *full.Days == 0, "above the limit: %+v", full)
	g.limit = 0
	free := g.Now(begun.Add(6 * time.Hour))
	must.True(t, free.Days != nil && *free.Days == float64(*free.Free)/(4<<20) && !free.UntilLimit(),
		"without a limit: %+v", free)
	still := WatchSpace(path, 10<<20, begun)
	now = still.Now(begun.Add(time.Hour))
	must.True(t, now.PerDay == 0 && now.Days == nil, "a file that does not grow: %+v", now)
}
