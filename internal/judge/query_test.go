package judge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestHeed_AStopHoldsWhateverElseWasSettled(t *testing.T) {
	all := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/"}, Refuse: true, Granted: true, Reason: "mail of 3 May"}))(t)
	part := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/a"}, Refuse: true, Granted: true, Reason: "mail of 3 May"}))(t)
	for _, c := range []struct {
		name    string
		q       Query
		stop    *acl.Exception
		stopped bool
	}{
		{"enforced", Query{Target: rules.NewTarget("/a")}, all, true},
		{"observed", Query{Target: rules.NewTarget("/a"), Effective: acl.Effective{Mode: acl.Observe}}, all, true},
		{"a service", Query{Target: rules.NewTarget("/a"), Effective: acl.Effective{Site: &acl.Site{Service: "a registry"}}}, all, true},
		{"the whole site", Query{Target: rules.NewTarget("*")}, all, true},
		{"a tunnel", Query{Target: rules.NewTarget(""), HTTPS: acl.Tunnel}, all, true},
		{"a tunnel judged by its host", Query{Target: rules.NewTarget(""), HTTPS: acl.HostOnly}, all, true},
		{"a tunnel, of which no path is seen", Query{Target: rules.NewTarget(""), HTTPS: acl.HostOnly}, part, false},
		{"another part", Query{Target: rules.NewTarget("/b")}, part, false},
		{"another reading of that part", Query{Target: rules.NewTarget("/b/../a")}, part, true},
		{"robots.txt", Query{Target: rules.NewTarget("/robots.txt")}, all, false},
		{"people", Query{Target: rules.NewTarget("/a"), Effective: acl.Effective{Mode: acl.Exempt}}, all, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := acl.Site{}
			if c.q.Effective.Site != nil {
				site = *c.q.Effective.Site
			}
			site.Exceptions = []*acl.Exception{c.stop}
			c.q.Effective.Site, c.q.Now = &site, time.Now()
			o, ok := c.q.WithoutRules()
			o = Apply(c.q.Effective, o)
			got := ok && o.Blocked && o.Verdict == rules.Refuse && o.Reason == rules.ReasonOverride && o.OperatorReason == "mail of 3 May"
			must.True(t, got == c.stopped, "it is stopped: %v, by %+v", got, o)
		})
	}
}

func TestHeed_AnExceptionHoldsForItsPathItsClientsAndItsTime(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	allow, err1 := acl.NewException(acl.Exception{Patterns: []string{"/api/", "/feed$"}, Reason: "letter 14", Expires: noon, Clients: []string{"news"}})
	refuse, err2 := acl.NewException(acl.Exception{Patterns: []string{"/api/admin", "/b.txt$"}, Refuse: true, Reason: "asked by mail"})
	all, err3 := acl.ParseHostPattern("*")
	must.OK(t, errors.Join(err1, err2, err3))
	b := &acl.Rules{
		Clients: []acl.Client{{Name: "news"}, {Name: "other"}},
		Hosts:   []acl.Host{{Match: []acl.HostPattern{all}, Exceptions: []*acl.Exception{allow, refuse}}},
	}
	ask := func(client int, target string, refused bool, at time.Time) (*acl.Exception, string) {
		o := rules.Origin{Scheme: "http", Host: "example.org", Port: 80}
		q := Query{Effective: b.For(&b.Clients[client], o, at), Target: rules.NewTarget(target), Now: at}
		return q.Exception(refused)
	}
	early := noon.Add(-time.Second)
	for _, c := range []struct {
		client  int
		target  string
		refused bool
		at      time.Time
		want    *acl.Exception
	}{
		{0, "/api/items", true, early, allow},
		{0, "/api/items", false, early, nil}, // nothing to allow: the site allows it
		{0, "/api/items", true, noon, nil},
		{1, "/api/items", true, early, nil},
		{0, "/feed", true, early, allow},
		{0, "/feed2", true, early, nil},
		{0, "/api/admin", true, early, refuse},
		{1, "/api/admin", false, noon, refuse},
		{0, "/x/../api/items", true, early, nil}, // one reading is not enough
		{1, "/x/../api/admin", false, early, refuse},
		{0, "/api/..;x/private", true, early, nil}, // "/private" to a servlet container
		{1, "/;x/api/admin", false, early, refuse},
		{0, "/feed\xa0", true, early, nil}, // "/feed" to Python's http.server
		{1, "/b.txt\xa0", false, early, refuse},
		{1, "/b.txt%C2%85", false, early, refuse},
	} {
		got, rule := ask(c.client, c.target, c.refused, c.at)
		must.True(t, got == c.want, "%+v: %v %q", c, got, rule)
	}
	b = &acl.Rules{Hosts: append([]acl.Host{{Match: []acl.HostPattern{all}, NeverAllow: true}}, b.Hosts...), Clients: b.Clients}
	got, _ := ask(0, "/api/items", true, early)
	must.True(t, got == nil, "a host that is never to be allowed is allowed")
}

// A client that obeys names of purposes besides its own gets what its own names are allowed, and
// each of these where a group names it. HEED_TEST_FULL=1: 200,000 random policies and names.
func TestHeed_EachNameThatIsObeyedMustAllow(t *testing.T) {
	t.Parallel()
	n := 20_000
	if testkit.Full {
		n = 200_000
	}
	random := rand.New(rand.NewPCG(1, 48))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	names := []string{"LabBot", "CCBot", "Google-Extended", "X-Extended", "ccbot", "Lab", "Bot"}
	refused := 0
	for range n {
		var b strings.Builder
		for range random.IntN(5) {
			fmt.Fprintf(&b, "User-agent: %s\n", pick(append(names, "*")...))
			for range random.IntN(4) {
				b.WriteString(pick("Allow: ", "Disallow: ") + pick("/", "/a", "/a/b", "/*.pdf$", "") + "\n")
			}
		}
		policy := rules.New(rules.Source{State: rules.Available}, []byte(b.String()))
		c := acl.Client{Name: "lab", Terms: acl.Terms{AlsoObey: acl.Names{pick(names...), "Other"}}}
		settings := &acl.Rules{Clients: []acl.Client{c}}
		own, target := rules.Identify(pick("LabBot/1.0", "Lab/2 CCBot/1", "curl/8")), rules.NewTarget(pick("/", "/a", "/a/b", "/x.pdf"))
		want := policy.Decide(own, target).Verdict
		for _, name := range c.AlsoObey {
			if a := rules.Declare(name); policy.Names(a) && policy.Decide(a, target).Verdict == rules.Refuse {
				want = rules.Refuse
			}
		}
		of := settings.For(&settings.Clients[0], rules.Origin{Scheme: "http", Host: "a.test", Port: 80}, time.Time{})
		q := Query{Effective: of, Names: acl.Identity{Own: own, Also: of.Obeyed}, Target: target}
		got, _ := q.Decide(policy)
		must.Need(t, got.Verdict == want,
			"%v of %q for %q with %q, and %v by each name", got.Verdict, target, own.Tokens, c.AlsoObey, want)
		if want == rules.Refuse {
			refused++
		}
	}
	t.Logf("%d of %d are refused", refused, n)
}
