package bypass

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// statement is one kind of statement about /private/: of a site, or of the operator.
type statement struct {
	name      string
	documents map[string]string // by target; %s is the name of the site
	settings  string            // of the [[host]]
}

var statements = []statement{
	{"disallow", map[string]string{"/robots.txt": "User-agent: *\nDisallow: /private/\nDisallow: /*.pdf$\n"}, ""},
	{"obeyed", map[string]string{"/robots.txt": "User-agent: *\nDisallow: /nothing/\n\nUser-agent: CCBot\nDisallow: /private/\nDisallow: /*.pdf$\n"}, ""},
	{"exception", map[string]string{"/robots.txt": "User-agent: *\nDisallow: /\n"}, `allow = ["/pub/", "/open/"]`},
	{"refuse", nil, `refuse = ["/private/"]`},
	{"usage", map[string]string{"/robots.txt": "User-agent: *\nContent-Usage: train-ai=y\nContent-Usage: /private/ train-ai=n\n"}, ""},
	{"tdmrep", map[string]string{"/.well-known/tdmrep.json": `[{"location": "/private/", "tdm-reservation": 1}]`}, ""},
	{"rsl", map[string]string{"/robots.txt": "License: http://%s/license.xml\n", "/license.xml": `<rsl><content url="/"><license><permits type="usage">all</permits></license></content>` +
		`<content url="/private/"><license><prohibits type="usage">ai-train</prohibits></license></content></rsl>`}, ""},
}

// private is the page that no statement allows for training; openPages are pages that each
// allows.
var (
	private   = page{path: "/private/c.txt"}
	openPages = []string{"/open/page.html", "/open/page.html?x=1", "/open/a-b_c~d.html"}
)

// servedByNginx is how many spellings of the private page nginx delivers, at least, in the
// long form.
const servedByNginx = 901

// stand is sites with every kind of statement before some servers, behind one heed.
type stand struct {
	*testing.T
	servers map[string]string // the address of each
	heed    string
}

// newStand starts sites named KIND.SERVER.test, and a heed with a profile.
func newStand(t *testing.T, profile string, servers map[string]string) *stand {
	t.Helper()
	config := fmt.Sprintf("listen = \"127.0.0.1:0\"\nprofile = %q\n", profile)
	resolve := "[upstream.resolve]\n"
	for name, server := range servers {
		f := &front{server: server, documents: map[string]map[string]string{}}
		addr := f.start(t)
		for _, s := range statements {
			site := s.name + "." + name + ".test"
			f.documents[site] = map[string]string{}
			for target, text := range s.documents {
				f.documents[site][target] = strings.ReplaceAll(text, "%s", site)
			}
			resolve += fmt.Sprintf("\"%s:80\" = %q\n", site, addr)
			if s.settings != "" {
				config += fmt.Sprintf("[[host]]\nmatch = [%q]\nreason = \"a test\"\n%s\n", site, s.settings)
			}
		}
	}
	config += "[[client]]\nname = \"probe\"\nuser_agent = \"Probe*\"\npurpose = \"training\"\nalso_obey = [\"CCBot\"]\n"
	return &stand{t, servers, testkit.Start(t, testkit.Options{Config: config + resolve}).Addr}
}

// writePrivate makes a folder with the private page and the open ones.
func writePrivate(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.Chmod(strings.TrimSuffix(dir, "/001"), 0o755))
	for _, name := range []string{"/private", "/open", "/pub"} {
		must.OK(t, os.Mkdir(dir+name, 0o755))
	}
	for _, name := range []string{private.path, "/open/a.pdf"} {
		must.OK(t, os.WriteFile(dir+name, []byte(strings.Repeat(canaryToken, canarySize/len(canaryToken))), 0o644))
	}
	for _, name := range []string{"/open/page.html", "/open/a-b_c~d.html"} {
		must.OK(t, os.WriteFile(dir+name, []byte(pageToken), 0o644))
	}
	return dir
}

// ask asks for targets at a site, through heed or directly, over a few connections.
func (s *stand) ask(way way, kind, server string, targets []string) []reply {
	s.Helper()
	r := route{way: way, name: kind + "." + server + ".test", addr: s.heed}
	if way == direct {
		r.addr = s.servers[server]
	}
	replies := make([]reply, len(targets))
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			a := r.asker()
			defer a.close()
			for i := worker; i < len(targets); i += 4 {
				replies[i] = a.ask(targets[i], "Probe/1")
			}
		})
	}
	workers.Wait()
	return replies
}

// served returns those of some targets for which a server delivers the private page.
func (s *stand) served(server string, targets []string) (all []string) {
	s.Helper()
	for i, got := range s.ask(direct, "any", server, targets) {
		if got.leaks() {
			all = append(all, targets[i])
		}
	}
	return all
}

// throughHeed returns the targets for which the private page of a server comes through, by
// the kind of statement. Open pages must come through.
func (s *stand) throughHeed(server string, targets []string) map[string][]string {
	s.Helper()
	through := map[string][]string{}
	for _, kind := range statements {
		for i, got := range s.ask(plain, kind.name, server, targets) {
			switch {
			case got.leaks():
				through[kind.name] = append(through[kind.name], targets[i])
			case !got.refused():
				s.Errorf("%s: %s is not refused: %.300q %v", kind.name, targets[i], got.text, got.err)
			}
		}
		for i, got := range s.ask(plain, kind.name, server, openPages) {
			must.True(s, strings.Contains(got.text, pageToken),
				"%s: %s does not come through: %.300q %v", kind.name, openPages[i], got.text, got.err)
		}
	}
	return through
}

// What a statement of a site or its operator does not allow for training does not come
// through for a client with that purpose, in no spelling that a server takes for it,
// whatever the kind of statement; open pages do. One start of each server serves all.
func TestHeed_NoSpellingGetsRoundAStatement(t *testing.T) {
	t.Parallel()
	root := writePrivate(t)
	servers := map[string]string{}
	for _, s := range []server{{"nginx", startNginx}, {"apache", startApache}, {"python", startPython}, {"express", startExpress}, {"tomcat", startTomcat}} {
		servers[s.name] = s.start(t, root)
	}
	n := 100
	if testkit.Full {
		n = 4000
	}
	all := newStand(t, "standard", servers)
	spellings := withoutParameters(n)
	for name := range servers {
		served := all.served(name, spellings)
		must.True(t, (!testkit.Full || name != "nginx" || len(served) >= servedByNginx) && len(served) != 0,
			"%s delivers the page for %d spellings, too few to show anything", name, len(served))
		for kind, targets := range all.throughHeed(name, served) {
			t.Errorf("%s, %s: %d come through, such as %q", name, kind, len(targets), targets[:min(len(targets), 20)])
		}
		t.Logf("%s delivers the page for %d of %d spellings; through heed none may come, under %d kinds of statement", name, len(served), n, len(statements))
	}
	all.checkManual()
	checkParameters(t, map[string]string{"tomcat": servers["tomcat"]})
}

// withoutParameters returns n spellings of the private page without ";".
func withoutParameters(n int) (all []string) {
	random := rand.New(rand.NewPCG(seed, 2))
	seen := map[string]bool{}
	for len(all) < n {
		if target := spell(random, private); !strings.Contains(target, ";") && !seen[target] {
			seen[target] = true
			all = append(all, target)
		}
	}
	return all
}

// Spellings with path parameters: each before is followed by each of the others. Segments
// that are empty or dots once their parameters are cut, before and after the page's own.
var (
	parametersBefore = []string{"", "/;", "/;x", "/;/;x", "/.;", "/.;x=1", "/./;x", "/..;x", "/pub/..;", "/pub/..;x", "/pub/..;a=b;c", "/pub/%2e%2e;x",
		"/pub/.%2E;", "/pub/..;a%2fb", "/pub/..;a%5cb", "/pub/..;a%2f%5cb", "/pub/..;%2f..", "/pub/.;x/..", "/pub/;x/..;y", "/pub;a/..;b", "/pub;a/..", "/x/y/..;/..;"}
	parametersIn = []string{"/private/c.txt", "/private/;x/c.txt", "/private/.;x/c.txt", "/private/y/..;z/c.txt", "//;x/private//c.txt", "/private/c.txt;x", "/%70rivate/.;/c.txt;a?x=;"}
	// parametersHonest have parameters of the segment that the statements are about. Such
	// parameters are honest parts of many URLs: only the profile strict cuts them.
	parametersHonest = []string{"/private;x/c.txt", "/private;/c.txt", "/%70rivate;a=1;b/c.txt;d", "/private;a/y/..;/c.txt"}
)

// honestlyThrough are spellings that come through under "Disallow: /private/" and "Disallow:
// /*.pdf$", unless the profile is strict (`heed help rules`).
var honestlyThrough = []string{"/private;x/c.txt", "/open/a.pdf;x"}

// checkParameters sends spellings with path parameters to a servlet container, under each
// profile. Under strict none comes through; under the others only those with parameters of
// the segment itself do.
func checkParameters(t *testing.T, servers map[string]string) {
	t.Helper()
	profiles := []string{"strict", "standard", "google", "rep1994"}
	var spellings, honest []string
	for i, before := range parametersBefore {
		if !testkit.Full && i%4 != 0 {
			continue
		}
		for _, in := range parametersIn {
			spellings = append(spellings, before+in)
		}
		for _, in := range parametersHonest {
			honest = append(honest, before+in)
		}
	}
	if !testkit.Full {
		profiles = profiles[:2]
	}
	for _, profile := range profiles {
		s := newStand(t, profile, servers)
		served, let := s.served("tomcat", spellings), s.served("tomcat", honest)
		for kind, targets := range s.throughHeed("tomcat", served) {
			t.Errorf("%s, %s: %d come through, such as %q", profile, kind, len(targets), targets[:min(len(targets), 20)])
		}
		if profile == "strict" {
			for kind, targets := range s.throughHeed("tomcat", let) {
				t.Errorf("strict, %s: %d with honest parameters come through, such as %q", kind, len(targets), targets[:min(len(targets), 20)])
			}
		}
		for i, got := range s.ask(plain, "disallow", "tomcat", honestlyThrough) {
			must.Equal(t, got.leaks(), (profile != "strict"), "%s: %s: comes through", profile, honestlyThrough[i])
		}
		t.Logf("%s: Tomcat delivers the page for %d of %d spellings with parameters, and %d of %d with those of the segment itself",
			profile, len(served), len(spellings), len(let), len(honest))
	}
}

// manualRow is a row of the table of readings in the manual.
var manualRow = regexp.MustCompile(`(?m)^    (v\d)  (/\S+) +(all|strict) +(\S.*)$`)

// checkManual compares the table of readings in the manual with what the servers deliver and
// what the profiles refuse.
func (s *stand) checkManual() {
	s.Helper()
	rows := manualRow.FindAllStringSubmatch(testkit.Read(s, testkit.Root(s)+"/internal/output/manual/rules.md"), -1)
	must.True(s, len(rows) == 6, "the manual's table of readings has %d rows", len(rows))
	for _, row := range rows {
		variant, target, profiles, listed := row[1], row[2], row[3], row[4]
		var by []string
		for _, server := range [][2]string{{"nginx", "nginx"}, {"apache", "Apache"}, {"python", "Python"}, {"express", "Node"}, {"tomcat", "Tomcat"}} {
			if len(s.served(server[0], []string{target})) > 0 {
				by = append(by, server[1])
			}
		}
		if got := cmp.Or(strings.Join(by, ", "), "no server of these"); got != listed {
			s.Errorf("%s is delivered by %s, the manual says by %s", target, got, listed)
		}
		for _, profile := range []rules.Profile{rules.Standard, rules.Strict, rules.Google, rules.REP1994} {
			policy := rules.NewAs(profile, rules.Source{State: rules.Available}, []byte("User-agent: *\nDisallow: /private/\n"))
			d := policy.Decide(nil, rules.NewTarget(target))
			if refuses := profiles == "all" || profile == rules.Strict; refuses != (d.Verdict == rules.Refuse) || refuses && d.Variant != variant {
				s.Errorf("%s: %s: %s in the reading %q, the manual says refused in %s under %s", profile, target, d.Verdict, d.Variant, variant, profiles)
			}
		}
	}
}
