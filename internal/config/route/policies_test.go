package route

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heed/cache"
	"heed/internal/base/sqlite"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// web is a proxy behind heed that plays every site there is: each has a
// robots.txt, and is asked for it once.
type web struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int // host -> requests for its robots.txt
}

func newWeb(t *testing.T) *web {
	w := &web{asked: map[string]int{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		w.mu.Lock()
		w.asked[r.Host]++
		w.mu.Unlock()
		rw.Header().Set("Cache-Control", "max-age=86400")
		_, _ = io.WriteString(rw, robotsOf(r.Host))
	}
}

// robotsOf is a file of about the usual length, another one for each host.
func robotsOf(host string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "User-agent: *\nDisallow: /private-%s\n", host)
	for n := range 30 {
		fmt.Fprintf(&b, "Disallow: /folder-%d/\n", n)
	}
	return b.String()
}

func (w *web) countOf(host string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[host]
}

// config is a proxy.toml that leads to w.
func (w *web) config() string {
	return testkit.AnyPort + "[upstream]\nproxy = \"" + w.URL + "\"\n[log]\nlevel = \"warn\"\n"
}

// clientOf returns a client that goes through the proxy at addr.
func clientOf(t *testing.T, addr string) *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr})}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: testkit.Patience}
}

func get(c *http.Client, address string) (status int, err error) {
	resp, err := c.Get(address)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// inFile returns the value of a query of a file of policies, which heed may have open; nil
// when there is none.
func inFile(t *testing.T, path, query string) driver.Value {
	t.Helper()
	c, err := sqlite.Open(path, "ro", testkit.Patience)
	if err != nil {
		return nil
	}
	defer c.Close()
	row, err := c.One(query)
	if err != nil || row == nil {
		return nil
	}
	return row[0]
}

// whole fails for a file of policies that does not fit together.
func whole(t *testing.T, path string) {
	t.Helper()
	must.Equal(t, inFile(t, path, "PRAGMA integrity_check"), "ok", "%s is corrupt", path)
}

// obtained is the number of commits to the file of policies when that of a host was at
// hand.
type obtained struct {
	host   string
	commit int64
}

// commits returns the number of commits to a file of policies, each of which has a time of
// its own.
func commits(t *testing.T, path string) int64 {
	n, _ := inFile(t, path, "SELECT count(DISTINCT saved) FROM policy").(int64)
	return n
}

// browse has clients ask for new sites until heed is gone, and returns those
// whose policy heed had. It calls begun when it has the first.
func browse(t *testing.T, addr, path string, round int, begun func()) []obtained {
	const clients = 4
	var mu sync.Mutex
	var all []obtained
	var busy sync.WaitGroup
	var first sync.Once
	for c := range clients {
		client := clientOf(t, addr)
		busy.Go(func() {
			for n := 0; ; n++ {
				host := fmt.Sprintf("s%d-%d-%d.test", round, c, n)
				if _, err := get(client, "http://"+host+"/page"); err != nil {
					return
				}
				mu.Lock()
				all = append(all, obtained{host, commits(t, path)})
				mu.Unlock()
				first.Do(begun)
			}
		})
	}
	busy.Wait()
	return all
}

// heed is killed at random moments while it learns of new sites. What it had
// for two commits to its file is there when it starts again: no site is asked
// twice. In full (testkit.Full), 50 rounds.
func TestHeed_PoliciesSurviveKills(t *testing.T) {
	rounds := 5
	if testkit.Full {
		rounds = 50
	}
	w, state := newWeb(t), t.TempDir()
	var known []string
	for round := range rounds {
		h := testkit.Start(t, testkit.Options{State: state, Config: w.config()})
		for range min(len(known), 200) {
			host := known[rand.IntN(len(known))]
			status, err := get(clientOf(t, h.Addr), "http://"+host+"/private-"+host)
			must.True(t, err == nil && status == http.StatusForbidden,
				"round %d, %s: status %d, %v", round, host, status, err)
			must.Equal(t, w.countOf(host), 1, "round %d: times %s was asked", round, host)
		}
		path := filepath.Join(state, policiesFile)
		new := browse(t, h.Addr, path, round, func() {
			first := commits(t, path)
			go func() {
				for late := time.After(testkit.Patience); commits(t, path) < first+3 && len(late) == 0; {
					testkit.Delay(5 * time.Millisecond)
				}
				testkit.Delay(rand.N(time.Second))
				h.Signal(syscall.SIGKILL)
			}()
		})
		h.Exit()
		last := commits(t, path)
		kept := 0
		for _, o := range new {
			if last >= o.commit+2 { // the one at that time may have begun before
				known = append(known, o.host)
				kept++
			}
		}
		must.True(t, kept != 0, "round %d: of %d sites none is two commits old", round, len(new))
		must.Lack(t, h.Stderr(), "damaged", "round %d", round)
		whole(t, path)
	}
	t.Logf("%d kills, %d sites, each asked once", rounds, len(known))
}

// A hundred thousand policies on disk do not keep heed from listening, nor are
// they read before they are needed.
func TestHeed_StartingReadsNoPolicies(t *testing.T) {
	count := 3_000
	if testkit.Full {
		count = 100_000
	}
	w, state := newWeb(t), t.TempDir()
	fill(t, state, w.config(), count)
	h := testkit.Start(t, testkit.Options{State: state, Config: w.config()})
	atRest := resident(t, h.Pid())
	client := clientOf(t, h.Addr)
	for n := range 200 {
		host := numberedHost(n * 37 % count)
		status, err := get(client, "http://"+host+"/private-"+host)
		must.True(t, err == nil && status == http.StatusForbidden, "%s: status %d, %v", host, status, err)
		must.Equal(t, w.countOf(host), 0, "times %s was asked", host)
	}
	t.Logf("%d policies on disk: %d MiB resident, %d MiB after 200 of them were used",
		count, atRest>>20, resident(t, h.Pid())>>20)
	// What the program itself takes is more under the race detector. The bound of
	// all policies is far above; had they been read, they would be near it.
	limit := int64(100) << 20
	must.True(t, atRest <= limit, "%d bytes resident, want less than %d", atRest, limit)
}

func numberedHost(n int) string { return "host-" + strconv.Itoa(n) + ".test" }

// fill has a heed's caches save count policies under the settings of config.
func fill(t *testing.T, state, settings string, count int) {
	t.Helper()
	cfg := must.Get(config.Load(testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), settings), testkit.BuiltIn(t)))(t)
	pool := must.Get(NewPool(cfg, nil, Options{}))(t)
	id := must.Get(pool.identity(control.RouteSpec{}))(t)
	const some = 2000 // that wait for the disk at a time
	for from := 0; from < count; from += some {
		fillSome(t, cfg, state, id, from, min(from+some, count))
	}
}

func fillSome(t *testing.T, cfg *config.Config, state, id string, from, to int) {
	t.Helper()
	file := must.Get(OpenPolicies(cfg, state, slog.New(slog.DiscardHandler)))(t)
	c := cache.New(cache.Config{Store: file.ForRoute(id), Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body := io.NopCloser(strings.NewReader(robotsOf(r.URL.Host)))
		return &http.Response{StatusCode: 200, Header: http.Header{"Cache-Control": {"max-age=86400"}}, Body: body, ContentLength: -1}, nil
	})})
	for n := from; n < to; n++ {
		o := rules.Origin{Scheme: "http", Host: numberedHost(n), Port: 80}
		must.Is(t, c.Policy(context.Background(), o, "").Source().State, rules.Available, "%s", o)
	}
	must.OK(t, file.Close())
	must.Is(t, file.Health().Unsaved, 0, "policies that were not saved")
}

// roundTrip is a RoundTripper made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// resident returns how many octets of memory a process has.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if os.IsNotExist(err) {
		return 0 // no such thing on this system: nothing to compare
	}
	var size, pages int64
	must.Get(fmt.Sscan(string(text), &size, &pages))(t)
	return pages * int64(os.Getpagesize())
}

func TestHeed_WaysOfOtherSettingsAreOtherWays(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	testkit.Write(t, ca, "one")
	identity := func(proxied string, w control.RouteSpec, u config.UpstreamConfig) string {
		t.Helper()
		u.Proxy = proxied
		cfg := &config.Config{Upstream: u}
		pool := must.Get(NewPool(cfg, nil, Options{}))(t)
		return must.Get(pool.identity(w))(t)
	}
	plain := identity("", control.RouteSpec{}, config.UpstreamConfig{})
	must.Equal(t, identity("", control.RouteSpec{}, config.UpstreamConfig{ResponseHeaderTimeout: time.Hour}), plain, "how long heed waits for an answer makes another way")
	if identity("http://p:1", control.RouteSpec{}, config.UpstreamConfig{}) != identity("", byProxyURL("http://p:1"), config.UpstreamConfig{}) {
		t.Error("one proxy, named by the settings and by a run, makes two routes")
	}
	seen := map[string]string{plain: "plain"}
	differs := func(name, id string) {
		t.Helper()
		other, twice := seen[id]
		must.True(t, !twice, "%s and %s are one way", name, other)
		seen[id] = name
	}
	differs("proxy", identity("http://p:1", control.RouteSpec{}, config.UpstreamConfig{}))
	differs("resolve", identity("", control.RouteSpec{}, config.UpstreamConfig{Resolve: map[string]string{"a:80": "127.0.0.1:1"}}))
	differs("roots", identity("", control.RouteSpec{Roots: "x"}, config.UpstreamConfig{}))
	differs("CA file", identity("", control.RouteSpec{}, config.UpstreamConfig{CAFile: ca}))
	testkit.Write(t, ca, "two")
	differs("another CA in that file", identity("", control.RouteSpec{}, config.UpstreamConfig{CAFile: ca}))
}

func byProxyURL(u string) control.RouteSpec {
	return control.RouteSpec{Proxy: &control.UpstreamProxy{All: u}}
}

func TestHeed_ADamagedPoliciesFileIsReportedAndHeedStarts(t *testing.T) {
	w, state := newWeb(t), t.TempDir()
	path := testkit.Write(t, filepath.Join(state, policiesFile), strings.Repeat("damaged ", 5000))
	h := testkit.Start(t, testkit.Options{State: state, Config: w.config()})
	status, err := get(clientOf(t, h.Addr), "http://a.test/")
	must.True(t, err == nil && status == 200, "status %d, %v", status, err)
	h.Await("about the damage", func(r testkit.Record) bool {
		return strings.HasPrefix(r.Text("msg"), "the policies file is damaged: it was set aside") && r.Text("moved_to") == path+".damaged"
	})
}

// Policies outlive an orderly stop to the last one.
func TestHeed_AStopWritesWhatIsNotWrittenYet(t *testing.T) {
	w, state := newWeb(t), t.TempDir()
	for range 2 {
		h := testkit.Start(t, testkit.Options{State: state, Config: w.config()})
		status, err := get(clientOf(t, h.Addr), "http://a.test/")
		must.True(t, err == nil && status == 200, "status %d, %v", status, err)
		h.Signal(syscall.SIGTERM)
		h.Exit()
	}
	must.Equal(t, w.countOf("a.test"), 1, "times asked")
}

// A file that another process has costs what it holds, no more: heed starts, says
// so, and saves as soon as it can.
func TestHeed_APoliciesFileInUseIsReportedAndHeedStarts(t *testing.T) {
	w, state := newWeb(t), t.TempDir()
	path := filepath.Join(state, policiesFile)
	other, err := sqlite.Open(path, "rwc", 0)
	if err == nil {
		_, err = other.Exec("PRAGMA locking_mode = EXCLUSIVE; CREATE TABLE mine (x)")
	}
	must.OK(t, err)
	defer other.Close()
	h := testkit.Start(t, testkit.Options{State: state, Config: w.config()})
	status, err := get(clientOf(t, h.Addr), "http://a.test/")
	must.True(t, err == nil && status == 200, "status %d, %v", status, err)
	h.Await("about the file", func(r testkit.Record) bool {
		return strings.HasPrefix(r.Text("msg"), "policies cannot be saved for now") && r.Text("file") == path &&
			strings.HasPrefix(r.Text("error"), "another program keeps the file locked")
	})
	s := must.Get(control.ReadStatus(t.Context(), state))(t)
	must.True(t, s.Kept != nil && strings.HasPrefix(s.Kept.Why, "another program keeps the file locked"),
		"the status has %+v", s.Kept)
}
