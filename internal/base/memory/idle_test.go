//go:build linux && !race

package memory

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// environGarbage makes the test binary a process that makes garbage and then waits.
const environGarbage = "HEED_MEMORY_TEST_GARBAGE"

func TestMain(m *testing.M) {
	if os.Getenv(environGarbage) != "" {
		defer manage(checkEvery)()
		touch(make([]byte, 64*mib))
		os.Stdout.WriteString("made\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends
		return
	}
	os.Exit(m.Run())
}

func touch(b []byte) {
	for i := range b {
		b[i] = 1
	}
}

// A heed that had much to do and is idle gives the system its memory back: here soon, in
// a minute otherwise.
func TestAnIdleProcessReturnsItsMemory(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), environGarbage+"=1", "GOGC=", "GOMEMLIMIT=")
	stdin := must.Get(cmd.StdinPipe())(t)
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.OK(t, cmd.Start())
	defer cmd.Wait()
	defer stdin.Close()
	must.Get(stdout.Read(make([]byte, 8)))(t)
	now := resident(t, cmd.Process.Pid)
	must.Need(t, now >= 64*mib, "it has %d KiB: it has made no garbage, or has returned it already", now>>10)
	testkit.Until(t, "less than 32 MiB of resident memory", func() bool { return resident(t, cmd.Process.Pid) < 32*mib })
}

// resident returns the resident memory of a process in octets.
func resident(t *testing.T, pid int) (octets int) {
	text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)))(t)
	var size int
	must.Get(fmt.Sscan(string(text), &size, &octets))(t)
	return octets * os.Getpagesize()
}
