package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// siteOn returns a site whose keys are on a node.
func siteOn(t *testing.T, node *testkit.Redis) string {
	t.Helper()
	for i := range 1000 {
		if site := fmt.Sprintf("https://site%d.test", i); node.Has("{" + site + "}") {
			return site
		}
	}
	t.Fatalf("no key is on %s", node.Addr)
	return ""
}

// clusterOf starts a Cluster and returns the node with the list of heeds, two others, and
// the form of its URL.
func clusterOf(t *testing.T) (list, one, other *testkit.Redis, url string) {
	t.Helper()
	nodes := testkit.NewRedisCluster(t)
	url = fmt.Sprintf("redis://%s,%s,%s", nodes[0].Addr, nodes[1].Addr, nodes[2].Addr)
	i := slices.IndexFunc(nodes, func(n *testkit.Redis) bool { return n.Has("heed:1:heeds") })
	nodes[0], nodes[i] = nodes[i], nodes[0]
	return nodes[0], nodes[1], nodes[2], url
}

// long is a lane with a delay that no test waits for.
var long = []pace.Lane{{Name: "group", Delay: time.Hour}}

// shared waits until the heeds take turns at a site through the store: one knows what
// another has started.
func shared(t *testing.T, heeds []*member, site string) {
	t.Helper()
	for _, m := range heeds {
		at := m.at(site)
		testkit.Until(t, site+" is shared", func() bool {
			_ = at.lanes.Started(t.Context(), site, m.ticket, long, 0) // it is away
			return !slices.ContainsFunc(heeds, func(o *member) bool {
				a := o.at(site).ask(long)
				return a.Away || a.Now || a.Wait < 59*time.Minute
			})
		})
	}
}

// What is away is the node with the keys of a site, for all heeds alike: sites elsewhere
// are shared, and so is word of pauses. A replica that takes over is used.
func TestHeed_ANodeThatIsAwayConcernsTheKeysOnIt(t *testing.T) {
	t.Parallel()
	list, dying, promoted, url := clusterOf(t)
	replica := promoted.AddReplica()
	all := lineUp(t, url, 2)
	testkit.Until(t, "both are counted", func() bool { return all[0].lanes.Membership().Heeds == 2 && all[1].lanes.Membership().Heeds == 2 })
	heard := make(chan string, 100)
	all[1].lanes.Watch(func(host string, _ time.Duration) { heard <- host })
	siteDying, sitePromoted := siteOn(t, dying), siteOn(t, promoted)
	dying.Kill()
	for i, m := range all {
		a := m.at(siteDying).ask(long)
		must.True(t, a.Away, "heed %d at a site of the dead node: %+v", i, a)
	}
	shared(t, all, sitePromoted)
	shared(t, all, siteOn(t, list))
	testkit.Until(t, "the other hears of a pause", func() bool {
		err := all[0].lanes.Hold(t.Context(), sitePromoted, time.Second)
		must.True(t, err == nil, "%v", err)
		select {
		case got := <-heard:
			return got == sitePromoted
		default:
			return false
		}
	})
	dying.Restart() // the others cannot agree on a promotion without it
	shared(t, all, siteDying)
	promoted.Kill()
	testkit.Until(t, "the replica has been promoted", func() bool { return strings.Contains(replica.CLI("role"), "master") })
	shared(t, all, sitePromoted)
}

// A heed that starts while the node with the list of heeds is dead takes turns elsewhere,
// and none at the sites of that node: it does not know its share.
func TestHeed_AClusterWithoutTheListOfHeeds(t *testing.T) {
	t.Parallel()
	list, other, _, url := clusterOf(t)
	siteList := siteOn(t, list)
	all := lineUp(t, url, 1)
	testkit.Until(t, "it is counted", func() bool { return all[0].lanes.Membership().Heeds == 1 })
	list.Kill()
	all = append(all, lineUp(t, url, 1)...)
	shared(t, all, siteOn(t, other))
	a := all[0].at(siteList).ask(long)
	must.True(t, a.Away && a.Unreached == "", "the heed that was there before: %+v", a)
	a = all[1].at(siteList).ask(long)
	must.True(t, a.Away && !a.Now && a.Unreached != "", "the heed that has come since: %+v", a)
}
