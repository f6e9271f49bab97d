package command_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// TestMain has several tests run at once: they wait more than they compute.
func TestMain(m *testing.M) { testkit.Main(m, 6) }

// TestScripts runs one story per file in testdata/script, with the real heed,
// a real nginx and real clients. Every story has a state directory and an
// origin of its own; proxy.toml says where the origin's sites are and nothing
// else. Beside testscript's own commands there are:
//
//	serve [ARGS...]          start `heed serve` and wait until it listens
//	signal NAME              send TERM or INT to that heed
//	ended STATUS             wait for its end and compare its exit status
//	log TEXT...              one of its log lines holds every TEXT
//	until REGEXP PROGRAM ... run PROGRAM until its output matches
//	direct URL FILE          fetch URL without any proxy into FILE
//	[!] via URL [COUNT]      the origin saw URL, each time through heed;
//	                         ! via: it never saw it, in whatever way
//	asked URL COUNT          the origin saw URL so many times, from whomever
//	named URL TEXT           the origin saw URL, asked for under the User-Agent TEXT
//	background               a heed that `heed run` started is at work
//
// and the condition [full]: see testkit.Full.
//
// With -update, what `cmp` compares with a file of the script is rewritten.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": serve, "signal": signal, "ended": ended, "log": log, "until": until,
			"direct": direct, "via": via, "asked": asked, "named": named, "background": background,
		},
		Condition: func(name string) (bool, error) {
			if name != "full" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return testkit.Full, nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *testkit.Update,
	})
}

// sites are what every story finds. page.html is neither text nor short, so
// that a changed octet or a lost end shows.
func sites() []testkit.Site {
	page := strings.Repeat("<p>line\r\n\x00caf\xe9 \xff and no end of line", 4000)
	refs := "0123456789abcdef0123456789abcdef01234567\trefs/heads/main\n" // of a git repository
	return []testkit.Site{
		{
			Name: "site.test",
			Robots: "# What machines may fetch here\n" + // the rules begin on line 2
				"User-agent: *\n" +
				"Disallow: /private\n" +
				"Allow: /private/open\n" +
				"\n" +
				"User-agent: namedbot\n" +
				"Disallow: /page.html\n",
			Files: map[string]string{
				"/page.html": page, "/private/secret.txt": "secret\n", "/private/open.txt": "open\n",
				"/repo.git/info/refs": refs, "/private/repo.git/info/refs": refs,
				"/slow.txt": strings.Repeat("slow and steady\n", 100<<10/16),
			},
			Redirects: map[string]string{"/go": "/private/secret.txt", "/moved": "/page.html", "/go-git/info/refs": "/private/repo.git/info/refs?service=git-upload-pack"},
			// A body that takes two seconds; and WebSockets of a server that a story
			// starts at this socket.
			Config: "location = /slow.txt { limit_rate 50k; }\n" +
				"location /socket { proxy_pass http://unix:$document_root/socket.sock:; proxy_http_version 1.1;\n" +
				"proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }",
		},
		{Name: "fleeting.test", Robots: "User-agent: *\nDisallow: /private\n", Files: map[string]string{"/page.html": page}},
		{Name: "tie.test", Robots: "User-agent: *\nAllow: /page\nDisallow: /page\n", Files: map[string]string{"/page.html": page}},
		{Name: "open.test", Files: map[string]string{"/page.html": page}}, // no robots.txt
		{Name: "registry.test", Robots: "User-agent: *\nDisallow: /\n"},   // nothing here is to be crawled
		{Name: "slow.test", Robots: "# Gently\nUser-agent: *\nCrawl-delay: 3\n", Files: map[string]string{"/page.html": page}},
		{Name: "slower.test", Robots: "User-agent: *\nCrawl-delay: 25\n", Files: map[string]string{"/page.html": page}},
		{Name: "busy.test", Config: "location = /busy { add_header Retry-After 600 always; return 503; }"},
		{Name: "broken.test", Config: "location = /robots.txt { return 503; }"},
		{Name: "guarded.test", Config: "location / { return 451; }"},
		{Name: "expired.test", Expired: true},
		{ // states how its pages may be used
			Name: "signals.test",
			Robots: "User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\nDisallow: /private\n\n" +
				"License: http://signals.test/license.xml\n",
			Files: map[string]string{
				"/license.xml": `<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license><permits>all</permits>` +
					`<payment type="use"><amount currency="USD">0.015</amount></payment></license></content></rsl>`,
				"/.well-known/tdmrep.json": `[{"location": "/", "tdm-reservation": 1}]`,
				"/noindex.html":            "<html><head>\n<meta name=\"robots\" content=\"noindex, nofollow\">\n</head><body>page</body></html>",
			},
			Config: "types { text/html html; }",
		},
	}
}

// story is what the commands of one script share.
type story struct {
	t      testing.TB
	origin *testkit.Origin
	state  string
	heed   *testkit.Heed // nil until serve
}

// storyKey is where the story lies among testscript's values.
type storyKey struct{}

func tell(ts *testscript.TestScript) *story { return ts.Value(storyKey{}).(*story) }

func setUp(env *testscript.Env) error {
	t := env.T().(testing.TB)
	s := &story{t: t, origin: testkit.NewOrigin(t, sites()...), state: filepath.Join(env.WorkDir, ".state")}
	env.Values[storyKey{}] = s
	env.Vars = append(env.Vars, testkit.RaceOptions)
	env.Setenv("HEED_STATE", s.state)
	env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
	env.Setenv("SITE_CA", s.origin.CA.File)
	env.Setenv("SITE_ROOT", s.origin.Root("site.test")) // what a story puts there is served
	env.Setenv("REGISTRY_ROOT", s.origin.Root("registry.test"))
	env.Setenv("HTTP_PORT", portOf(s.origin.Addr("site.test", "http")))
	env.Setenv("PATH", strings.Join([]string{
		filepath.Dir(testkit.Binary(t)), testkit.Clients(t), env.Getenv("PATH"),
	}, string(os.PathListSeparator)))
	testkit.ExpiredCA(t, filepath.Join(env.WorkDir, "expired"))
	env.Defer(func() { s.replays() })
	env.Defer(func() { s.endBackground() })
	config := []byte(s.origin.Config(""))
	return errors.Join(
		os.Mkdir(s.state, 0o700), os.Mkdir(env.Getenv("HOME"), 0o700),
		os.WriteFile(filepath.Join(env.WorkDir, "proxy.toml"), config, 0o600),
	)
}

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

func serve(ts *testscript.TestScript, neg bool, args []string) {
	config, err := os.ReadFile(ts.MkAbs("proxy.toml"))
	ts.Check(err)
	s := tell(ts)
	s.heed = testkit.Start(s.t, testkit.Options{
		Config: string(config), State: s.state, Args: args, Env: []string{"PATH=" + ts.Getenv("PATH")},
	})
	ts.Setenv("HEED_ADDR", s.heed.Addr)
	ts.Setenv("HEED_FILE", s.heed.File)
	ts.Setenv("HEED_PID", strconv.Itoa(s.heed.Pid()))
}

func signal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt, "HUP": syscall.SIGHUP}
	tell(ts).heed.Signal(signals[args[0]])
}

func ended(ts *testscript.TestScript, neg bool, args []string) {
	s := tell(ts)
	if got := strconv.Itoa(s.heed.Exit()); got != args[0] {
		ts.Fatalf("heed ended with status %s, not %s:\n%s", got, args[0], s.heed.Stderr())
	}
}

func log(ts *testscript.TestScript, neg bool, args []string) {
	tell(ts).heed.Await(strings.Join(args, " and "), func(r testkit.Record) bool {
		line, err := json.Marshal(r)
		ts.Check(err)
		for _, text := range args {
			if !strings.Contains(string(line), text) {
				return false
			}
		}
		return true
	})
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	wanted, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	testkit.Until(tell(ts).t, strings.Join(args[1:], " ")+" writes "+args[0], func() bool {
		_ = ts.Exec(args[1], args[2:]...) // the exit status says how heed is
		return wanted.MatchString(ts.ReadFile("stdout"))
	})
}

func direct(ts *testscript.TestScript, neg bool, args []string) {
	req, err := http.NewRequest(http.MethodGet, args[0], nil)
	ts.Check(err)
	req.Header.Set("User-Agent", directAgent)
	resp, err := tell(ts).origin.Client().Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("directly, %s is %s", args[0], resp.Status)
	}
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), body, 0o600))
}

func via(ts *testscript.TestScript, neg bool, args []string) {
	hits := hitsOf(ts, args[0])
	if neg {
		if len(hits) > 0 {
			ts.Fatalf("the site was asked: %+v", hits)
		}
		return
	}
	for _, hit := range hits {
		if hit.Via == "" {
			hits = nil // one bypassed heed: none counts
		}
	}
	if len(hits) == 0 || len(args) > 1 && strconv.Itoa(len(hits)) != args[1] {
		ts.Fatalf("the site saw %s %d times, all through heed", args[0], len(hits))
	}
}

func asked(ts *testscript.TestScript, neg bool, args []string) {
	if got := strconv.Itoa(len(hitsOf(ts, args[0]))); got != args[1] {
		ts.Fatalf("the site saw %s %s times", args[0], got)
	}
}

func named(ts *testscript.TestScript, neg bool, args []string) {
	hits := hitsOf(ts, args[0])
	if len(hits) == 0 {
		ts.Fatalf("the site never saw %s", args[0])
	}
	for _, hit := range hits {
		if hit.Agent != args[1] {
			ts.Fatalf("the site saw %s asked for by %q", args[0], hit.Agent)
		}
	}
}

// hitsOf are the requests for a URL that the origin saw. The test's own, which
// direct sends, are not among them.
func hitsOf(ts *testscript.TestScript, address string) []testkit.Hit {
	u, err := url.Parse(address)
	ts.Check(err)
	var hits []testkit.Hit
	for _, hit := range tell(ts).origin.HitsOf(u.Hostname(), u.RequestURI()) {
		if hit.Scheme == u.Scheme && hit.Agent != directAgent {
			hits = append(hits, hit)
		}
	}
	return hits
}

// directAgent is what direct calls itself.
const directAgent = "direct/1.0"

func background(ts *testscript.TestScript, neg bool, args []string) {
	if pid := tell(ts).holder(ts.Getenv("HEED_STATE")); (pid == 0) != neg {
		ts.Fatalf("the state directory's heed is process %d", pid)
	}
}

// holder is the process that holds a state directory's lock; 0 when none does.
func (s *story) holder(state string) int {
	file, err := os.Open(filepath.Join(state, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	must.OK(s.t, err)
	defer file.Close()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return 0 // it was free, and is again when the file is closed
	}
	var held struct{ PID int }
	must.OK(s.t, json.NewDecoder(file).Decode(&held), "the lock does not say who holds it")
	return held.PID
}

// replays has every decision of the story judged again: each must come out the
// same.
func (s *story) replays() {
	record := filepath.Join(s.state, "audit.db")
	if _, err := os.Stat(record); err != nil {
		return // nothing was decided
	}
	out, err := exec.Command(testkit.Binary(s.t), "audit", "replay", record).CombinedOutput()
	status := (*exec.ExitError)(nil)
	must.True(s.t, !errors.As(err, &status) || status.ExitCode() != 1, "not every decision comes out again:\n%s", out)
}

// endBackground ends the heeds that `heed run` left behind and waits until
// they are gone, so that nothing of a story outlives it.
func (s *story) endBackground() {
	states := must.Get(filepath.Glob(s.state + "*"))(s.t)
	for _, state := range states {
		pid := s.holder(state)
		if pid == 0 || s.heed != nil && pid == s.heed.Pid() {
			continue
		}
		s.end(pid, filepath.Join(state, "lock"))
		log, err := os.ReadFile(filepath.Join(state, "background.log"))
		must.OK(s.t, err, "the background heed's log")
		must.Lack(s.t, string(log), "DATA RACE", "the background heed has a data race")
	}
}

// end ends a process and waits until it has given its lock back.
func (s *story) end(pid int, lock string) {
	file := must.Get(os.Open(lock))(s.t)
	defer file.Close()
	must.OK(s.t, syscall.Kill(pid, syscall.SIGTERM), "ending the background heed")
	must.OK(s.t, syscall.Flock(int(file.Fd()), syscall.LOCK_EX), "waiting for its end")
}
