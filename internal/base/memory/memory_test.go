package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

const mib = 1 << 20

func TestASmallHeapIsCollectedLessOften(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		0: 400, 1: 400, 10 * mib: 400, 51 * mib: 400, 64 * mib: 300, 100 * mib: 156, 128 * mib: 100, 1 << 40: 100, math.MaxUint64: 100,
	} {
		if got := targetFor(live); got != want {
			t.Errorf("%d MiB of live data: a target of %d %%, want %d %%", live/mib, got, want)
		}
	}
}

// A high target costs at most smallHeap: a large heap grows as it does by default.
func TestAHighTargetCostsBoundedMemory(t *testing.T) {
	t.Parallel()
	for live := uint64(mib); live < 4096*mib; live += mib {
		largest := live + live*uint64(targetFor(live))/100
		if largest > max(smallHeap, 2*live) {
			t.Fatalf("%d MiB of live data grow to %d MiB", live/mib, largest/mib)
		}
	}
}

func TestLittleIsAllocatedByAnIdleHeed(t *testing.T) {
	t.Parallel()
	before := reading{allocated: 500 * mib}
	for allocated, want := range map[uint64]bool{500 * mib: true, 500*mib + 1000: true, 501 * mib: false, 510 * mib: false} {
		must.Equal(t, isIdle(before, reading{allocated: allocated}), want, "%d octets more: idle", allocated-before.allocated)
	}
}

// TestManage runs alone: the collector belongs to the whole process.
func TestManage(t *testing.T) {
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	for _, variable := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(variable+" of the user has precedence", func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(variable, "77")
			before := percent()
			defer Manage()()
			must.Equal(t, percent(), before, "the target in percent")
		})
	}
	t.Run("the target follows the heap", func(t *testing.T) {
		t.Setenv("GOGC", "")
		t.Setenv("GOMEMLIMIT", "")
		before, limit := percent(), debug.SetMemoryLimit(-1)
		defer debug.SetMemoryLimit(limit)
		stop := Manage()
		must.Equal(t, percent(), highTarget, "the target in percent at the start")
		large := make([]byte, smallHeap)
		testkit.Until(t, "a large heap to have the default target", func() bool {
			runtime.GC()
			return percent() == lowTarget
		})
		runtime.KeepAlive(large)
		testkit.Until(t, "a small heap to have the high target", func() bool {
			runtime.GC()
			return percent() == highTarget
		})
		stop()
		must.Equal(t, percent(), before, "the target in percent after the end")
	})
}

// Control groups as Docker, Podman and systemd set them up.
func TestTheLimitOfAContainerIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"another system":                  {nil, 0},
		"no limit":                        {map[string]string{"proc/self/cgroup": "0::/user.slice/session-1.scope\n", "sys/fs/cgroup/user.slice/memory.max": "max\n"}, 0},
		"version 2, in a container":       {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 256 * mib},
		"version 2, of a slice":           {map[string]string{"proc/self/cgroup": "0::/a/b.service\n", "sys/fs/cgroup/a/memory.max": "1048576\n", "sys/fs/cgroup/a/b.service/memory.max": "2097152\n"}, mib},
		"version 1, seen from outside":    {map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/docker/1f\n4:memory:/docker/1f\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576\n"}, mib},
		"version 1, no limit":             {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"both versions":                   {map[string]string{"proc/self/cgroup": "4:memory:/\n0::/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "2097152\n", "sys/fs/cgroup/memory.max": "1048576\n"}, mib},
		"a group outside of what is seen": {map[string]string{"proc/self/cgroup": "0::/../../other\n", "sys/fs/cgroup/memory.max": "1048576\n"}, mib},
	} {
		files := fstest.MapFS{}
		for path, text := range c.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		must.Equal(t, containerLimit(files), c.want, name)
	}
}

func FuzzContainerLimit(f *testing.F) {
	f.Add("0::/a/b\n4:memory:/docker/1f\n", "1048576\n")
	f.Add("0::/../..\n", "max")
	f.Fuzz(func(t *testing.T, groups, value string) {
		files := fstest.MapFS{
			"proc/self/cgroup":                           {Data: []byte(groups)},
			"sys/fs/cgroup/memory.max":                   {Data: []byte(value)},
			"sys/fs/cgroup/memory/memory.limit_in_bytes": {Data: []byte(value)},
		}
		got := containerLimit(files)
		must.True(t, got >= 0 && got < unlimited, "%d", got)
	})
}
