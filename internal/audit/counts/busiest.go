package counts

import (
	"cmp"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/base/memo"
	"heed/internal/judge/acl"
	"heed/internal/judge/reason"
)

// Bounds of busiest.
const (
	maxNames    = 512 // clients, and sites, of one period
	maxName     = 256 // octets of one name
	busyPeriods = 12
	busyLength  = time.Hour / busyPeriods

	// waitedFrom is the shortest wait that is counted.
	waitedFrom = 10 * time.Millisecond
)

// NameCount is the requests of one client or to one site.
type NameCount struct {
	Name     string            `json:"name"` // untrusted text; of a client: [[client]], agent of a run, user or address
	Requests uint64            `json:"requests"`
	Classes  map[string]uint64 `json:"classes"` // Requests by reason.Class; classes without requests are left out
	Waits    uint64            `json:"waits"`   // requests that waited for a policy or a turn
	Waited   time.Duration     `json:"waited_ns"`
	Traffic
}

// Traffic is the octets of exchanges that have ended, and when one last succeeded.
type Traffic struct {
	BytesIn  uint64 `json:"bytes_in"`  // of the bodies of requests
	BytesOut uint64 `json:"bytes_out"` // of the bodies of answers, those of heed itself included
	// Success is when an exchange last ended that the site answered without a refusal or an
	// error of its own, a tunnel included. Zero: none did.
	Success time.Time `json:"last_success,omitzero"`
}

// Add adds o to t.
func (t *Traffic) Add(o *Traffic) {
	t.BytesIn += o.BytesIn
	t.BytesOut += o.BytesOut
	if o.Success.After(t.Success) {
		t.Success = o.Success
	}
}

// trafficOf returns the traffic of an exchange that has ended.
func trafficOf(e *audit.Entry) Traffic {
	o := &e.Outcome
	t := Traffic{BytesIn: uint64(max(0, o.BytesIn)), BytesOut: uint64(max(0, o.BytesOut))}
	switch became := e.Became(); {
	case became == "tunnelled", became == "answered" && o.FromSite && o.Status < http.StatusInternalServerError:
		t.Success = e.Time.Add(o.Duration)
	}
	return t
}

// Busiest are the clients and sites with the most requests of an hour, the busiest first,
// and the traffic of all. Its Success is since the start, that of a name of the hour.
type Busiest struct {
	Clients []NameCount `json:"clients"`
	Sites   []NameCount `json:"sites"`
	Traffic
}

// busiest counts by client and by site, to find those with the most requests.
//
// It keeps the counts of twelve periods of five minutes, and in each of them at most
// maxNames clients and maxNames sites, whatever clients ask for: a name in excess takes
// the place of the one with the fewest requests (the Space-Saving algorithm of Metwally,
// Agrawal and El Abbadi, 2005). A name with more than one in maxNames of the requests of
// a period is therefore always counted. Counts are exact for names that never lost their
// place, and otherwise lower than the truth. The memory is bounded by 12 * 2 * maxNames
// names of at most maxName octets, about 6 MB; counting a known name does not allocate.
type busiest struct {
	periods ring[busyPeriod]
	success time.Time // since the start
}

type busyPeriod struct {
	clients, sites table
	traffic        Traffic // of all
}

// add counts q in the period of its end.
func (b *busiest) add(q *request) {
	if q.traffic.Success.After(b.success) {
		b.success = q.traffic.Success
	}
	p := b.periods.at(q.at)
	if p == nil {
		return
	}
	p.traffic.Add(&q.traffic)
	p.clients.take(clientOf(q.Entry)).add(q)
	p.sites.take(siteOf(q)).add(q)
}

// Busiest returns the most busy clients and sites, at most most of each, of the sixty minutes
// before now, of which up to five may be missing.
func (c *Counter) Busiest(now time.Time, most int) Busiest {
	clients, sites, all := map[string]*name{}, map[string]*name{}, Traffic{}
	c.mu.Lock()
	c.busiest.periods.each(now, busyPeriods, func(p *busyPeriod) {
		p.clients.addTo(clients)
		p.sites.addTo(sites)
		all.Add(&p.traffic)
	})
	all.Success = c.busiest.success
	c.mu.Unlock()
	return Busiest{Clients: top(clients, most), Sites: top(sites, most), Traffic: all}
}

func top(all map[string]*name, most int) []NameCount {
	list := make([]NameCount, 0, len(all))
	for text, n := range all {
		c := NameCount{Name: text, Classes: map[string]uint64{}, Waits: n.waits, Waited: n.waited, Traffic: n.traffic}
		for class, count := range n.classes {
			if count > 0 {
				c.Classes[reason.Class(class).String()] = uint64(count)
				c.Requests += uint64(count)
			}
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b NameCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(b.BytesOut, a.BytesOut), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(most, len(list))]
}

// namedClient returns the name of e's client that does not depend on where it is: its [[client]],
// the agent of a run, or the user; empty when it has none.
func namedClient(e *audit.Entry) string {
	if e.ClientName == acl.RunName && e.Agent != nil && len(e.Agent.Tokens) > 0 {
		return clipName(e.Agent.Tokens[0].Name)
	}
	return clipName(cmp.Or(e.ClientName, e.User))
}

// clientOf returns the name of e's client: as namedClient, or its address.
func clientOf(e *audit.Entry) string {
	if named := namedClient(e); named != "" {
		return named
	}
	if host, _, err := net.SplitHostPort(e.Client); err == nil {
		return clipName(host)
	}
	return clipName(e.Client)
}

// siteOf returns the host that q is counted for.
func siteOf(q *request) string {
	if q.host == "" {
		return "(no host)"
	}
	return clipName(q.host)
}

func clipName(s string) string { return s[:min(len(s), maxName)] }

// name is the counts of one name in one period.
type name struct {
	text    string
	classes reason.Counts
	waits   uint64
	waited  time.Duration
	traffic Traffic
}

// add counts q.
func (n *name) add(q *request) {
	n.classes[q.class]++
	n.traffic.Add(&q.traffic)
	if q.Outcome.Waited >= waitedFrom {
		n.waits++
		n.waited += q.Outcome.Waited
	}
}

// table holds the names of one period.
type table struct {
	names []name
	ranks []uint64       // of each name: its requests, and those of the names whose place it took
	index map[string]int // of names
}

// take returns the counts of a name, whose rank it raises by one, until the next call. A new
// name in a full table takes the place and the rank of the lowest one.
func (t *table) take(text string) *name {
	i, known := t.index[text]
	switch {
	case known:
	case len(t.names) < maxNames:
		if t.index == nil {
			t.index = map[string]int{}
		}
		i = len(t.names)
		t.names, t.ranks = append(t.names, name{}), append(t.ranks, 0)
	default:
		i = slices.Index(t.ranks, slices.Min(t.ranks))
		delete(t.index, t.names[i].text)
	}
	if !known {
		text = strings.Clone(text) // it may be part of a whole request
		t.names[i], t.index[text] = name{text: text}, i
	}
	t.ranks[i]++
	return &t.names[i]
}

// addTo adds the counts of t to those of all.
func (t *table) addTo(all map[string]*name) {
	for i := range t.names {
		n := &t.names[i]
		sum := memo.At(all, n.text)
		sum.classes.Add(&n.classes)
		sum.waits += n.waits
		sum.waited += n.waited
		sum.traffic.Add(&n.traffic)
	}
}
