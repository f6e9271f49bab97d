package acl

import (
	"testing"
	"time"

	"heed/rules"
)

func TestHeed_AStopHoldsWhateverElseWasSettled(t *testing.T) {
	all, err := NewException(Exception{Patterns: []string{"/"}, Refuse: true, Granted: true, Reason: "mail of 3 May"})
	if err != nil {
		t.Fatal(err)
	}
	part, err := NewException(Exception{Patterns: []string{"/a"}, Refuse: true, Granted: true, Reason: "mail of 3 May"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		q       Query
		stop    *Exception
		stopped bool
	}{
		{"enforced", Query{Target: rules.NewTarget("/a")}, all, true},
		{"observed", Query{Target: rules.NewTarget("/a"), Effective: Effective{Mode: Observe}}, all, true},
		{"a service", Query{Target: rules.NewTarget("/a"), Effective: Effective{Site: &Site{Service: "a registry"}}}, all, true},
		{"the whole site", Query{Target: rules.NewTarget("*")}, all, true},
		{"a tunnel", Query{Target: rules.NewTarget(""), HTTPS: Tunnel}, all, true},
		{"a tunnel judged by its host", Query{Target: rules.NewTarget(""), HTTPS: HostOnly}, all, true},
		{"a tunnel, of which no path is seen", Query{Target: rules.NewTarget(""), HTTPS: HostOnly}, part, false},
		{"another part", Query{Target: rules.NewTarget("/b")}, part, false},
		{"another reading of that part", Query{Target: rules.NewTarget("/b/../a")}, part, true},
		{"robots.txt", Query{Target: rules.NewTarget("/robots.txt")}, all, false},
		{"people", Query{Target: rules.NewTarget("/a"), Effective: Effective{Mode: Exempt}}, all, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := Site{}
			if c.q.Effective.Site != nil {
				site = *c.q.Effective.Site
			}
			site.Exceptions = []*Exception{c.stop}
			c.q.Effective.Site, c.q.Now = &site, time.Now()
			o, ok := c.q.WithoutRules()
			o = c.q.Effective.Apply(o)
			got := ok && o.Blocked && o.Verdict == rules.Refuse && o.Reason == rules.ReasonOverride && o.OperatorReason == "mail of 3 May"
			if got != c.stopped {
				t.Errorf("it is stopped: %v, by %+v", got, o)
			}
		})
	}
}
