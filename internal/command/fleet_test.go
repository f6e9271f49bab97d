package command_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heed/internal/pace/fleet"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// fleetSite answers for any number of names. Its robots.txt can be held back.
type fleetSite struct {
	server *httptest.Server
	names  int
	asked  chan string // the User-Agent of each request for a robots.txt, when it arrives
	fetch  sync.Map    // host -> *atomic.Int32, how often its robots.txt was asked for
	hold   func(agent string)
}

func newFleetSite(t *testing.T, names int) *fleetSite {
	s := &fleetSite{names: names, asked: make(chan string, 10_000), hold: func(string) {}}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			fmt.Fprintln(w, "hello")
			return
		}
		n, _ := s.fetch.LoadOrStore(r.Host, &atomic.Int32{})
		n.(*atomic.Int32).Add(1)
		s.asked <- r.UserAgent()
		s.hold(r.UserAgent())
		fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
	}))
	t.Cleanup(s.server.Close)
	return s
}

// fetches is how often the robots.txt of a name was asked for.
func (s *fleetSite) fetches(i int) int {
	n, ok := s.fetch.Load(s.name(i))
	if !ok {
		return 0
	}
	return int(n.(*atomic.Int32).Load())
}

func (s *fleetSite) name(i int) string { return fmt.Sprintf("s%d.test", i) }

// config is a proxy.toml that reaches the names, for a heed of this name.
func (s *fleetSite) config(heed, store string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%scontact = \"https://example.org/%s\"\n[fleet]\nurl = %q\n[log]\nformat = \"json\"\n[upstream.resolve]\n", testkit.AnyPort, heed, store)
	for i := range s.names {
		fmt.Fprintf(&text, "\"%s:80\" = %q\n", s.name(i), s.server.Listener.Addr())
	}
	return text.String()
}

// fleetOf starts three heeds that share a store.
func fleetOf(t *testing.T, s *fleetSite, store string) (heeds []*testkit.Heed) {
	t.Helper()
	for i := range 3 {
		heeds = append(heeds, testkit.Start(t, testkit.Options{Config: s.config(fmt.Sprint("heed", i), store)}))
	}
	return heeds
}

// client returns one that goes through a heed.
func client(t *testing.T, h *testkit.Heed) *http.Client {
	transport := &http.Transport{
		Proxy:               http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr}),
		MaxIdleConnsPerHost: 400,
		DialContext:         (&net.Dialer{Timeout: testkit.Patience}).DialContext,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * testkit.Patience}
}

// status asks for an address and returns the status; 0 for none.
func status(t *testing.T, c *http.Client, address string) int {
	resp, err := c.Get(address)
	if err != nil {
		t.Error(err)
		return 0
	}
	resp.Body.Close()
	if said := resp.Header.Get("Proxy-Status"); resp.StatusCode >= 500 {
		t.Logf("%s: %s, %s", address, resp.Status, said)
	}
	return resp.StatusCode
}

// No heed waits for another's answer for longer than a second. On a busy machine it may
// take that long, so that a second and a third site are tried.
func TestThreeHeedsAskASiteOnce(t *testing.T) {
	t.Parallel()
	requests := 100
	if testkit.Full {
		requests = 1000
	}
	const sites = 3
	site := newFleetSite(t, sites)
	var sent atomic.Pointer[sync.WaitGroup]
	site.hold = func(string) { sent.Load().Wait() } // all requests wait for the same fetch
	heeds := fleetOf(t, site, "redis://"+testkit.NewRedis(t).Addr)
	for n := range sites {
		sent.Store(new(sync.WaitGroup))
		sent.Load().Add(requests)
		askAtOnce(t, heeds, n, requests, sent.Load().Done)
		fetches := site.fetches(n)
		if fetches == 1 {
			return
		}
		t.Logf("the robots.txt of site %d was fetched %d times", n, fetches)
	}
	t.Errorf("no site was asked once")
}

// askAtOnce sends requests for pages of the nth site through the heeds, and calls sending
// for each.
func askAtOnce(t *testing.T, heeds []*testkit.Heed, n, requests int, sending func()) {
	var all sync.WaitGroup
	for i := range requests {
		c := client(t, heeds[i%len(heeds)])
		all.Go(func() {
			address, want := fmt.Sprintf("http://s%d.test/page", n), http.StatusOK
			if i%10 == 0 {
				address, want = fmt.Sprintf("http://s%d.test/private", n), http.StatusForbidden
			}
			sending()
			must.Equal(t, status(t, c, address), want, "%s through heed %d: status", address, i%len(heeds))
		})
	}
	all.Wait()
}

// The others wait for the dead's answer for less than its lease: no request waits for
// the store for longer than a second, and then each heed asks the site itself.
func TestAKilledHeedDelaysTheOthersByItsLeaseAtMost(t *testing.T) {
	t.Parallel()
	site := newFleetSite(t, 1)
	store := testkit.NewRedis(t)
	heeds := fleetOf(t, site, "redis://"+store.Addr)
	release := make(chan struct{})
	var first atomic.Pointer[string]
	site.hold = func(agent string) {
		if first.CompareAndSwap(nil, &agent) {
			<-release
		}
	}
	defer close(release)
	var all sync.WaitGroup
	ask := func(i int) {
		c := client(t, heeds[i])
		for range 50 {
			all.Go(func() {
				must.Equal(t, status(t, c, "http://s0.test/page"), http.StatusOK, "through heed %d: status", i)
			})
		}
	}
	go client(t, heeds[0]).Get("http://s0.test/page") // it will not be answered
	agent := <-site.asked
	must.Need(t, strings.Contains(agent, "heed0"), "%q asks", agent)
	ask(1)
	ask(2)
	key := store.CLI("--scan", "--pattern", "*:lease:")
	heeds[0].Signal(syscall.SIGKILL)
	heeds[0].Exit()
	killed := time.Now()
	left := time.Duration(store.Count("pttl", key)) * time.Millisecond
	must.True(t, left <= fleet.LeaseTime, "the lease of the dead lasts another %v", left)
	<-site.asked
	t.Logf("the lease had %v left; the next heed asked after %v", left, time.Since(killed).Round(time.Millisecond))
	all.Wait()
	n := site.fetches(0)
	must.True(t, n >= 2 && n <= 3, "the robots.txt was fetched %d times, want that of the dead and at most one of each other", n)
}

func TestNoRequestFailsForAStoreThatIsKilled(t *testing.T) {
	t.Parallel()
	const names = 400
	site := newFleetSite(t, names)
	store := testkit.NewRedis(t)
	heeds := fleetOf(t, site, "redis://"+store.Addr)
	var next, done atomic.Int64
	reached := func(n int64) func() bool { return func() bool { return done.Load() >= n } }
	var all sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop); all.Wait() })
	defer end()
	for i := range 12 {
		c := client(t, heeds[i%len(heeds)])
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// Names that are new, and names that others know.
				name := site.name(int(next.Add(1)/6) % names)
				must.Equal(t, status(t, c, "http://"+name+"/page"), http.StatusOK, "%s: what is allowed", name)
				must.Equal(t, status(t, c, "http://"+name+"/private"), http.StatusForbidden, "%s: what is not allowed", name)
				done.Add(1)
			}
		})
	}
	store.Await("requests while the store is there", reached(300))
	store.Kill()
	for _, h := range heeds {
		h.Await("that the store is away", func(r testkit.Record) bool { return strings.Contains(r.Text("msg"), "store is away") })
	}
	store.Await("requests while the store is away", reached(done.Load()+300))
	store.Restart()
	for _, h := range heeds {
		h.Await("that the store is back", func(r testkit.Record) bool { return strings.Contains(r.Text("msg"), "store is back") })
	}
	store.Await("requests after it is back", reached(done.Load()+300))
	end()
	must.True(t, store.Count("dbsize") != 0, "nothing was shared after the return")
	for i, h := range heeds {
		must.Equal(t, strings.Count(h.Stderr(), "store is away"), 1, "times heed %d reports that the store is away", i)
	}
	t.Logf("%d pairs of requests", done.Load())
}

// cacheCommand runs `heed cache ARGS...` beside a heed, and returns what it
// prints and its exit status.
func cacheCommand(t *testing.T, state string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return commandBeside(t, state, append([]string{"cache"}, args...)...)
}

// commandBeside runs `heed ARGS...` beside a heed.
func commandBeside(t *testing.T, state string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(testkit.Binary(t), args...)
	cmd.Env = []string{"HEED_STATE=" + state, "HOME=" + state}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	must.Need(t, cmd.ProcessState != nil, "%v", err)
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestAnOperatorSeesTheFleetAndChangesIt(t *testing.T) {
	t.Parallel()
	site := newFleetSite(t, 3)
	store := testkit.NewRedis(t)
	heeds := fleetOf(t, site, "redis://"+store.Addr)
	config := testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), site.config("operator", "redis://"+store.Addr))
	ofFleet := func(verb string, args ...string) (stdout, stderr string, code int) {
		return cacheCommand(t, t.TempDir(), append([]string{verb, "--fleet", "--config", config}, args...)...)
	}
	for i, h := range heeds {
		must.Equal(t, status(t, client(t, h), "http://"+site.name(0)+"/page"), http.StatusOK, "through heed %d: status", i)
	}
	if out, errs, code := ofFleet("list"); code != 0 || !strings.Contains(out, "http://s0.test") || strings.Count(out, "\n") != 1 {
		t.Errorf("list: status %d\n%s%s", code, out, errs)
	}
	if out, errs, code := ofFleet("show", "s0.test"); code != 0 || !strings.Contains(out, "     2  Disallow: /private\n") || !strings.Contains(out, "fleet      shared") {
		t.Errorf("show: status %d\n%s%s", code, out, errs)
	}
	list := testkit.Write(t, filepath.Join(t.TempDir(), "list"), "http://s0.test\nhttp://s1.test\n")
	out, errs, code := ofFleet("warm", list)
	must.True(t, code == 0 && strings.Count(out, "available") == 2, "warm: status %d\n%s%s", code, out, errs)
	status(t, client(t, heeds[2]), "http://s1.test/page")
	must.True(t, site.fetches(0) == 1 && site.fetches(1) == 1, "fetched %d and %d times", site.fetches(0), site.fetches(1))

	// A purge at one heed takes effect at all of them within a moment.
	out, errs, code = cacheCommand(t, heeds[0].State, "purge", "s0.test")
	must.True(t, code == 0 && out == "forgotten: http://s0.test\n", "purge: status %d\n%s%s", code, out, errs)
	for _, h := range heeds {
		store.Await("the others have forgotten", func() bool {
			out, _, _ := cacheCommand(t, h.State, "list")
			return !strings.Contains(out, "s0.test")
		})
	}
	out, _, code = ofFleet("show", "s0.test")
	must.True(t, code == 1, "show after it: status %d\n%s", code, out)
	_, _, code = ofFleet("purge", "s1.test")
	must.True(t, code == 0, "purge of the fleet's: status %d", code)
	store.Await("the heed has forgotten", func() bool {
		out, _, _ := cacheCommand(t, heeds[2].State, "list")
		return !strings.Contains(out, "s1.test")
	})

	ofOne := func() (string, int) {
		cmd := exec.Command(testkit.Binary(t), "status")
		cmd.Env = []string{"HEED_STATE=" + heeds[0].State}
		out, _ := cmd.Output()
		return string(out), cmd.ProcessState.ExitCode()
	}
	store.Await("each knows of the others", func() bool {
		out, _ := ofOne()
		return strings.Contains(out, "shared; turns at sites are taken together by 3 heeds\n")
	})

	// Without the store, it is said what has been done and what not.
	status(t, client(t, heeds[0]), "http://s2.test/page")
	store.Kill()
	_, errs, code = ofFleet("list")
	must.True(t, code == 2 && strings.Contains(errs, "cannot be used"), "list without the store: status %d\n%s", code, errs)
	if _, errs, code := cacheCommand(t, heeds[0].State, "purge", "s2.test"); code != 2 || !strings.Contains(errs, "the other instances were not notified") {
		t.Errorf("purge without the store: status %d\n%s", code, errs)
	}
	out, _, _ = cacheCommand(t, heeds[0].State, "list")
	must.True(t, !strings.Contains(out, "s2.test"), "it was not forgotten here")
	if out, code := ofOne(); code != 1 || !strings.Contains(out, "not well: the fleet's store is away") ||
		!strings.Contains(out, "every delay of a site is kept once for each of 3 heeds until it is back") {
		t.Errorf("status: %d\n%s", code, out)
	}
}

// The password of an upstream proxy is part of what distinguishes routes. Neither it nor
// anything derived from it alone is in the store.
func TestNothingSecretIsInTheStore(t *testing.T) {
	t.Parallel()
	store := testkit.NewRedis(t)
	spaces := map[string]bool{}
	site := newFleetSite(t, 0)
	for _, password := range []string{"opensesame", "guesswork"} {
		config := strings.Replace(site.config("heed", "redis://"+store.Addr), "[upstream.resolve]\n", fmt.Sprintf(
			"[upstream]\nproxy = \"http://user:%s@proxy.test:1\"\n[upstream.resolve]\n\"proxy.test:1\" = %q\n", password, site.server.Listener.Addr()), 1)
		h := testkit.Start(t, testkit.Options{Config: config})
		must.Equal(t, status(t, client(t, h), "http://s0.test/private"), http.StatusForbidden, "status")
	}
	keys := store.CLI("keys", "*:policy")
	for key := range strings.FieldsSeq(keys) {
		spaces[strings.Split(key, ":")[2]] = true
		if all := key + store.CLI("hgetall", key); strings.Contains(all, "opensesame") || strings.Contains(all, "guesswork") {
			t.Errorf("a password is in the store:\n%s", all)
		}
	}
	must.Equal(t, len(spaces), 1, "spaces for one way to the sites: %s", keys)
}

// A password that was rotated in the file of fleet.url is in force after a reload; another
// store is not.
func TestAReloadReadsThePasswordOfTheStore(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	acl := func(password string) {
		server.CLI("acl", "setuser", "heed", "on", "resetpass", ">"+password, "~*", "&*", "+@all")
	}
	secret := filepath.Join(t.TempDir(), "store")
	write := func(url string) {
		t.Helper()
		must.OK(t, os.WriteFile(secret, []byte(url+"\n"), 0o600))
	}
	acl("one")
	write("redis://heed:one@" + server.Addr)
	h := testkit.Start(t, testkit.Options{Config: fmt.Sprintf("%s[fleet]\nurl = %q\n", testkit.AnyPort, "file:"+secret)})
	well := func() bool {
		_, _, code := commandBeside(t, h.State, "status", "--quiet")
		return code == 0
	}
	server.Await("heed is well", well)
	acl("two")
	server.CLI("client", "kill", "user", "heed")
	server.Await("the old password is refused", func() bool { return !well() })
	write("redis://heed:two@" + server.Addr)
	out, errs, code := commandBeside(t, h.State, "reload")
	must.True(t, code == 0 && strings.Contains(out, "fleet.url ("+secret+")"), "reload: exit %d\n%s%s", code, out, errs)
	server.Await("heed is well again", well)
	write("redis://heed:two@other.test")
	if _, errs, code := commandBeside(t, h.State, "reload"); code == 0 || !strings.Contains(errs, "another store needs a restart") {
		t.Errorf("reload with another store: exit %d\n%s", code, errs)
	}
}

func TestConfigCheckTriesTheStore(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	server.CLI("acl", "setuser", "deaf", "on", ">word", "~*", "&heed:*", "+@all", "-subscribe")
	check := func(store string, args ...string) (string, int) {
		t.Helper()
		config := filepath.Join(t.TempDir(), "proxy.toml")
		must.OK(t, os.WriteFile(config, []byte(fmt.Sprintf("# of a test\n[fleet]\nurl = %q\n", store)), 0o600))
		_, errs, code := commandBeside(t, t.TempDir(), append([]string{"config", "check", "--config", config}, args...)...)
		return errs, code
	}
	url := "redis://" + server.Addr
	errs, code := check(url, "--try")
	must.True(t, code == 0, "a store that works: exit %d\n%s", code, errs)
	must.Equal(t, server.Count("exists", "heed:1:heeds"), 0, "the check counts as a heed")
	for store, want := range map[string]string{
		"redis://heed:secret@" + server.Addr: "WRONGPASS", url + "?cluster=true": "no Cluster", url + "?master=heeds": "no Sentinel",
		"redis://deaf:word@" + server.Addr: "subscribe", "redis://" + testkit.FreeAddr(t): "refused",
	} {
		if errs, code := check(store, "--try"); code != 2 || !strings.Contains(errs, want) || !strings.Contains(errs, ":3: fleet.url") || strings.Contains(errs, "secret") {
			t.Errorf("%s: exit %d\n%s", store, code, errs)
		}
		errs, code := check(store)
		must.True(t, code == 0, "%s without --try: exit %d\n%s", store, code, errs)
	}
}
