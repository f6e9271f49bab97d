//go:build !race

package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/cache"
	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/check"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/fetch"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/upstream"
	"heed/rules"
)

// oneJudge makes random settings, sites, clients and targets, and asks the proxy, heed check
// and the replay of the proxy's record about them.
//
// What the three cannot all see is left out: pace and turns, limits of clients, credentials,
// tunnels that are not intercepted, parts of pages, clients that leave, verdicts that follow
// an observed request, records with redacted parts, Host fields that name another site, and
// targets that HTTP forbids. Nothing else is.
type oneJudge struct {
	*testing.T
	*rand.Rand
	rig      *rig
	settings *acl.Rules
	policies *cache.Cache
	site     *site
	out      *upstream.HostTransports
	refused  *acl.Destinations
	path     string // of the record
	writer   *store.Writer
	cases    int
	seen     map[string]bool // the entries of earlier cases
	met      *sync.Map       // the reasons of all decisions
}

// pick returns one of some texts.
func (j *oneJudge) pick(all ...string) string { return all[j.IntN(len(all))] }

// some returns text with a chance of one in n, else nothing.
func (j *oneJudge) some(n int, text string) string {
	if j.IntN(n) == 0 {
		return text
	}
	return ""
}

var (
	onePaths  = []string{"/", "/private", "/private/", "/pub/", "/pub/x", "/a%2Fb", "/*.pdf$", "/*/c", "/private/ok"}
	oneAgents = []string{"", "TestBot/1.0", "Mozilla/5.0 (compatible; NewsBot/2.1; +http://news.test/)", "Welcome/1", "curl/8.5.0", "NewsBot TestBot/3"}
)

// robots returns a file with rules and statements.
func (j *oneJudge) robots() string {
	var b strings.Builder
	for range j.IntN(4) {
		fmt.Fprintf(&b, "%sUser-agent: %s\n", j.some(3, "\n"), j.pick("*", "*", "TestBot", "NewsBot", "Welcome", "CCBot", "Google-Extended", "X-Extended CCBot"))
		for range j.IntN(6) {
			b.WriteString(j.pick("Allow: ", "Disallow: ", "Disallow: ") + j.pick(onePaths...) + "\n")
		}
		if j.IntN(2) == 0 {
			fmt.Fprintf(&b, "Content-Usage: %s%s=%s\n", j.pick("", j.pick(onePaths...)+" "), j.pick("train-ai", "search"), j.pick("y", "n"))
		}
		b.WriteString(j.some(3, "Content-Signal: "+j.pick("search=yes, ai-train=no", "ai-input=no", "/x ai-train=yes, search=no")+"\n"))
	}
	b.WriteString(j.some(3, "\nLicense: http://a.test/license.xml\n") + j.some(40, strings.Repeat("Content-Signal: search=yes\n", signal.MaxLines)))
	return b.String()
}

// licence returns a licence document.
func (j *oneJudge) licence() string {
	var b strings.Builder
	for range 1 + j.IntN(3) {
		fmt.Fprintf(&b, `<content url="%s"><license>%s</license></content>`, j.pick(onePaths...), j.pick(
			`<permits type="usage">search</permits>`, `<prohibits type="usage">ai-train</prohibits>`, `<permits type="usage">all</permits>`,
			`<permits type="usage">all</permits><payment type="use"><amount currency="USD">1</amount></payment>`))
	}
	return "<rsl>" + b.String() + j.some(10, "<") + "</rsl>"
}

// tdmRep returns a TDMRep file.
func (j *oneJudge) tdmRep() string {
	return fmt.Sprintf(`[{"location": "%s", "tdm-reservation": %d}, {"location": "%s", "tdm-reservation": %d}]`,
		j.pick(onePaths...), j.IntN(2), j.pick(onePaths...), j.IntN(2))
}

// page returns the fields and the text of a page.
func (j *oneJudge) page() (field, value, html string) {
	fields := [][2]string{{}, {}, {"X-Robots-Tag", "noindex"}, {"X-Robots-Tag", "newsbot: noarchive"}, {"Content-Usage", "train-ai=n"}, {"X-Robots-Tag", "noimageai"}, {"Tdm-Reservation", "1"}, {"Tdm-Reservation", "0"}}
	f := fields[j.IntN(len(fields))]
	return f[0], f[1], "<html><head>" + j.pick("", "", "<meta name=robots content=noindex>", "<meta name=robots content=noai>", "<meta name=tdm-reservation content=1>", "<meta name=tdm-reservation content=0>") + "</head><p>text</html>"
}

// serveFiles has the sites answer, each robots.txt in another state.
func (j *oneJudge) serveFiles() {
	robots, licence, tdmRep := j.robots(), j.licence(), j.tdmRep()
	field, value, html := j.page()
	pages := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/license.xml":
			fmt.Fprint(w, licence)
		case signal.TDMRepPath:
			fmt.Fprint(w, tdmRep)
		default:
			if w.Header().Set("Content-Type", "text/html"); field != "" {
				w.Header().Set(field, value)
			}
			fmt.Fprint(w, html)
		}
	}
	states := map[string]func(w http.ResponseWriter, r *http.Request){
		"a.test":       func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, robots) },
		"none.test":    http.NotFound,
		"failing.test": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"html.test":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>no rules") },
		"moved.test": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://a.test/robots.txt", http.StatusFound)
		},
		"names.test": func(w http.ResponseWriter, r *http.Request) {
			if r.UserAgent() != "Welcome/1" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			fmt.Fprint(w, robots)
		},
	}
	for name, state := range states {
		l := j.site.listen(j, name+":80")
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				state(w, r)
				return
			}
			pages(w, r)
		})}
		j.Cleanup(func() { server.Close() })
		go server.Serve(l)
	}
	j.site.resolve["closed.test:80"] = testkit.FreeAddr(j)
}

// makeSettings makes settings about clients and hosts.
func (j *oneJudge) makeSettings() {
	modes := []*acl.Mode{nil, nil, nil, new(acl.Mode), new(acl.Mode), new(acl.Mode)}
	*modes[4], *modes[5] = acl.Observe, acl.Exempt
	exception := func() *acl.Exception {
		e, err := acl.NewException(acl.Exception{
			Patterns: []string{j.pick(onePaths...)}, Refuse: j.IntN(2) == 0, Reason: "letter 7", Granted: j.IntN(4) == 0,
			Expires: time.Time{}.Add(time.Duration(j.IntN(2)) * time.Hour),
		})
		must.OK(j, err)
		return e
	}
	client := func(name string, glob string) acl.Client {
		c := acl.Client{Name: name, UserAgent: acl.NewGlob(glob), Mode: modes[j.IntN(len(modes))], RefuseUnnamed: j.IntN(4) == 0}
		for _, p := range signal.Purposes() {
			if j.IntN(4) == 0 {
				c.Purpose = append(c.Purpose, p)
			}
		}
		if j.IntN(3) == 0 {
			c.Agent = rules.Declare("newsbot")
		}
		c.SendUserAgent = j.some(4, "Welcome/1")
		c.AlsoObey = j.tokens()
		return c
	}
	j.settings = &acl.Rules{Hash: "1", Text: "1", AlsoObey: acl.PurposeTokens{signal.PurposeTraining: j.tokens()}, Clients: []acl.Client{client("news", "*News*"), client("all", "")}}
	for _, pattern := range []string{"a.test", "*.test", "*"} {
		p := must.Get(acl.ParseHostPattern(pattern))(j)
		h := acl.Host{Match: []acl.HostPattern{p}, NeverAllow: j.IntN(8) == 0, Service: j.some(12, "an API")}
		if j.IntN(3) == 0 {
			h.Exceptions = []*acl.Exception{exception(), exception()}
		}
		if j.IntN(6) == 0 {
			h.Mode = modes[j.IntN(len(modes))]
		}
		if j.IntN(4) == 0 {
			h.Licence = &acl.Licence{Reference: "contract 7"}
		}
		j.settings.Hosts = append(j.settings.Hosts, h)
	}
}

// tokens returns names that a client obeys besides its own.
func (j *oneJudge) tokens() (names []string) {
	for _, name := range []string{"CCBot", "google-extended", "Absent-Token", "TestBot"} {
		if j.IntN(5) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// target returns a target, in any spelling; each is asked for once.
func (j *oneJudge) target() string {
	j.cases++
	target := "/" + j.pick("", "private", "private/", "private;x/", "private/ok", "pub/", "pub/x", "a.pdf", "x/c", "a/b", "a%2Fb")
	for range j.IntN(3) {
		target = j.pick("/", "/./", "/x/..", "/pub/..;y", "/;z", "/pub;z/..", "/x%2f..", "/x/%2e%2e", "/pub") + target
	}
	return target + "?case=" + fmt.Sprint(j.cases)
}

// start starts the proxy.
func (j *oneJudge) start() {
	j.site = newSite(j, hello)
	j.serveFiles()
	j.makeSettings()
	j.path = filepath.Join(j.TempDir(), "audit.db")
	var err error
	j.writer, err = store.Open(j.path, store.Options{Heed: "test"})
	must.Need(j, err == nil, "%v", err)
	forbidden := must.Get(acl.ParseDestination("forbidden.test"))(j)
	j.refused = &acl.Destinations{Private: true, Refuse: []acl.Destination{forbidden}}
	profile := rules.Profile(j.IntN(4))
	j.settings.Profile = profile
	j.rig = newRigBefore(j, j.site, func(c *Config) {
		j.out = c.Upstream.(*upstream.HostTransports)
		j.policies = cache.New(cache.Config{Transport: j.out, Carry: upstream.CarryClient, UserAgent: "heed-rig", Profile: profile})
		c.Policies, c.Rules, c.Destinations = j.policies, j.settings, j.refused
		c.Signals.Documents = &fetch.Documents{Site: j.policies}
		c.Recorder = both{j.writer, c.Recorder}
	})
}

// answer is a decision as the three are compared.
type answer struct {
	refused             bool
	reason              rules.Reason
	group, rule, detail string
	line                int
	variant             string
}

// ask asks the proxy and heed check about one target.
func (j *oneJudge) ask() {
	host := j.pick("a.test", "a.test", "a.test", "none.test", "failing.test", "html.test", "moved.test", "names.test", "names.test", "closed.test", "forbidden.test", "self.test", j.rig.addr)
	agent, target := j.pick(oneAgents...), j.target()
	url := "http://" + host + target
	c := testkit.Dial(j, j.rig.addr)
	var header []string
	if agent != "" {
		header = []string{"User-Agent: " + agent}
	}
	c.Send(requestTo(host, "GET", "http://"+host, target, header...))
	c.Head("GET")
	c.Close()
	e := j.rig.records.await(j, url, func(e *audit.Entry) bool { return !j.seen[e.ID.String()] })
	j.seen[e.ID.String()] = true
	d := e.Decision
	if e.Outcome.Late != nil {
		d = *e.Outcome.Late
	}
	j.met.Store(d.Reason, true)
	proxy := answer{d.Verdict != rules.Allow, d.Reason, d.Group, d.Rule, "", d.Line, d.Variant}

	self := j.rig.proxy.config.Self
	flags := acl.Flags{Terms: acl.Terms{Purpose: j.settings.ClientOf(acl.ClientInfo{UserAgent: agent}).Purpose}}
	judge := check.NewJudge(time.Now, j.settings.ForRun(flags))
	judge.Self, judge.Destinations, judge.Held = self, j.refused, j.policies.Held
	policy := func(ctx context.Context, o rules.Origin, userAgent string) (*rules.Policy, string, string) {
		return j.policies.Policy(ctx, o, userAgent), o.RobotsURL(), "site"
	}
	judge.ForPurposes(url, &fetch.Documents{Site: j.policies}, &http.Client{Transport: j.out}, "heed", policy)
	a, err := judge.Ask(j.Context(), agent, url, policy)
	if err != nil {
		j.Errorf("heed check %s as %q: %v; the proxy %+v", url, agent, err, proxy)
		return
	}
	checked := answer{!a.Allowed, a.Reason, a.Group, a.Rule, "", a.Line, a.Variant}
	must.True(j, proxy == checked,
		"%s as %q:\n  proxy %+v (%s)\n  check %+v (%s)", url, agent, proxy, e.Detail, checked, a.Detail)
}

// replayed has the record judged again.
func (j *oneJudge) replayed() {
	must.OK(j, j.writer.Close(""))
	record := must.Get(store.OpenRecord(j.path))(j)
	r, err := replay.Judge(j.Context(), record, replay.Options{ParseRules: func(string) (*acl.Rules, error) { return j.settings, nil }})
	must.OK(j, err)
	notByRules := slices.IndexFunc(r.Why, func(w replay.Why) bool { return w.Class == replay.Same }) >= 0
	must.True(j, r.Different+r.OtherEngine+r.Incomplete+r.Redacted == 0 && !notByRules,
		"of %d entries %d are different and %d incomplete: %+v %+v", r.Entries, r.Different, r.Incomplete, r.Why, r.Examples)
}

// TestHeed_ProxyCheckAndReplayAreOneJudge asks all three about random cases: the same
// decision, reason, group, rule, line and spelling.
func TestHeed_ProxyCheckAndReplayAreOneJudge(t *testing.T) {
	rounds, each := 25, 20
	if testkit.Full {
		rounds = 1000
	}
	seed, met := rand.Uint64(), &sync.Map{}
	t.Cleanup(func() {
		common := []rules.Reason{rules.ReasonRule, rules.ReasonNoRule, rules.ReasonLoop, rules.ReasonDestination, rules.ReasonSignal}
		if testkit.Full {
			common = append(common, rules.ReasonRobotsUnavailable, rules.ReasonRobotsUnreachable, rules.ReasonOriginUnreachable,
				rules.ReasonOverride, rules.ReasonExempt, rules.ReasonNoAgent, rules.ReasonNotACrawl, rules.ReasonLicence, rules.ReasonTooComplex)
		}
		for _, reason := range common {
			_, ok := met.Load(reason)
			must.True(t, ok, "no case had the reason %s", reason)
		}
	})
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			j := &oneJudge{T: t, Rand: rand.New(rand.NewPCG(seed, uint64(round))), seen: map[string]bool{}, met: met}
			j.start()
			for range each {
				j.ask()
			}
			if j.replayed(); t.Failed() {
				t.Logf("seed %d, round %d", seed, round)
			}
		})
	}
}
