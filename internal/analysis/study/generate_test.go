package study_test

import (
	"bufio"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/analysis/study"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// truth is what a robot of the generated traffic did.
type truth struct {
	requests, asks, private int64
	gaps, kept              int64 // between requests other than for robots.txt
	asksFirst               bool
	byAddress               map[string]int64

	last, first time.Time
	other       bool
}

// behaviour is how a client of the generated traffic acts.
type behaviour struct {
	token, userAgent string
	addresses        []string
	pause            func(*rand.Rand) time.Duration
	private          float64       // share of its requests for what robots.txt disallows
	askEvery         time.Duration // 0: never
	askAfter         int           // requests before the first ask
	impostors        float64       // share of its requests from other addresses
	assets           bool
}

const generatedRules = "User-agent: *\nDisallow: /private/\nCrawl-delay: 10\n"

func between(from, to time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return (from + time.Duration(r.Int64N(int64(to-from)+1))).Truncate(time.Second)
	}
}

// population is the clients: robots of known behaviour, and people.
func population(people int) (all []*behaviour) {
	all = []*behaviour{
		{token: "politebot", userAgent: "PoliteBot/1.0 (+https://bots.example/polite)", addresses: []string{"192.0.2.1"}, pause: between(10*time.Second, 40*time.Second), askEvery: 12 * time.Hour},
		{token: "greedybot", userAgent: "Mozilla/5.0 (compatible; GreedyBot/2.0; +https://bots.example/greedy)", addresses: []string{"192.0.2.2", "192.0.2.3"}, pause: between(0, 12*time.Second), private: 0.3, askEvery: 100 * time.Hour},
		{token: "neverbot", userAgent: "NeverBot", addresses: []string{"2001:db8::9"}, pause: between(5*time.Second, 15*time.Second), private: 0.1},
		{token: "latebot", userAgent: "LateBot/0.1", addresses: []string{"192.0.2.5"}, pause: between(20*time.Second, 30*time.Second), askEvery: 30 * time.Hour, askAfter: 7},
		{token: "googlebot", userAgent: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", addresses: []string{"198.51.100.7"}, pause: between(10*time.Second, 20*time.Second), askEvery: 24 * time.Hour, impostors: 0.05},
	}
	for i := range people {
		all = append(all, &behaviour{
			userAgent: fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko/20100101 Firefox/%[1]d.0", 100+i%40),
			addresses: []string{fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)}, pause: between(0, 60*time.Second), assets: true, private: 0.01,
		})
	}
	return all
}

// visit is the next request of a client.
type visit struct {
	at    time.Time
	b     *behaviour
	asked time.Time
}

type visits []*visit

func (v visits) Len() int           { return len(v) }
func (v visits) Less(i, j int) bool { return v[i].at.Before(v[j].at) }
func (v visits) Swap(i, j int)      { v[i], v[j] = v[j], v[i] }
func (v *visits) Push(x any)        { *v = append(*v, x.(*visit)) }
func (v *visits) Pop() any {
	last := (*v)[len(*v)-1]
	*v = (*v)[:len(*v)-1]
	return last
}

// generate writes lines of traffic in the combined format to path, and returns what each
// robot did.
func generate(t testing.TB, path string, lines, people int) map[string]*truth {
	t.Helper()
	f := must.Get(os.Create(path))(t)
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	all := map[string]*truth{}
	start := time.Date(2025, 2, 12, 0, 0, 0, 0, time.UTC)
	var next visits
	for _, b := range population(people) {
		next = append(next, &visit{at: start.Add(time.Duration(r.IntN(3600)) * time.Second), b: b})
	}
	heap.Init(&next)
	for range lines {
		v := next[0]
		x := all[v.b.token]
		if x == nil {
			x = &truth{byAddress: map[string]int64{}}
			all[v.b.token] = x
		}
		target := v.target(r, x)
		address := v.b.addresses[r.IntN(len(v.b.addresses))]
		if r.Float64() < v.b.impostors {
			address = fmt.Sprintf("203.0.113.%d", 1+r.IntN(200))
			target = "/private/" + fmt.Sprint(r.IntN(1000))
		}
		x.note(v, target, address)
		fmt.Fprintf(w, "%s - - [%s] \"GET %s HTTP/1.1\" 200 %d \"-\" \"%s\"\n", address, v.at.Format("02/Jan/2006:15:04:05 -0700"), target, 200+r.IntN(5000), v.b.userAgent)
		v.at = v.at.Add(v.b.pause(r))
		heap.Fix(&next, 0)
	}
	must.OK(t, w.Flush())
	return all
}

// target returns what a client requests.
func (v *visit) target(r *rand.Rand, x *truth) string {
	switch {
	case v.b.askEvery > 0 && x.requests >= int64(v.b.askAfter) && (v.asked.IsZero() || v.at.Sub(v.asked) >= v.b.askEvery):
		v.asked = v.at
		return "/robots.txt"
	case r.Float64() < v.b.private:
		return fmt.Sprintf("/private/page-%d?from=%d", r.IntN(5000), r.IntN(100))
	case v.b.assets && r.IntN(2) == 0:
		return fmt.Sprintf("/assets/style-%d.css", r.IntN(50))
	}
	return fmt.Sprintf("/articles/%d/a-page-about-something-%d.html", r.IntN(50), r.IntN(20000))
}

func (x *truth) note(v *visit, target, address string) {
	x.requests++
	x.byAddress[address]++
	if target == "/robots.txt" {
		if x.asks++; x.asks == 1 {
			x.first, x.asksFirst = v.at, !x.other
		}
		return
	}
	if strings.HasPrefix(target, "/private/") {
		x.private++
	}
	if x.other {
		x.gaps++
		if v.at.Sub(x.last) >= 10*time.Second {
			x.kept++
		}
	}
	x.last, x.other = v.at, true
}

// generatedPolicies are the rules of the generated site.
func generatedPolicies(t testing.TB) *study.Policies {
	t.Helper()
	file := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), generatedRules)
	return must.Get(study.LoadPolicies(t.Context(), file, ""))(t)
}

func TestHeed_TheTablesRecoverWhatTheRobotsOfAGeneratedLogDid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	all := generate(t, log, 12_000, 12)
	out := must.Get(study.NewDirectory(filepath.Join(dir, "tables")))(t)
	r := read(t, study.Options{Policies: generatedPolicies(t), Rows: out.Row}, log)
	must.OK(t, out.Close(r))
	for token, x := range all {
		if token == "" {
			continue
		}
		before := map[bool]string{true: "yes", false: "no"}[x.asksFirst]
		if x.asks == 0 {
			before = "never"
		}
		for table, want := range map[string]string{
			"token requests asked before @ asked":         fmt.Sprintf("%s | %d | %d | %s", token, x.requests, x.asks, before),
			"token robots not_allowed judged @ obedience": fmt.Sprintf("%s | %d | %d | %d", token, x.asks, x.private, x.requests-x.asks),
			"token asked_s gaps limited kept @ delays":    fmt.Sprintf("%s | 10 | %d | %d | %d", token, x.gaps, x.gaps, x.kept),
			"token addresses @ agents":                    fmt.Sprintf("%s | %d", token, len(x.byAddress)),
		} {
			columns, name, _ := strings.Cut(table, " @ ")
			got := strings.Split(values(t, r, name, columns), "\n")
			must.True(t, slices.Contains(got, want), "%s: %s has not %q, but\n%s", token, name, want, strings.Join(got, "\n"))
		}
	}
	google := all["googlebot"]
	rest := google.requests - google.byAddress["198.51.100.7"]
	want := fmt.Sprintf("googlebot | dominant | %d | 0\ngooglebot | rest | %d | %d\n", google.byAddress["198.51.100.7"], rest, rest)
	got := values(t, r, "impostors", "token side requests not_allowed")
	must.True(t, rest != 0 && got == want, "the impostors are\n%swant\n%s", got, want)
	compareSQL(t, filepath.Join(dir, "tables"), r)
}
