package counts

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"
)

// runtimeMetrics are the metrics of Go's runtime, each with the samples of package
// runtime/metrics that make it up. Prometheus's own clients have the same names.
var runtimeMetrics = []struct {
	name, kind, help string
	of               []string
}{
	{"go_threads", gaugeKind, "Threads of the operating system.", []string{"/sched/threads/total:threads"}},
	{"go_sched_gomaxprocs_threads", gaugeKind, "Threads that may run Go at once: GOMAXPROCS.", []string{"/sched/gomaxprocs:threads"}},
	{"go_gc_gogc_percent", gaugeKind, "GOGC: the growth of the heap, in percent, before it is collected.", []string{"/gc/gogc:percent"}},
	{"go_gc_gomemlimit_bytes", gaugeKind, "GOMEMLIMIT: the memory that the runtime tries to stay below.", []string{"/gc/gomemlimit:bytes"}},
	{"go_memstats_alloc_bytes", gaugeKind, "Memory of objects of the heap.", []string{"/memory/classes/heap/objects:bytes"}},
	{"go_memstats_alloc_bytes_total", counterKind, "Memory that was allocated in the heap since the start.", []string{"/gc/heap/allocs:bytes"}},
	{"go_memstats_buck_hash_sys_bytes", gaugeKind, "Memory of the tables of profiles.", []string{"/memory/classes/profiling/buckets:bytes"}},
	{"go_memstats_frees_total", counterKind, "Objects that were freed since the start.", []string{"/gc/heap/frees:objects", "/gc/heap/tiny/allocs:objects"}},
	{"go_memstats_gc_sys_bytes", gaugeKind, "Memory that the collector keeps for itself.", []string{"/memory/classes/metadata/other:bytes"}},
	{"go_memstats_heap_alloc_bytes", gaugeKind, "Memory of objects of the heap: go_memstats_alloc_bytes.", []string{"/memory/classes/heap/objects:bytes"}},
	{"go_memstats_heap_idle_bytes", gaugeKind, "Memory of the heap without objects, given back or not.", []string{"/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes"}},
	{"go_memstats_heap_inuse_bytes", gaugeKind, "Memory of the heap in use, with what is left between objects.", []string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes"}},
	{"go_memstats_heap_objects", gaugeKind, "Objects of the heap.", []string{"/gc/heap/objects:objects"}},
	{"go_memstats_heap_released_bytes", gaugeKind, "Memory of the heap that was given back to the operating system.", []string{"/memory/classes/heap/released:bytes"}},
	{"go_memstats_heap_sys_bytes", gaugeKind, "Memory of the heap in all.", []string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes"}},
	{"go_memstats_mallocs_total", counterKind, "Objects that were allocated since the start.", []string{"/gc/heap/allocs:objects", "/gc/heap/tiny/allocs:objects"}},
	{"go_memstats_mcache_inuse_bytes", gaugeKind, "Memory of caches of the allocator in use.", []string{"/memory/classes/metadata/mcache/inuse:bytes"}},
	{"go_memstats_mcache_sys_bytes", gaugeKind, "Memory of caches of the allocator.", []string{"/memory/classes/metadata/mcache/inuse:bytes", "/memory/classes/metadata/mcache/free:bytes"}},
	{"go_memstats_mspan_inuse_bytes", gaugeKind, "Memory of the allocator's descriptions of spans in use.", []string{"/memory/classes/metadata/mspan/inuse:bytes"}},
	{"go_memstats_mspan_sys_bytes", gaugeKind, "Memory of the allocator's descriptions of spans.", []string{"/memory/classes/metadata/mspan/inuse:bytes", "/memory/classes/metadata/mspan/free:bytes"}},
	{"go_memstats_next_gc_bytes", gaugeKind, "Size of the heap at which it is collected next.", []string{"/gc/heap/goal:bytes"}},
	{"go_memstats_other_sys_bytes", gaugeKind, "Memory of the runtime for other purposes.", []string{"/memory/classes/other:bytes"}},
	{"go_memstats_stack_inuse_bytes", gaugeKind, "Memory of the stacks of goroutines.", []string{"/memory/classes/heap/stacks:bytes"}},
	{"go_memstats_stack_sys_bytes", gaugeKind, "Memory of all stacks.", []string{"/memory/classes/heap/stacks:bytes", "/memory/classes/os-stacks:bytes"}},
	{"go_memstats_sys_bytes", gaugeKind, "Memory that the runtime has from the operating system.", []string{"/memory/classes/total:bytes"}},
}

// writeRuntime writes runtimeMetrics, and the pauses of the collector.
func writeRuntime(x *exposition) {
	var samples []metrics.Sample
	for _, m := range runtimeMetrics {
		for _, name := range m.of {
			samples = append(samples, metrics.Sample{Name: name})
		}
	}
	metrics.Read(samples)
	for _, m := range runtimeMetrics {
		sum := 0.0
		for _, s := range samples[:len(m.of)] {
			if s.Value.Kind() == metrics.KindUint64 {
				sum += float64(s.Value.Uint64())
			}
		}
		samples = samples[len(m.of):]
		x.one(m.name, m.kind, m.help, sum)
	}
	x.one("go_goroutines", gaugeKind, "Goroutines, without those of the runtime.", float64(runtime.NumGoroutine()))
	const info, pauses = "go_info", "go_gc_duration_seconds"
	x.family(info, gaugeKind, "Always 1; the label is the version of Go.")
	x.sample(info, 1, "version", runtime.Version())
	stats := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&stats)
	x.family(pauses, summaryKind, "Time for which collections stopped the program.")
	for i, pause := range stats.PauseQuantiles {
		x.sample(pauses, pause.Seconds(), "quantile", number(float64(i)/4))
	}
	x.sample(pauses+"_sum", stats.PauseTotal.Seconds())
	x.sample(pauses+"_count", float64(stats.NumGC))
	x.one("go_memstats_last_gc_time_seconds", gaugeKind, "When a collection last ended, in seconds since 1970; 0: none did.", seconds(stats.LastGC))
}

// hertz is the unit of times in /proc: USER_HZ, which is 100 wherever Go runs (proc(5)).
const hertz = 100

// writeProcess writes the metrics of this process from /proc (proc(5)); nothing where there is
// none.
func writeProcess(x *exposition) {
	if fields := statFields(); len(fields) > 21 { // from the third on
		at := func(field int) float64 { return float(fields[field-3]) }
		x.one("process_cpu_seconds_total", counterKind, "CPU time of the process and of the kernel for it.", (at(14)+at(15))/hertz)
		x.one("process_start_time_seconds", gaugeKind, "When the process started, in seconds since 1970.", word("/proc/stat", "btime ")+at(22)/hertz)
		x.one("process_virtual_memory_bytes", gaugeKind, "Size of the address space.", at(23))
		x.one("process_resident_memory_bytes", gaugeKind, "Resident memory.", at(24)*float64(os.Getpagesize()))
		x.one("process_virtual_memory_max_bytes", gaugeKind, "Limit of the address space; 2^64 when there is none.", word("/proc/self/limits", "Max address space "))
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		x.one("process_open_fds", gaugeKind, "Open file descriptors.", float64(len(open)-1)) // one is that of the folder
		x.one("process_max_fds", gaugeKind, "Limit of open file descriptors; 2^64 when there is none.", word("/proc/self/limits", "Max open files "))
	}
}

// statFields returns the fields of /proc/self/stat from the third on: the second, the name of
// the program, may contain spaces and brackets.
func statFields() [][]byte {
	text, _ := os.ReadFile("/proc/self/stat")
	return bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
}

// word returns the number after a text that a line of a file begins with.
func word(path, begin string) float64 {
	text, _ := os.ReadFile(path)
	_, line, _ := bytes.Cut(append([]byte("\n"), text...), []byte("\n"+begin))
	if words := bytes.Fields(line); len(words) > 0 {
		return float(words[0])
	}
	return 0
}

// float returns a number in decimal digits. Any other text is "unlimited".
func float(text []byte) float64 {
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return math.MaxUint64
	}
	return n
}
