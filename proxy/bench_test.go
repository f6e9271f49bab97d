package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heed/cache"
	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/ca"
	"heed/internal/trust/passport"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/proxy/usage"
)

// benchConns is how many keep-alive connections the benchmark's client holds.
const benchConns = 32

// TestMain lets the test binary be the benchmark's client and origin, so that
// neither shares a process, and its figures, with the proxy.
func TestMain(m *testing.M) {
	switch os.Getenv("HEED_BENCH_ROLE") {
	case "origin":
		benchOrigin()
	case "client":
		benchClient()
	default:
		testkit.Main(m, 4)
	}
}

// BenchmarkProxied is one proxied request with a body of two octets, everything
// on: cached policy, a rule list, counts, and a JSON log line written to a file.
// allocs/req and cpu-us/req are the proxy process's own.
func BenchmarkProxied(b *testing.B) {
	for _, m := range []struct{ name, target, protocol string }{
		{"plain", "http://site.test/ok", "HTTP/1.1"},
		{"intercepted", "https://site.test/ok", "HTTP/1.1"},
		{"intercepted, HTTP/2", "https://site.test/ok", "HTTP/2.0"},
		{"refused", "http://site.test/private/1", "HTTP/1.1"},
	} {
		b.Run(m.name, func(b *testing.B) { benchProxied(b, m.target, m.protocol) })
	}
}

func benchProxied(b *testing.B, target, protocol string) {
	site, resolve := benchSite(b)
	addr, caPEM := benchProxy(b, resolve, site.Pool(), nil)
	client := startRole(b, "client", "http://"+addr, target, caPEM, protocol)
	client.run(b, 4*benchConns) // warm: connections, leaf, policy

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu := cpuTime(b)
	b.ResetTimer()
	client.run(b, b.N)
	b.StopTimer()
	cpu = cpuTime(b) - cpu
	runtime.ReadMemStats(&after)
	n := float64(b.N)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/req")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/req")
	b.ReportMetric(float64(cpu.Microseconds())/n, "cpu-us/req")
}

// BenchmarkPurpose compares a proxy whose clients state a purpose with one whose clients do
// not, for a page of 50 KB with a head of 5 KB in each coding; and, as "none", one whose
// clients do not with one that reads no page at all. ratio is the median of the turns.
func BenchmarkPurpose(b *testing.B) {
	site, resolve := benchSite(b)
	plain := func(*Config) {}
	off := func(c *Config) { c.Signals = usage.Settings{Pages: usage.NoPages} }
	for _, t := range []struct {
		name, path    string
		without, with func(*Config)
	}{
		{"page", "/page", plain, purposeOf(signal.PurposeSearch)},
		{"page.gzip", "/page.gzip", plain, purposeOf(signal.PurposeSearch)},
		{"page.br", "/page.br", plain, purposeOf(signal.PurposeSearch)},
		{"page.zstd", "/page.zstd", plain, purposeOf(signal.PurposeSearch)},
		{"none", "/page", off, plain},
		{"same", "/page", plain, plain}, // the error of this measurement
	} {
		b.Run(t.name, func(b *testing.B) {
			var clients [2]*role
			for i, change := range []func(*Config){t.without, t.with} {
				addr, caPEM := benchProxy(b, resolve, site.Pool(), nil, change)
				clients[i] = startRole(b, "client", "http://"+addr, "http://site.test"+t.path, caPEM, "HTTP/1.1")
				clients[i].run(b, 4*benchConns)
			}
			compare(b, &clients)
		})
	}
}

// benchSite starts the origin, and returns the CA of its certificate and where it is.
func benchSite(b testing.TB) (site *testkit.CA, resolve map[string]string) {
	b.Helper()
	site = testkit.NewCA(b)
	certFile, keyFile := site.Leaf(b, "site.test")
	origin := startRole(b, "origin", certFile, keyFile)
	return site, map[string]string{"site.test:80": origin.line(b), "site.test:443": origin.line(b)}
}

// compare reports the CPU time of the requests of two clients, which take turns: without and
// with something. ratio is the median of the turns.
func compare(b *testing.B, clients *[2]*role) {
	const turns = 20
	b.ResetTimer()
	var cpu [2]time.Duration
	var ratios []float64
	for turn := range turns {
		var each [2]time.Duration
		for n := range clients {
			i := (turn + n) % 2 // each is first in every other turn
			before := cpuTime(b)
			clients[i].run(b, max(1, b.N/turns))
			each[i] = cpuTime(b) - before
			cpu[i] += each[i]
		}
		ratios = append(ratios, float64(each[1])/float64(each[0]))
	}
	slices.Sort(ratios)
	b.ReportMetric(float64(cpu[0].Microseconds())/float64(b.N), "without-us/req")
	b.ReportMetric(float64(cpu[1].Microseconds())/float64(b.N), "with-us/req")
	b.ReportMetric(ratios[turns/2], "ratio")
}

// BenchmarkSigned compares a proxy whose client is signed with one whose client is not.
func BenchmarkSigned(b *testing.B) {
	site, resolve := benchSite(b)
	signer, _ := newSigner(b)
	rules := func(by *passport.Signer) func(*Config) {
		return func(c *Config) { settle(c, signing(by, acl.Host{Match: everywhere(b), SignHTTP: true})) }
	}
	for _, t := range []struct {
		name, target string
		with         *passport.Signer
	}{
		{"plain", "http://site.test/ok", signer},
		{"intercepted", "https://site.test/ok", signer},
		{"same", "http://site.test/ok", nil}, // the error of this measurement
	} {
		b.Run(t.name, func(b *testing.B) {
			var clients [2]*role
			for i, by := range []*passport.Signer{nil, t.with} {
				addr, caPEM := benchProxy(b, resolve, site.Pool(), nil, rules(by))
				clients[i] = startRole(b, "client", "http://"+addr, t.target, caPEM, "HTTP/1.1")
				clients[i].run(b, 4*benchConns)
			}
			compare(b, &clients)
		})
	}
}

// benchPages are the pages that benchPage has made.
var benchPages sync.Map

// benchPage returns the page of 50 KB that the origin serves at a path, in the coding that
// the path ends in.
func benchPage(path string) []byte {
	if page, ok := benchPages.Load(path); ok {
		return page.([]byte)
	}
	var page strings.Builder
	page.WriteString("<!doctype html><html lang=en><head><meta charset=utf-8><title>A page</title>")
	for i := 0; page.Len() < 5<<10; i++ {
		fmt.Fprintf(&page, "<link rel=\"stylesheet\" href=\"/assets/style-%d.css\"><meta property=\"og:title\" content=\"A page, part %d\">\n", i, i*i)
	}
	page.WriteString("</head><body>")
	for i := 0; page.Len() < 50<<10; i++ {
		fmt.Fprintf(&page, "<p class=\"text\">Paragraph %d of %d has some <a href=\"/%x\">words</a>.\n", i, i*i, i*7919)
	}
	_, coding, _ := strings.Cut(path, ".")
	coded := codings[coding]([]byte(page.String()))
	benchPages.Store(path, coded)
	return coded
}

// benchProxy starts a proxy as heed serve wires it; record may be nil.
func benchProxy(b testing.TB, resolve map[string]string, roots *x509.CertPool, record Recorder, changes ...func(*Config)) (addr, caPEM string) {
	b.Helper()
	authority := must.Get(ca.Open(b.TempDir(), time.Now))(b)
	logFile := must.Get(os.Create(b.TempDir() + "/log"))(b)
	var recorder Recorder = both{audit.NewLog(slog.NewJSONHandler(logFile, nil), nil), observed{counts.New(nil)}}
	if record != nil {
		recorder = both{recorder, record}
	}
	self := &acl.Addrs{}
	ways := upstream.NewHostTransports(upstream.TransportConfig{Resolve: resolve, RootCAs: roots, Self: self})
	config := Config{
		Name: "bench-1", Leaves: authority, Self: self,
		Recorder: recorder,
		Settings: Settings{Limits: limit.Limits{RefusalsPerClient: math.MaxInt32}, Upstream: ways, Policies: cache.New(cache.Config{Transport: ways, UserAgent: "heed-bench"})},
	}
	for _, change := range changes {
		change(&config)
	}
	p := must.Get(New(config))(b)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	go p.Serve(l)
	b.Cleanup(func() { p.close() })
	return l.Addr().String(), string(authority.CertPEM())
}

// both records in two places, as serve does in three.
type both [2]Recorder

func (r both) Decided(e *audit.Entry) error {
	if err := r[0].Decided(e); err != nil {
		return err
	}
	return r[1].Decided(e)
}

func (r both) Ended(e *audit.Entry) { r[0].Ended(e); r[1].Ended(e) }

// observed is a Recorder that accepts everything and counts it at its end.
type observed struct {
	by interface{ Ended(*audit.Entry) }
}

func (observed) Decided(*audit.Entry) error { return nil }

func (o observed) Ended(e *audit.Entry) { o.by.Ended(e) }

func cpuTime(b testing.TB) time.Duration {
	var u syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// role is the test binary as another process.
type role struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func startRole(b testing.TB, name string, args ...string) *role {
	b.Helper()
	self := must.Get(os.Executable())(b)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "HEED_BENCH_ROLE="+name)
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	must.OK(b, cmd.Start())
	b.Cleanup(func() {
		in.Close()
		err := cmd.Wait()
		must.True(b, err == nil, "%s: %v", name, err)
	})
	return &role{in, bufio.NewReader(out)}
}

func (r *role) line(b testing.TB) string {
	b.Helper()
	s := must.Get(r.out.ReadString('\n'))(b)
	return strings.TrimSpace(s)
}

// run makes the client send n requests and waits for them.
func (r *role) run(b testing.TB, n int) {
	b.Helper()
	fmt.Fprintln(r.in, n)
	must.Is(b, r.line(b), "done", "the client")
}

// benchOrigin serves two octets over HTTP and HTTPS/1.1 until its input ends.
func benchOrigin() {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, robots)
			return
		}
		if coding, ok := strings.CutPrefix(r.URL.Path, "/page"); ok {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if coding != "" {
				w.Header().Set("Content-Encoding", coding[1:])
			}
			w.Write(benchPage(r.URL.Path))
			return
		}
		io.WriteString(w, "ok")
	})
	for i := range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Println(l.Addr())
		s := &http.Server{Handler: h, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
		if i == 0 {
			go s.Serve(l)
		} else {
			go s.ServeTLS(l, os.Args[1], os.Args[2])
		}
	}
	io.Copy(io.Discard, os.Stdin)
}

// benchClient reads numbers and sends that many requests over benchConns
// connections, until its input ends.
func benchClient() {
	proxyURL, err := url.Parse(os.Args[1])
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(os.Args[3]))
	c := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(proxyURL), MaxIdleConnsPerHost: benchConns, DisableCompression: true,
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: os.Args[4] == "HTTP/2.0",
	}}
	for {
		var n int
		if _, err := fmt.Scanln(&n); err != nil {
			return
		}
		if err := sendAll(c, os.Args[2], n); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("done")
	}
}

func sendAll(c *http.Client, target string, n int) error {
	jobs := make(chan struct{})
	errs := make(chan error, benchConns)
	var wg sync.WaitGroup
	for range benchConns {
		wg.Go(func() {
			for range jobs {
				if err := sendOne(c, target); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for range n {
		jobs <- struct{}{}
	}
	close(jobs)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

func sendOne(c *http.Client, target string) error {
	req, err := http.NewRequest("GET", target, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "BenchBot/1.0 (+https://bench.example/)")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if strings.HasPrefix(req.URL.Path, "/page") && bytes.Equal(body, benchPage(req.URL.Path)) {
		body = []byte("ok")
	}
	if strings.HasPrefix(req.URL.Path, "/private/") && resp.StatusCode == 403 {
		resp.StatusCode, body = 200, []byte("ok")
	}
	if err == nil && (resp.StatusCode != 200 || string(body) != "ok" || resp.Proto != os.Args[4]) {
		err = fmt.Errorf("%s %s: %q", resp.Proto, resp.Status, body)
	}
	return err
}
