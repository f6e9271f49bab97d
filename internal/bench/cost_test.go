//go:build linux && !race

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heed/internal/testkit"
)

// scheduling are the system calls of the Go runtime whose number depends on what else
// the machine does.
var scheduling = []string{
	"epoll_pwait", "epoll_wait", "futex", "getpid", "madvise", "mmap", "munmap", "nanosleep", "restart_syscall", "rt_sigreturn",
	"sched_yield", "tgkill",
}

// systemCalls are the bounds of heed's system calls per request, without scheduling:
// what was measured, with a quarter more.
var systemCalls = map[string]float64{"plain-1k": 9.5, "tls-h1": 9.5, "refused": 5, "tls-new": 36}

// A change that writes an answer in two parts, or asks the system for the time on
// each request, costs every user more than most code does.
func TestSystemCallsOfARequest(t *testing.T) {
	strace := testkit.Program(t, "strace")
	b := smallBench(t)
	defer func() {
		if err := b.end(); err != nil {
			t.Error(err)
		}
	}()
	if err := b.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, w := range b.cases {
		bound, ok := systemCalls[w.name]
		if !ok {
			continue
		}
		calls := countCalls(t, strace, b, w)
		total := 0.0
		for name, n := range calls {
			if !slices.Contains(scheduling, name) {
				total += n
			}
		}
		t.Logf("%s: %.2f system calls per request", w.name, total)
		if total > bound {
			t.Errorf("%s: %.2f system calls per request; the bound is %v: %v", w.name, total, bound, calls)
		}
	}
}

// countCalls returns how often heed calls the system for a request of the case.
func countCalls(t *testing.T, strace string, b *bench, w workload) map[string]float64 {
	t.Helper()
	const requests = 500
	e := &entrant{contender: b.contenders[0], workload: w}
	defer e.stop()
	if err := b.enter(t.Context(), e); err != nil {
		t.Fatal(e.failed(err))
	}
	j := b.job(e)
	j.Count = requests
	if err := b.generator.prepare(j); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(t.TempDir(), "calls")
	trace := exec.Command(strace, "-f", "-c", "-o", table, "-p", strconv.Itoa(e.process.pid()))
	notOrphaned(trace)
	if err := trace.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "strace traces every thread of heed", func() bool { return traced(t, e.process.pid()) })
	r, err := b.generator.run()
	if err != nil || r.Wrong > 0 || r.Requests != requests {
		t.Errorf("%s: %+v, %v", w.name, r, err)
	}
	if _, _, err := settled(e.process.pid()); err != nil {
		t.Error(err)
	}
	trace.Process.Signal(os.Interrupt)
	trace.Wait() // its status is that of the signal
	if err := b.generator.release(); err != nil {
		t.Fatal(err)
	}
	return perRequest(t, table, requests)
}

// traced reports whether all threads of a process have a tracer.
func traced(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "\nTracerPid:\t0\n") {
			return false
		}
	}
	return len(threads) > 0
}

// perRequest reads the table of strace -c: the number of calls is the fourth column,
// the name the last.
func perRequest(t *testing.T, path string, requests float64) map[string]float64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	calls := map[string]float64{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || fields[len(fields)-1] == "total" {
			continue
		}
		if n, err := strconv.Atoi(fields[3]); err == nil {
			calls[fields[len(fields)-1]] = float64(n) / requests
		}
	}
	if len(calls) == 0 {
		t.Fatalf("strace counted nothing in %s", path)
	}
	return calls
}
