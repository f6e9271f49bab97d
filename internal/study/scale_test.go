//go:build !race

package study_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"heed/internal/tools/testkit"
)

// A lab studies a year of a busy site: a million lines by default, ten million (1.5 GB) with
// HEED_TEST_FULL=1. The CPU time is linear in the lines, and the memory bounded.
func TestStudy_ManyLinesTakeLinearTimeAndBoundedMemory(t *testing.T) {
	const most = 1 << 30 // octets
	few, many := 10_000, 100_000
	if testkit.Full {
		few, many = 1_000_000, 10_000_000
	}
	rules := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(rules, []byte(generatedRules), 0o600); err != nil {
		t.Fatal(err)
	}
	heed := testkit.Binary(t)
	run := func(lines int) (cpu time.Duration) {
		log := filepath.Join(t.TempDir(), "access.log")
		generate(t, log, lines, lines/50)
		cmd := exec.Command(heed, "study", "--site", "https://example.org", "--robots", rules, log)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		t.Logf("%d lines: %s of CPU time, %d MiB", lines, cpu.Round(time.Millisecond), used.Maxrss>>10)
		if used.Maxrss<<10 > most {
			t.Errorf("%d lines take %d MiB; at most %d MiB", lines, used.Maxrss>>10, most>>20)
		}
		return cpu
	}
	one, ten := run(few), run(many)
	if ten > 40*one { // more than 10, as a larger heap is collected, and less than 100
		t.Errorf("ten times the lines take %.1f times the CPU time", float64(ten)/float64(one))
	}
}
