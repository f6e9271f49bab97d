package bypass

import (
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// spellings is how many are generated for a full run; nine in ten spell a canary.
const spellings = 5600

// leastReach is the share of spellings that have to reach a canary when the
// server is asked directly: else they prove nothing about it.
const leastReach = 0.20

// seed makes the generated spellings the same in every run.
const seed = 20260901

// share is how many of the generated spellings are sent: one in 30, or all with
// HEED_TEST_FULL=1.
func share() int {
	if testkit.Full {
		return spellings
	}
	return spellings / 30
}

func TestMain(m *testing.M) { testkit.Main(m, 6) }

// No spelling, in any way to ask, brings back what robots.txt disallows.
func TestHeed_NoSpellingGetsRound(t *testing.T) {
	t.Parallel()
	probes := append(listed(t), generate(rand.New(rand.NewPCG(seed, 1)), share())...)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, s)
			found := r.reach(probes)
			var table strings.Builder
			fmt.Fprintf(&table, "%d spellings, %d of them by hand\n%s", len(probes), len(probes)-share(), heading)
			for _, w := range ways {
				table.WriteString(r.throughHeed(w, probes, found).row())
			}
			r.recordsAgree()
			t.Logf("\n%s", table.String())
		})
	}
}

// rig is one server with its witness behind a heed of its own.
type rig struct {
	t       *testing.T
	name    string // "nginx"
	site    string // "nginx.test"
	server  string // its own address
	witness *witness
	heed    *testkit.Heed
	roots   *x509.CertPool
	ca      *testkit.CA // of the site
	agents  atomic.Int64
	gateway string            // a proxy that asks heed
	squid   *testkit.Upstream // which asks heed; nil: heed is the proxy
}

// newRig starts a server, its witness and a heed, with lines of its configuration.
func newRig(t *testing.T, s server, settings ...string) *rig {
	t.Helper()
	r := &rig{t: t, name: s.name, site: s.name + ".test"}
	r.server = s.start(t, writeSite(t))
	ca := testkit.NewCA(t)
	r.ca = ca
	r.witness = newWitness(t, r.server, r.site, ca)
	r.heed = testkit.Start(t, testkit.Options{Config: fmt.Sprintf(`listen = "127.0.0.1:0"
%[6]s
[upstream]
ca_file = %[1]q
[upstream.resolve]
"%[2]s:80" = %[3]q
"%[2]s:443" = %[4]q
"free.test:80" = %[5]q
"free.test:443" = %[5]q
"%[2]s%[7]s" = %[3]q
"%[2]s%[8]s" = %[4]q
`, ca.File, r.site, r.witness.http, r.witness.https, startFree(t), strings.Join(settings, "\n"), portOf(r.witness.http), portOf(r.witness.https))})
	r.roots = x509.NewCertPool()
	pem := must.Get(os.ReadFile(r.heed.State + "/ca.pem"))(t)
	r.roots.AppendCertsFromPEM(pem)
	return r
}

// portOf returns the port of an address, after its colon.
func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':'):] }

func (r *rig) route(w way) route {
	switch {
	case w == direct:
		return route{way: direct, name: r.site, addr: r.server}
	case w == gateway:
		return route{way: direct, name: r.site, addr: r.gateway}
	case r.squid != nil && w == plain:
		return route{way: w, name: r.site, addr: r.squid.Addr, port: portOf(r.witness.http)[1:]}
	case r.squid != nil:
		return route{way: w, name: r.site, addr: r.squid.Addr, port: portOf(r.witness.https)[1:], roots: r.roots}
	}
	return route{way: w, name: r.site, addr: r.heed.Addr, roots: r.roots}
}

// agent is a User-Agent that no other request has. All of them are one robot
// to a robots.txt.
func (r *rig) agent() string { return fmt.Sprintf("Probe/%d", r.agents.Add(1)) }

// askAll asks for all targets over a few connections and hands each reply to
// take, from several goroutines.
func (r *rig) askAll(w way, probes []probe, take func(i int, agent string, got reply)) {
	r.t.Helper()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			a := r.route(w).asker()
			defer a.close()
			for i := int(next.Add(1)) - 1; i < len(probes); i = int(next.Add(1)) - 1 {
				agent := r.agent()
				got := a.ask(probes[i].target, agent)
				if got.unasked {
					r.t.Errorf("%s: no connection: %v", w, got.err)
					return
				}
				take(i, agent, got)
			}
		})
	}
	workers.Wait()
}

// reach asks the server directly and says which spellings gave it away.
func (r *rig) reach(probes []probe) (found []bool) {
	r.t.Helper()
	found = make([]bool, len(probes))
	var canaries, reached atomic.Int64
	r.askAll(direct, probes, func(i int, _ string, got reply) {
		if probes[i].open {
			found[i] = strings.Contains(got.text, pageToken)
			return
		}
		canaries.Add(1)
		if found[i] = got.leaks(); found[i] {
			reached.Add(1)
		}
	})
	if got := float64(reached.Load()) / float64(canaries.Load()); got < leastReach {
		r.t.Errorf("directly only %.0f %% of the spellings reach a canary: the grammar proves little here", 100*got)
	}
	return found
}

// count is what came of one way to one server.
type count struct {
	server                    string
	way                       way
	canaries, reach           int // spellings of canaries; those that give one directly
	leaks                     int
	refused, harmless         int // of the canaries' spellings; harmless: the server gives no canary for it
	open, openReach, openLost int // spellings of allowed pages; served directly; of these refused by heed
}

const heading = "server   way       canaries  reach directly  came back  refused  though harmless | allowed  reach directly  of these refused\n"

func (c count) row() string {
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
	return fmt.Sprintf("%-8s %-9s %8d %14.1f%% %10d %7.1f%% %15.1f%% | %7d %14.1f%% %16.1f%%\n",
		c.server, c.way, c.canaries, percent(c.reach, c.canaries), c.leaks, percent(c.refused, c.canaries),
		percent(c.harmless, c.canaries), c.open, percent(c.openReach, c.open), percent(c.openLost, c.openReach))
}

// throughHeed asks through heed in one way. found says what the server itself
// gives.
func (r *rig) throughHeed(w way, probes []probe, found []bool) count {
	r.t.Helper()
	c := count{server: r.name, way: w}
	var mu sync.Mutex
	r.askAll(w, probes, func(i int, agent string, got reply) {
		mu.Lock()
		defer mu.Unlock()
		if got.leaks() {
			c.leaks++
			r.t.Errorf("%s, %s: the canary came back for %q as %s", r.name, w, probes[i].target, agent)
		}
		c.add(probes[i].open, found[i], got.refused())
	})
	must.True(r.t, c.openReach-c.openLost != 0, "%s, %s: no spelling of an allowed page came through", r.name, w)
	return c
}

func (c *count) add(open, found, refused bool) {
	one := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	if open {
		c.open++
		c.openReach += one(found)
		c.openLost += one(found && refused)
		return
	}
	c.canaries++
	c.reach += one(found)
	c.refused += one(refused)
	c.harmless += one(refused && !found)
}

// recordsAgree ends heed and compares its log with what the witness saw: what
// the log calls the site's answer stood at the door in just those octets, and
// nothing else did.
func (r *rig) recordsAgree() {
	r.t.Helper()
	r.heed.Signal(syscall.SIGTERM)
	must.Equal(r.t, r.heed.Exit(), 0, "heed ended with")
	arrived, broken := r.witness.arrivals()
	for _, b := range broken {
		r.t.Errorf("heed sent the site what is no request: %s", b)
	}
	allowed, answered := map[string][]string{}, map[string][]string{}
	for _, line := range r.heed.Records() {
		agent := line.Text("user_agent")
		if !strings.HasPrefix(agent, "Probe/") || strings.Contains(line.Text("url"), "://free.test") {
			continue
		}
		if line.Text("outcome") == "" {
			continue // the first line of a request that took long; the second has its outcome
		}
		bySite := line.Text("by") == "site"
		if allow := line.Text("verdict") == "allow"; bySite && !allow || allow && !bySite && line.Text("outcome") != "not-seen" && line.Text("error") == "" && line.Number("status") < 500 {
			r.t.Errorf("a record contradicts itself: %v", line)
		}
		asked := line.Text("method") + " " + line.Text("url")
		if line.Text("verdict") == "allow" {
			allowed[agent] = append(allowed[agent], asked)
		}
		if bySite {
			answered[agent] = append(answered[agent], asked)
		}
	}
	r.compare(allowed, answered, arrived)
}

// compare holds three lists by User-Agent together: what the log says was
// allowed, what of that the site answered, and what stood at its door.
func (r *rig) compare(allowed, answered, arrived map[string][]string) {
	r.t.Helper()
	total := 0
	for agent, seen := range arrived {
		if !strings.HasPrefix(agent, "Probe/") {
			continue // heed's own, for robots.txt
		}
		total += len(seen)
		// One that was allowed arrives again when the site closes the kept connection
		// that it was sent on: net/http sends it on another one.
		more := slices.DeleteFunc(without(seen, allowed[agent]), func(s string) bool { return slices.Contains(allowed[agent], s) })
		must.True(r.t, len(more) == 0, "%s: %q stood at the site's door, the log says %q", agent, more, allowed[agent])
	}
	for agent, told := range answered {
		if more := without(told, arrived[agent]); len(more) > 0 {
			r.t.Errorf("%s: the log says that the site answered %q, at its door stood %q", agent, more, arrived[agent])
		}
	}
	r.t.Logf("%s: %d requests stood at the site's door, each in the log with the same bytes", r.name, total)
}

// without returns what of list is left when each of gone is taken out once.
func without(list, gone []string) (left []string) {
	gone = slices.Clone(gone)
	for _, s := range list {
		if i := slices.Index(gone, s); i >= 0 {
			gone = slices.Delete(gone, i, i+1)
		} else {
			left = append(left, s)
		}
	}
	return left
}
