package study

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heed/internal/analysis/accesslog"
	"heed/internal/tools/testkit/must"
)

// A client has any number of IPv6 networks, names and Host fields. Beyond the bounds they
// are counted together, no request is lost, and the table of coverage states it.
func TestHeed_ForgedNamesAndAddressesTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	const requests, most = 5000, 100
	s := New(Options{})
	s.bounds = bounds{sites: most, robots: most, agents: most, addresses: most, networks: most, actors: most, pairs: most}
	at := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range requests {
		agent := fmt.Sprintf("Robot%s/1.0 (+https://bots.example)", strings.Repeat("x", i%977))
		if i%2 == 0 {
			agent = "GPTBot/1.0"
		}
		must.OK(t, s.Add(&accesslog.Request{
			Time: at.Add(time.Duration(i) * time.Second), Client: fmt.Sprintf("2001:db8:%x:%x::1", i>>8, i&255), Host: fmt.Sprintf("host-%d.example", i),
			Method: "GET", Target: fmt.Sprintf("/%d", i), Status: 200, UserAgent: agent,
		}))
	}
	for what, n := range map[string]int{
		"sites": len(s.sites), "agents": len(s.agents), "addresses": len(s.places), "networks": len(s.nets), "names of networks": len(s.netName),
		"pairs": len(s.pairs), "pairs of Kim et al.": len(s.kim), "fetches": len(s.seen),
	} {
		must.True(t, n <= most+1, "%d %s are remembered", n, what)
	}
	n := len(s.robots)
	must.True(t, n <= 5*most, "%d agents are remembered", n)
	n = len(s.actors)
	must.True(t, n <= most+len(s.robots), "%d clients are remembered", n)
	r := s.Finish(accesslog.Counts{Lines: requests}, false, at)
	var sum int64
	agents := r.Table("agents")
	for _, row := range agents.Rows {
		sum += row[3].(int64)
	}
	must.True(t, r.Requests == requests && sum == requests && agents.Columns[3].Name == "requests",
		"%d requests, %d of all agents", r.Requests, sum)
	notes := strings.Join(r.Table("coverage").Notes, "\n")
	for _, want := range []string{"more than 100 networks, the rest counted as one: 4,900 requests", "sites, the rest counted as (other sites)", "names of robots", "clients, the rest of an agent counted as one", "pairs of agent and address"} {
		must.Contain(t, notes, want, "the notes")
	}
}
