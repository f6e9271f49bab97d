package command_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// laboratory is the sites of a comparison, of several kinds, and where they are.
type laboratory struct {
	*testing.T
	origin *testkit.Origin
	dir    string
	urls   []string
}

// kinds are the sites' answers to the request for robots.txt, as nginx has them, and whether
// a crawler of some other name than OneBot gets a page there under the same rules: a file
// that was given to OneBot alone says nothing about others.
var kinds = []struct{ name, robots, config, other string }{
	{"rules", "User-agent: *\nDisallow: /private\n\nUser-agent: twobot\nDisallow: /second\n", "", "by the file"},
	{"none", "", "", "allow"},
	{"denied", "", "location = /robots.txt { return 403; }", "allow"},
	{"login", "", "location = /robots.txt { return 401; }", "allow"},
	{"failing", "", "location = /robots.txt { return 503; }", "unknown"},
	{"named", "User-agent: *\nDisallow: /private\n", `location = /robots.txt { if ($http_user_agent !~ OneBot) { return 403; } }`, "unknown"},
}

func newLaboratory(t *testing.T, number int) *laboratory {
	l := &laboratory{T: t, dir: t.TempDir()}
	paths := []string{"/page", "/private/page", "/second/page"}
	var sites []testkit.Site
	for i := range number {
		k := kinds[i%len(kinds)]
		site := testkit.Site{Name: fmt.Sprintf("%s%d.test", k.name, i), Robots: k.robots, Config: k.config, Files: map[string]string{}}
		for _, path := range paths {
			site.Files[path] = "the page\n"
			l.urls = append(l.urls, "http://"+site.Name+path)
		}
		sites = append(sites, site)
	}
	l.origin = testkit.NewOrigin(t, sites...)
	testkit.Write(t, filepath.Join(l.dir, "proxy.toml"), l.origin.Config(""))
	testkit.Write(t, filepath.Join(l.dir, "crawl.sh"), `for url in $(cat urls); do curl -s -o page -A "$1" -w "%{http_code} $url\n" $url; done`)
	testkit.Write(t, filepath.Join(l.dir, "urls"), strings.Join(l.urls, "\n"))
	return l
}

// heed runs a command in the laboratory.
func (l *laboratory) heed(args ...string) string {
	l.Helper()
	cmd := exec.Command(testkit.Binary(l), args...)
	cmd.Dir = l.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.dir, "HEED_STATE=" + filepath.Join(l.dir, "state"), testkit.RaceOptions}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	must.Need(l, err == nil || cmd.ProcessState.ExitCode() <= 1,
		"heed %s: %v\n%s%s", strings.Join(args, " "), err, out, &errs)
	return string(out)
}

// crawl runs a crawler under a name and returns the status of each URL, by its own account.
func (l *laboratory) crawl(agent, record string, flags ...string) map[string]string {
	l.Helper()
	got := map[string]string{}
	args := append([]string{"run", "--quiet", "--audit", record}, flags...)
	for line := range strings.Lines(l.heed(append(args, "--", "sh", "crawl.sh", agent)...)) {
		status, url, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[url] = status
	}
	return got
}

// want returns the status of each URL for a crawler, by the test's own reading of the rules.
func (l *laboratory) want(agent string) map[string]string {
	want := map[string]string{}
	for _, url := range l.urls {
		site, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
		for _, k := range kinds {
			if !strings.HasPrefix(site, k.name) {
				continue
			}
			private, second := strings.HasPrefix(path, "private"), strings.HasPrefix(path, "second")
			switch {
			case k.other == "by the file" && agent == "TwoBot":
				want[url] = map[bool]string{true: "403", false: "200"}[second]
			case k.other == "by the file", k.name == "named" && agent == "OneBot":
				want[url] = map[bool]string{true: "403", false: "200"}[private]
			case k.other == "allow":
				want[url] = "200"
			default:
				want[url] = "503"
			}
		}
	}
	return want
}

// count returns how often each value occurs.
func count(of map[string]string) map[string]int {
	n := map[string]int{}
	for _, v := range of {
		n[v]++
	}
	return n
}

// Two crawlers are compared under the rules of the first, while sites change theirs: every
// number of heed is that of the crawlers and of the sites, also for the sites whose
// robots.txt needs a login, and replay under the second name expects what came.
func TestTwoCrawlersUnderTheSameRules(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, map[bool]int{true: 60, false: 30}[testkit.Full])
	got, want := l.crawl("OneBot/1.0", "one.db"), l.want("OneBot")
	must.Need(t, maps.Equal(got, want), "the first: %v, not %v", got, want)
	asked := len(l.origin.Hits())
	for i, k := range kinds { // the rules of today are others
		root := l.origin.Root(fmt.Sprintf("%s%d.test", k.name, i))
		testkit.Write(t, filepath.Join(root, "robots.txt"), "User-agent: *\nDisallow: /\n")
	}
	for _, agent := range []string{"OneBot/2.0", "TwoBot/1.0"} { // other versions of a program are that program
		name, _, _ := strings.Cut(agent, "/")
		want := l.want(name)
		if got := l.crawl(agent, name+".db", "--policies", "one.db"); !maps.Equal(got, want) {
			for url, status := range want {
				must.Equal(t, got[url], status, "%s: %s", agent, url)
			}
		}
		l.sameCounts(agent, name+".db", want, asked)
		asked = len(l.origin.Hits())
	}
	for _, k := range []string{"denied2", "login3"} {
		why := l.heed("why", "-f", "TwoBot.db", "http://"+k+".test/private/page")
		must.True(t, strings.Contains(why, "fetched as OneBot/1.0") && strings.Contains(why, "counts for every client"),
			"under whose name the site was asked is not in it:\n%s", why)
	}
}

// sameCounts compares the record of a crawler with its own account, with the requests that
// the sites have seen since, and with what replay expects of the first record.
func (l *laboratory) sameCounts(agent, record string, want map[string]string, asked int) {
	l.Helper()
	own := count(want)
	recorded := map[string]string{}
	for line := range strings.Lines(l.heed("audit", "export", "--jsonl", record)) {
		var e struct{ URL, Verdict, Reason string }
		must.OK(l, json.Unmarshal([]byte(line), &e))
		recorded[e.URL] = map[string]string{"allow ": "200", "refuse rule": "403", "refuse robots-unreachable": "503"}[map[bool]string{true: "allow ", false: "refuse " + e.Reason}[e.Verdict == "allow"]]
	}
	got := count(recorded)
	must.True(l, maps.Equal(got, own), "%s: recorded %v, its own account is %v", agent, got, own)
	seen := map[string]int{}
	for _, hit := range l.origin.Hits()[asked:] {
		must.True(l, hit.Target != "/robots.txt" && hit.Via != "" && hit.Agent == agent, "%s: the site saw %+v", agent, hit)
		seen["http://"+hit.Host+hit.Target]++
	}
	for url, status := range want {
		must.True(l, (status == "200") == (seen[url] == 1),
			"%s: %s was seen %d times, and is %s", agent, url, seen[url], status)
	}
	var r struct {
		If struct {
			Judged, Refused int
			Allowed         int `json:"would_be_allowed"`
			Refuse          int `json:"would_be_refused"`
		}
	}
	must.OK(l, json.Unmarshal([]byte(l.heed("audit", "replay", "--json", "--agent", agent, "one.db")), &r))
	l.sameStudy(agent, want)
	first := l.want("OneBot")
	allowed, refused, judged := 0, 0, 0
	for url, status := range want {
		if strings.Contains(url, "named") && status == "503" {
			continue // the first record has no file for this name
		}
		judged++
		switch was := first[url]; {
		case was == "200" && status != "200":
			refused++
		case was != "200" && status == "200":
			allowed++
		}
	}
	must.True(l, r.If.Judged == judged && r.If.Allowed == allowed && r.If.Refuse == refused,
		"%s: replay says %+v; judged %d, allowed %d, refused %d", agent, r.If, judged, allowed, refused)
}

// sameStudy compares what study counts, by the files of the first record, of the log of a
// crawler that would have made every request.
func (l *laboratory) sameStudy(agent string, want map[string]string) {
	l.Helper()
	var log strings.Builder
	at := time.Now().UTC().Add(time.Second).Format(time.RFC3339)
	for _, url := range l.urls {
		host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
		fmt.Fprintf(&log, "{\"time\":%q,\"client\":\"192.0.2.1\",\"host\":%q,\"request\":\"GET /%s HTTP/1.1\",\"status\":200,\"user_agent\":%q}\n", at, host, path, agent)
	}
	tables := filepath.Join(l.dir, "tables of "+strings.ReplaceAll(agent, "/", " "))
	l.heed("study", "--robots", "one.db", "--csv", tables, testkit.Write(l, tables+".log", log.String()))
	file := must.Get(os.Open(filepath.Join(tables, "obedience.csv")))(l)
	defer file.Close()
	rows := must.Get(csv.NewReader(file).ReadAll())(l)
	sums := map[string]int{}
	for _, row := range rows[1:] {
		for i, column := range rows[0] {
			n, _ := strconv.Atoi(row[i]) // other columns are not compared
			sums[column] += n
		}
	}
	own := map[string]int{}
	for url, status := range want {
		site := strings.TrimPrefix(url, "http://")
		switch {
		case strings.HasPrefix(site, "failing"):
			own["unreachable"]++
		case strings.HasPrefix(site, "named") && status == "503":
			own["unknown"]++
		case status == "403":
			own["not_allowed"]++
		case strings.HasPrefix(site, "rules"), strings.HasPrefix(site, "named"):
			own["allowed"]++
		default:
			own["no_file"]++
		}
	}
	for column, n := range own {
		if _, known := sums[column]; !known || sums[column] != n {
			l.Errorf("%s: study counts %d as %s, its own count is %d: %v", agent, sums[column], column, n, sums)
		}
	}
}
