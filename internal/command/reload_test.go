package command_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

const (
	reloads      = 100
	reloadAsking = 8 // clients at a time
)

// reloadRequests is how many requests are sent meanwhile; all of them with
//
//	HEED_TEST_FULL=1 go test -count=1 ./internal/command -run TestReloadUnderLoad -v
func reloadRequests() int {
	if testkit.Full {
		return 50_000
	}
	return 5_000
}

// verdicts are what a configuration makes of a path.
type verdicts map[string]string

var (
	verdictsA = verdicts{"/a": "refuse", "/b": "allow"}
	verdictsB = verdicts{"/a": "allow", "/b": "refuse"}
)

// reloadStory is a heed under load whose settings are A or B.
type reloadStory struct {
	*testing.T
	heed  *testkit.Heed
	texts map[string]verdicts // by text of the settings

	asked atomic.Int64
	turns chan struct{} // one for each reload, spread over the run
	got   sync.Map      // "PATH STATUS" to *atomic.Int64

	mu       sync.Mutex
	by       map[string]verdicts // by the hash of the settings
	recorded map[string]int64    // "PATH STATUS"
	wrong    []string            // records that their settings do not explain
	lines    []testkit.Record
}

// A hundred times the settings are replaced under load, by others that say the
// opposite and now and then reach sites another way. No request fails, and each
// record names the settings that explain its verdict.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	origin := testkit.NewOrigin(t, testkit.Site{
		Name: "site.test", Robots: "User-agent: *\nDisallow: /a\nDisallow: /b\n", Files: map[string]string{"/a": "a", "/b": "b"},
	})
	s := &reloadStory{T: t, turns: make(chan struct{}, reloads), texts: map[string]verdicts{}, by: map[string]verdicts{}, recorded: map[string]int64{}}
	var texts []string
	for _, timeout := range []string{"10m", "9m"} {
		for _, v := range []verdicts{verdictsA, verdictsB} {
			texts = append(texts, reloadSettings(origin, timeout, v))
			s.texts[texts[len(texts)-1]] = v
		}
	}
	s.heed = testkit.Start(t, testkit.Options{Config: texts[0], EachLine: s.line})
	s.reload(texts[0])
	done := make(chan struct{})
	go s.load(done)
	for i := range reloads {
		select {
		case <-s.turns:
		case <-done: // the last ones, of a slow machine
		}
		s.reload(texts[[]int{1, 0, 1, 2, 3, 0}[i%6]])
	}
	<-done
	s.heed.Signal(os.Interrupt)
	s.heed.Exit()
	s.compare()
}

func reloadSettings(o *testkit.Origin, timeout string, v verdicts) string {
	allow, refuse := "/a", "/b"
	if v["/a"] == "refuse" {
		allow, refuse = refuse, allow
	}
	text := strings.Replace(o.Config(""), "[upstream]\n", fmt.Sprintf("[upstream]\nresponse_header_timeout = %q\n", timeout), 1)
	return text + fmt.Sprintf("[[host]]\nmatch = [\"site.test\"]\nallow = [%q]\nrefuse = [%q]\nreason = \"agreed\"\nexpires = 2199-01-01\n", allow, refuse)
}

// reload puts the settings in force and learns their hash.
func (s *reloadStory) reload(text string) {
	s.Helper()
	must.OK(s, os.WriteFile(s.heed.File, []byte(text), 0o600))
	cmd := exec.Command(testkit.Binary(s), "reload")
	cmd.Env = append(os.Environ(), "HEED_STATE="+s.heed.State)
	out, err := cmd.CombinedOutput()
	hash := regexp.MustCompile(`in force.* \(([0-9a-f]{12})\)`).FindSubmatch(out)
	must.Need(s, err == nil && hash != nil, "reload: %v\n%s", err, out)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[string(hash[1])] = s.texts[text]
}

// load sends the requests, in plain and inside tunnels.
func (s *reloadStory) load(done chan<- struct{}) {
	defer close(done)
	var wg sync.WaitGroup
	for i := range reloadAsking {
		wg.Go(func() { s.client([]string{"http", "https"}[i%2]) })
	}
	wg.Wait()
}

func (s *reloadStory) client(scheme string) {
	through := &url.URL{Scheme: "http", Host: s.heed.Addr}
	transport := &http.Transport{Proxy: http.ProxyURL(through), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // heed's CA is not what is tested
	defer transport.CloseIdleConnections()
	for i := range reloadRequests() / reloadAsking {
		path := []string{"/a", "/b"}[i%2]
		status, err := answered(s.Context(), transport, fmt.Sprintf("%s://site.test%s?%d", scheme, path, i)) // who asks for one refused address all the time is slowed
		if err != nil {
			s.Errorf("%s %s: %v", scheme, path, err)
			return
		}
		n, _ := s.got.LoadOrStore(fmt.Sprintf("%s %d", path, status), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		if s.asked.Add(1)%int64(reloadRequests()/reloads) == 0 {
			s.turns <- struct{}{}
		}
	}
}

// answered asks for a page, reads it and returns how it was answered.
func answered(ctx context.Context, t *http.Transport, address string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// line keeps a decision until all hashes are known.
func (s *reloadStory) line(line []byte) {
	var r testkit.Record
	if json.Unmarshal(line, &r) != nil {
		return // a line for people
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Text("msg") == "decision" && r.Text("method") == http.MethodGet {
		s.lines = append(s.lines, testkit.Record{"config": r.Text("config"), "verdict": r.Text("verdict"), "url": r.Text("url"), "status": float64(r.Number("status"))})
	}
}

// compare holds the record to the settings it names, and to what clients saw.
func (s *reloadStory) compare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	settings := map[string]int{}
	for _, r := range s.lines {
		u, _ := url.Parse(r.Text("url"))
		settings[r.Text("config")]++
		s.recorded[fmt.Sprintf("%s %d", u.Path, r.Number("status"))]++
		if want := s.by[r.Text("config")][u.Path]; want != r.Text("verdict") {
			s.wrong = append(s.wrong, fmt.Sprintf("%v, want %q", r, want))
		}
	}
	if len(s.wrong) > 0 {
		s.Errorf("%d of %d records are not explained by the settings they name, such as %s", len(s.wrong), len(s.lines), s.wrong[0])
	}
	must.True(s, len(s.lines) == reloadRequests() && len(settings) >= 2,
		"%d requests are recorded, under %v", len(s.lines), settings) // how many of them saw requests is the machine's to say
	for what, n := range s.recorded {
		got, ok := s.got.Load(what)
		must.True(s, ok && got.(*atomic.Int64).Load() == n,
			"%s: %d times in the record, %v in the clients' eyes", what, n, got)
	}
	s.Logf("%d requests under %v", len(s.lines), settings)
}
