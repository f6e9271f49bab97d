//go:build linux && !race

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// uncounted are the system calls whose number depends on what else the machine does, or
// on how long the requests take: those of the Go runtime, and those of the record, whose
// files are looked after by the clock.
var uncounted = []string{
	"clone3", "epoll_pwait", "epoll_wait", "futex", "getpid", "getrandom", "gettid", "madvise", "mmap", "mprotect", "munmap", "nanosleep",
	"restart_syscall", "rseq", "rt_sigprocmask", "rt_sigreturn", "sched_getaffinity", "sched_yield", "set_robust_list", "sigaltstack", "tgkill",
	"fcntl", "fdatasync", "fstat", "ftruncate", "newfstatat", "openat", "pread64",
}

// systemCalls are the bounds of heed's system calls per request, without uncounted: what
// was measured, with a quarter more.
var systemCalls = map[string]float64{"plain-1k": 6.5, "tls-h1": 6.5, "refused": 4, "tls-new": 30}

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
	must.OK(t, b.begin(t.Context()))
	for _, w := range b.cases {
		bound, ok := systemCalls[w.name]
		if !ok {
			continue
		}
		calls := countCalls(t, strace, b, w)
		total := 0.0
		for _, n := range calls {
			total += n
		}
		t.Logf("%s: %.2f system calls per request", w.name, total)
		if total > bound {
			t.Errorf("%s: %.2f system calls per request; the bound is %v: %v", w.name, total, bound, calls)
		}
	}
}

// countCalls returns how often heed calls the system for a request of the case, by name.
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
	must.OK(t, b.generator.prepare(j))
	log := filepath.Join(t.TempDir(), "calls")
	trace := exec.Command(strace, "-f", "-y", "-s", "0", "-o", log, "-p", strconv.Itoa(e.process.pid()))
	notOrphaned(trace)
	must.OK(t, trace.Start())
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
	must.OK(t, b.generator.release())
	return perRequest(t, log, requests)
}

// traced reports whether all threads of a process have a tracer.
func traced(t *testing.T, pid int) bool {
	t.Helper()
	threads := must.Get(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)))(t)
	for _, path := range threads {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "\nTracerPid:\t0\n") {
			return false
		}
	}
	return len(threads) > 0
}

// call matches a line of strace -f -y with the end of a call: its thread, its name, when it
// was interrupted by the line of another thread or was not, and the rest.
var call = regexp.MustCompile(`^(\d+) +(?:(\w+)\(|<\.\.\. (\w+) resumed>)(.*)$`)

// byTheClock matches a try that found nothing to read or no room to write, and calls on the
// eventfd by which the runtime wakes a thread: how many there are depends on which thread
// runs when. The log and the database of the record are written in batches, by the clock.
var byTheClock = regexp.MustCompile(`EAGAIN|\[eventfd\]|/output>|/audit\.db(-wal|-shm)?>`)

// perRequest counts the lines of strace without uncounted and byTheClock.
func perRequest(t *testing.T, path string, requests float64) map[string]float64 {
	t.Helper()
	file := must.Get(os.Open(path))(t)
	defer file.Close()
	calls, begun := map[string]float64{}, map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		m := call.FindStringSubmatch(lines.Text())
		if m == nil {
			continue // a signal, or the end of a thread
		}
		thread, name, text := m[1], m[2]+m[3], m[4]
		if strings.HasSuffix(text, "<unfinished ...>") {
			begun[thread] = text
			continue
		}
		if m[3] != "" {
			text = begun[thread] + text
		}
		if !slices.Contains(uncounted, name) && !byTheClock.MatchString(text) {
			calls[name] += 1 / requests
		}
	}
	if len(calls) == 0 {
		t.Fatalf("strace counted nothing in %s", path)
	}
	return calls
}
