package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Ways in which the load generator uses connections.
const (
	keepAlive = "keep-alive" // HTTP/1.1, one request after the other
	newEach   = "new"        // a new connection for each request
	resumed   = "resumed"    // the same, with TLS session resumption
	overH2    = "h2"         // all requests on one HTTP/2 connection
)

// What is measured in a case.
const (
	requestCPU = "us"        // CPU time of the proxy per request
	tailAtHalf = "us p99"    // the 99th percentile of the time to answer at half load
	connMemory = "KiB/conn"  // resident memory per idle connection
	startCPU   = "ms"        // CPU time from the start to the first answer
	startWall  = "ms passed" // beside startCPU: the time that passed
)

// workload is one case of the benchmark.
type workload struct {
	name, title string
	unit        string // what is measured
	secure      bool   // https, intercepted
	path        string // with %d for the number of the target in "refused"
	size        int    // of the body in octets; -1: the body is not compared
	status      int
	mode        string
	conns       int
	host        string // empty: siteName
	hosts       bool   // each target is a host of its own
	targets     int    // number of hosts or paths; the requests of a distinct case have more
	distinct    bool   // no URL is requested twice, as by a crawler
	remote      bool   // the clients are in a network namespace of their own
	recorded    int    // decisions that the record has before the first sample
	settings    string
}

// scale is how large the cases are; a test uses less.
type scale struct {
	Conns, Hosts, Paths, Idle int
	Large                     int           // octets of the largest body
	Rest                      time.Duration // before the memory of an idle process is measured: heed returns memory after a minute
	Most                      int           // the largest point of a series
}

var fullScale = scale{
	Conns: 32, Hosts: 10_000, Paths: 10_000, Idle: 1_000, Large: 10 << 20, Rest: 70 * time.Second, Most: 1_000_000,
}

// noRefusalLimit lets heed refuse any number of requests of one client.
const noRefusalLimit = "[limits]\nrefusals_per_client = 100000000\n"

// workloads returns all cases.
func workloads(s scale) []workload {
	of := func(name, title string, change func(*workload)) workload {
		w := plainWorkload(s)
		w.name, w.title = name, title
		change(&w)
		return w
	}
	return []workload{
		of("plain-1k", "plain, 1 KiB", func(*workload) {}),
		of("plain-100k", "plain, 100 KiB", func(w *workload) { w.path, w.size = "/100k", 100<<10 }),
		of("plain-10m", "plain, 10 MB", func(w *workload) { w.path, w.size = "/10m", s.Large }),
		of("tls-h1", "intercepted, keep-alive, HTTP/1.1", func(w *workload) { w.secure = true }),
		of("tls-h2", "intercepted, HTTP/2 streams", func(w *workload) { w.secure, w.mode = true, overH2 }),
		of("tls-new", "intercepted, new connection each", func(w *workload) { w.secure, w.mode = true, newEach }),
		of("tls-resumed", "intercepted, new connection each, resumed", func(w *workload) { w.secure, w.mode = true, resumed }),
		of("tls-new-net", "intercepted, new connection each, clients of another host", func(w *workload) {
			w.secure, w.mode, w.remote, w.settings = true, newEach, true, "[access]\nclients = [\""+netRange+"\"]\n"
		}),
		of("refused", "refused, spread over many paths", func(w *workload) {
			w.path, w.size, w.status, w.targets, w.settings = "/private/%d", -1, http.StatusForbidden, s.Paths, noRefusalLimit
		}),
		of("pages", "plain, 1 KiB, every URL once", func(w *workload) { w.path, w.distinct = "/page/%d", true }),
		of("refused-pages", "refused, every URL once", func(w *workload) {
			w.path, w.size, w.status, w.distinct, w.settings = "/private/%d", -1, http.StatusForbidden, true, noRefusalLimit
		}),
		of("hosts", "plain, 1 KiB, spread over many hosts", func(w *workload) { w.hosts, w.targets = true, s.Hosts }),
		of("half", "plain, 1 KiB, at half load", func(w *workload) { w.unit = tailAtHalf }),
		of("idle", "idle intercepted connections", func(w *workload) { w.unit, w.secure, w.conns = connMemory, true, s.Idle }),
		of("cold", "cold start", func(w *workload) { w.unit = startCPU }),
	}
}

// plainWorkload requests one page of 1 KiB over and over.
func plainWorkload(s scale) workload {
	return workload{unit: requestCPU, path: "/1k", size: 1 << 10, status: http.StatusOK, mode: keepAlive, conns: s.Conns, targets: 1}
}

// fresh reports whether each sample of the case needs a new process.
func (w workload) fresh() bool { return w.unit == connMemory || w.unit == startCPU }

// choose returns the items with the names in list, which are separated by commas,
// in the order of all. An empty list chooses all.
func choose[T any](all []T, name func(T) string, list string) ([]T, error) {
	if list == "" {
		return all, nil
	}
	names := strings.Split(list, ",")
	var chosen []T
	var known []string
	for _, item := range all {
		known = append(known, name(item))
		if slices.Contains(names, name(item)) {
			chosen = append(chosen, item)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("%q is not one of %s", n, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// body returns the octets that the site serves under a path of that size. They are
// the same in every process, and do not compress.
func body(size int) []byte {
	random := rand.NewChaCha8([32]byte{'b', 'e', 'n', 'c', 'h'})
	b := make([]byte, max(size, 0))
	random.Read(b)
	return b
}
