package command_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// siteKinds are the robots.txt files of the sites of a lab, and which pages they do not
// allow to PlanBot.
var siteKinds = []struct {
	status  int
	text    string
	refuses func(path string) bool
}{
	{404, "", func(string) bool { return false }},
	{200, "User-agent: *\nDisallow: /private\n", func(p string) bool { return strings.HasPrefix(p, "/private") }},
	{200, "User-agent: *\nDisallow: /*.pdf$\nDisallow: /private\nAllow: /private/open\n", func(p string) bool {
		return strings.HasSuffix(p, ".pdf") || strings.HasPrefix(p, "/private") && !strings.HasPrefix(p, "/private/open")
	}},
	{200, "User-agent: planbot\nDisallow: /a/\nCrawl-delay: 2\n\nUser-agent: *\nDisallow: /\n", func(p string) bool { return strings.HasPrefix(p, "/a/") }},
	{200, "User-agent: *\nDisallow: /\n", func(string) bool { return true }},
	{503, "", func(string) bool { return true }},
	{200, "Crawl-delay: 10\n", func(string) bool { return false }},
	{200, "", func(string) bool { return false }},
	{302, "/rules", func(p string) bool { return strings.HasPrefix(p, "/b/") }}, // to rules
	{200, "<html>not found</html>", func(string) bool { return false }},
}

// planPaths are the pages of a site, by number.
var planPaths = []string{"/private/%d", "/private/open/%d", "/doc-%d.pdf", "/a/%d", "/b/%d?x=1", "/c/%d", "/%d/private"}

// siteLab is sites at addresses of 127.0.0.0/8, one kind after the other.
type siteLab struct {
	sites []string // scheme, address and port
	asked []atomic.Int32
}

func newSiteLab(t *testing.T, n int) *siteLab {
	l := &siteLab{asked: make([]atomic.Int32, n)}
	number := map[string]int{}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := number[r.Host]
		kind := &siteKinds[i%len(siteKinds)]
		switch {
		case r.URL.Path == kind.text:
			fmt.Fprint(w, "User-agent: *\nDisallow: /b/\n")
		case r.URL.Path != "/robots.txt":
			t.Errorf("a page was requested: %s", r.URL)
		default:
			l.asked[i].Add(1)
			if kind.status == http.StatusFound {
				http.Redirect(w, r, kind.text, kind.status)
				return
			}
			w.WriteHeader(kind.status)
			io.WriteString(w, kind.text)
		}
	})}
	var listeners []net.Listener
	for i := range n {
		at := must.Get(net.Listen("tcp", fmt.Sprintf("127.5.%d.%d:0", i/250, i%250+1)))(t)
		listeners = append(listeners, at)
		number[at.Addr().String()] = i
		l.sites = append(l.sites, "http://"+at.Addr().String())
	}
	t.Cleanup(func() { server.Close() })
	for _, at := range listeners {
		go server.Serve(at)
	}
	return l
}

// pages calls each with every page, the sites in turn, and whether it is refused.
func (l *siteLab) pages(ofEach int, each func(site int, url string, refused bool)) {
	for n := range ofEach {
		for i, site := range l.sites {
			path := fmt.Sprintf(planPaths[n%len(planPaths)], n)
			each(i, site+path, siteKinds[i%len(siteKinds)].refuses(path))
		}
	}
}

// planned is what heed plan prints with --json of a site, and at the end.
type planned struct {
	Site                    string
	Pages, Allowed, Refused int64
	Requested               int64
	Seconds                 float64
	Total                   []struct{ Counts map[string]int64 }
	Sites                   int64
	NotJudged               int64 `json:"not_judged"`
	Interrupted             bool
}

// sums returns the pages and the refused pages of each site in the output of plan --json, and
// its last line.
func sums(t *testing.T, out []byte) (bySite map[string][2]int64, total planned) {
	t.Helper()
	bySite = map[string][2]int64{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p planned
		err := d.Decode(&p)
		must.Need(t, err == nil, "%v: %.300s", err, out)
		if p.Total != nil {
			return bySite, p
		}
		_, twice := bySite[p.Site]
		must.True(t, !twice && p.Allowed+p.Refused == p.Pages, "%+v, twice %v", p, twice)
		bySite[p.Site] = [2]int64{p.Pages, p.Refused}
	}
	t.Fatalf("there is no total: %.300s", out)
	return nil, total
}

// status returns the exit status of a command, and what it printed.
func statusOf(t *testing.T, cmd *exec.Cmd) (status int, out []byte) {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	must.Need(t, cmd.ProcessState != nil && errs.Len() == 0, "%v\n%s", err, &errs)
	return cmd.ProcessState.ExitCode(), out
}

// The sums of a plan are those of heed check --batch and of a count by hand, and each site is
// asked once: in this process, and by the running heed. In full (testkit.Full), 1,000,000
// pages of 1,000 sites.
func TestPlan_SumsAreThoseOfCheck(t *testing.T) {
	t.Parallel()
	sites, ofEach := 100, 200
	if testkit.Full {
		sites, ofEach = 1000, 1000
	}
	l, p := newSiteLab(t, sites), newPlace(t)
	list := must.Get(os.Create(filepath.Join(p.dir, "list")))(t)
	defer list.Close()
	lines, want := bufio.NewWriter(list), map[string][2]int64{}
	l.pages(ofEach, func(i int, url string, refused bool) {
		fmt.Fprintln(lines, url)
		n := want[l.sites[i]]
		if n[0]++; refused {
			n[1]++
		}
		want[l.sites[i]] = n
	})
	must.OK(t, lines.Flush())
	same := func(what string, got map[string][2]int64, times int32) {
		t.Helper()
		for i, site := range l.sites {
			if got[site] != want[site] {
				t.Errorf("%s: %s (kind %d) has %d pages and refused ones, want %d", what, site, i%len(siteKinds), got[site], want[site])
			}
			failing := siteKinds[i%len(siteKinds)].status == http.StatusServiceUnavailable // and is asked again after a minute
			if n := l.asked[i].Load(); n < times || n > times && !failing {
				t.Errorf("%s: %s (kind %d) was asked %d times", what, site, i%len(siteKinds), n)
			}
		}
	}
	plan := func(what string, times int32) {
		t.Helper()
		status, out := statusOf(t, p.heed("plan", "--json", "--agent", "PlanBot/1.0", "list"))
		got, total := sums(t, out)
		same(what, got, times)
		must.True(t, status == 1 && total.Total[0].Counts["allowed"] != 0 && total.NotJudged == 0 && total.Sites == int64(sites),
			"%s: status %d, %+v", what, status, total)
	}
	plan("plan", 1)
	same("check --batch", l.batch(t, p, ofEach), 2)
	testkit.Start(t, testkit.Options{State: p.state})
	plan("plan, by a running heed", 3)
	plan("plan, by its memory", 3)
}

// batch returns the sums that heed check --batch has.
func (l *siteLab) batch(t *testing.T, p *place, ofEach int) map[string][2]int64 {
	t.Helper()
	cmd := p.heed("check", "--batch")
	r, w := io.Pipe()
	go func() {
		lines := bufio.NewWriter(w)
		l.pages(ofEach, func(_ int, url string, _ bool) { fmt.Fprintf(lines, "{\"agent\":\"PlanBot/1.0\",\"url\":%q}\n", url) })
		w.CloseWithError(lines.Flush())
	}()
	cmd.Stdin = r
	_, out := statusOf(t, cmd)
	got := map[string][2]int64{}
	for line := range bytes.Lines(out) {
		var a struct {
			URL     string
			Allowed bool
		}
		must.OK(t, json.Unmarshal(line, &a))
		site := strings.Join(strings.SplitN(a.URL, "/", 4)[:3], "/")
		n := got[site]
		if n[0]++; !a.Allowed {
			n[1]++
		}
		got[site] = n
	}
	return got
}

// Ctrl-C prints what was judged so far while a site does not answer.
func TestPlan_AnInterruptPrintsWhatThereIs(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	gone := make(chan struct{})
	silent := http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(hangs); <-gone })}
	at := must.Get(net.Listen("tcp", "127.6.0.1:0"))(t)
	go silent.Serve(at)
	defer silent.Close()
	defer close(gone)
	l, p := newSiteLab(t, 10), newPlace(t)
	cmd := p.heed("plan", "--json", "--agent", "PlanBot/1.0")
	in := must.Get(cmd.StdinPipe())(t)
	var out bytes.Buffer
	cmd.Stdout = &out
	must.OK(t, cmd.Start())
	defer cmd.Process.Kill()
	l.pages(50, func(_ int, url string, _ bool) { fmt.Fprintln(in, url) })
	fmt.Fprintf(in, "http://%s/\n", at.Addr())
	in.Close()
	<-hangs
	must.OK(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // its status follows
	got, total := sums(t, out.Bytes())
	judged := int64(0)
	for _, n := range got {
		judged += n[0]
	}
	if status := cmd.ProcessState.ExitCode(); status != 130 || !total.Interrupted || total.NotJudged == 0 || judged+total.NotJudged != 501 {
		t.Errorf("status %d, %d judged, %+v", status, judged, total)
	}
}

// An index of sitemaps that never end holds a plan no longer than --sitemap-time. What is
// waited for is on the terminal; what was not read is counted, and the rest is planned.
func TestPlan_SitemapsOfASiteHaveABudget(t *testing.T) {
	t.Parallel()
	at := must.Get(net.Listen("tcp", "127.6.0.2:0"))(t)
	var asked atomic.Int32
	site := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/index.xml":
			io.WriteString(w, "<sitemapindex>")
			for i := range 200 {
				fmt.Fprintf(w, "<sitemap><loc>http://%s/map%d.xml</loc></sitemap>", at.Addr(), i)
			}
			io.WriteString(w, "</sitemapindex>")
		default:
			asked.Add(1)
			for r.Context().Err() == nil {
				io.WriteString(w, " ")
				http.NewResponseController(w).Flush()
				testkit.Delay(50 * time.Millisecond)
			}
		}
	})}
	go site.Serve(at)
	defer site.Close()
	person, program := terminal(t)
	cmd := newPlace(t).heed("plan", "--agent", "PlanBot/1.0", "--sitemap-time", "3s", "--sitemap", fmt.Sprintf("http://%s/index.xml", at.Addr()), "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf("http://%s/a\nhttp://%[1]s/b\n", at.Addr()))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, program
	must.OK(t, cmd.Start())
	program.Close()
	screen, _ := io.ReadAll(person) // how a terminal without programs ends is an error
	_ = cmd.Wait()                  // its status follows
	status := cmd.ProcessState.ExitCode()
	must.True(t, status == 1 && asked.Load() == 1, "status %d, %d sitemaps were requested", status, asked.Load())
	want := fmt.Sprintf("waiting for http://%s/map0.xml for 1s", at.Addr())
	must.True(t, strings.Contains(string(screen), want), "the terminal has no %q:\n%s", want, screen)
	for _, want := range []string{"takes longer than --sitemap-time", "200 ", " 2 "} {
		must.Contain(t, out.String(), want)
	}
}

// A crawl refuses as many pages as were planned, and requests as many; in the time that was
// planned, which is printed: no verdict depends on it. In full, delays are a hundred times as
// long.
func TestPlan_ACrawlIsAsPlanned(t *testing.T) {
	t.Parallel()
	delays := []string{"0.01", "0.02", "0.03"}
	if testkit.Full {
		delays = []string{"0.2", "0.5", "1"}
	}
	var seen [3]atomic.Int64
	p, list := newPlace(t), ""
	for i, delay := range delays {
		at := must.Get(net.Listen("tcp", fmt.Sprintf("127.7.0.%d:0", i+1)))(t)
		site := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				fmt.Fprintf(w, "User-agent: *\nCrawl-delay: %s\nDisallow: /*7\n", delay)
				return
			}
			seen[i].Add(1)
		})}
		go site.Serve(at)
		defer site.Close()
		for n := range 100 {
			list += fmt.Sprintf("http://%s/%d\n", at.Addr(), n)
		}
	}
	h := testkit.Start(t, testkit.Options{State: p.state})
	cmd := p.heed("plan", "--json", "--agent", "PlanBot/1.0")
	cmd.Stdin = strings.NewReader(list)
	_, out := statusOf(t, cmd)
	bySite := map[string]planned{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var line planned
		must.OK(t, d.Decode(&line))
		bySite[line.Site] = line
	}
	var busy sync.WaitGroup
	refused, took := [3]int64{}, [3]time.Duration{}
	pages := strings.Split(strings.TrimSpace(list), "\n")
	for i := range 3 {
		client := client(t, h)
		busy.Go(func() {
			begun := time.Now()
			for _, page := range pages[100*i : 100*(i+1)] {
				req, _ := http.NewRequest(http.MethodGet, page, nil)
				req.Header.Set("User-Agent", "PlanBot/1.0")
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				if resp.Body.Close(); resp.StatusCode == http.StatusForbidden {
					refused[i]++
				}
			}
			took[i] = time.Since(begun)
		})
	}
	busy.Wait()
	for i, delay := range delays {
		was := bySite[strings.Join(strings.SplitN(pages[100*i], "/", 4)[:3], "/")]
		t.Logf("delay %s s: planned are %d refused, %d requests in %.1f s; there were %d and %d in %.1f s", delay, was.Refused, was.Requested, was.Seconds, refused[i], seen[i].Load(), took[i].Seconds())
		must.True(t, was.Refused == 19 && refused[i] == was.Refused && seen[i].Load() == was.Requested,
			"delay %s: planned %+v, refused %d, requested %d", delay, was, refused[i], seen[i].Load())
	}
}
