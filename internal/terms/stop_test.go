package terms

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
		q       Question
		stop    *Exception
		stopped bool
	}{
		{"enforced", Question{Target: "/a"}, all, true},
		{"observed", Question{Target: "/a", Terms: Terms{Mode: Observe}}, all, true},
		{"a service", Question{Target: "/a", Terms: Terms{Site: &Site{Service: "a registry"}}}, all, true},
		{"the whole site", Question{Target: "*"}, all, true},
		{"a tunnel", Question{HTTPS: Tunnel}, all, true},
		{"a tunnel judged by its host", Question{HTTPS: HostOnly}, all, true},
		{"a tunnel, of which no path is seen", Question{HTTPS: HostOnly}, part, false},
		{"another part", Question{Target: "/b"}, part, false},
		{"another reading of that part", Question{Target: "/b/../a"}, part, true},
		{"robots.txt", Question{Target: "/robots.txt"}, all, false},
		{"people", Question{Target: "/a", Terms: Terms{Mode: Exempt}}, all, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := Site{}
			if c.q.Terms.Site != nil {
				site = *c.q.Terms.Site
			}
			site.Exceptions = []*Exception{c.stop}
			c.q.Terms.Site, c.q.Now = &site, time.Now()
			o, ok := c.q.WithoutRules()
			o = c.q.Terms.Observed(o)
			got := ok && o.Stopped && o.Verdict == rules.Refuse && o.Reason == rules.ReasonOverride && o.Settled == "mail of 3 May"
			if got != c.stopped {
				t.Errorf("it is stopped: %v, by %+v", got, o)
			}
		})
	}
}
