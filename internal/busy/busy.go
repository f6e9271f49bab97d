// Package busy counts the requests and octets of the last hour by client and by site, to
// find those with the most.
//
// It keeps the counts of twelve periods of five minutes, and in each of them at most
// maxNames clients and maxNames sites, whatever clients ask for: a name in excess takes
// the place of the one with the fewest requests (the Space-Saving algorithm of Metwally,
// Agrawal and El Abbadi, 2005). A name with more than one in maxNames of the requests of
// a period is therefore always counted. Counts are exact for names that never lost their
// place, and otherwise lower than the truth. The memory is bounded by 12 * 2 * maxNames
// names of at most maxName octets, about 6 MB; counting a known name does not allocate.
package busy

import (
	"cmp"
	"container/heap"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"heed/internal/acl"
	"heed/internal/audit"
	"heed/internal/reason"
	"heed/rules"
)

// Bounds of a Counter.
const (
	maxNames = 512 // clients, and sites, of one period
	maxName  = 256 // octets of one name
	periods  = 12
	period   = time.Hour / periods

	// waitedFrom is the shortest wait that is counted.
	waitedFrom = 10 * time.Millisecond
)

// Counts are the requests of one client or to one site.
type Counts struct {
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

// TrafficOf returns the traffic of an exchange that has ended.
func TrafficOf(e *audit.Entry) Traffic {
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
	Clients []Counts `json:"clients"`
	Sites   []Counts `json:"sites"`
	Traffic
}

// Counter is a recorder that counts. The zero value is ready; it is safe for concurrent
// use.
type Counter struct {
	mu      sync.Mutex
	slots   [periods]slot
	success time.Time // since the start
}

// slot is one period.
type slot struct {
	number         int64 // of the period since 1970; 0: unused
	clients, sites table
	traffic        Traffic // of all
}

// at returns the number of the period that t lies in, and its slot, which may hold another
// period still.
func (c *Counter) at(t time.Time) (number int64, s *slot) {
	n := t.UnixNano() / int64(period)
	return n, &c.slots[((n%periods)+periods)%periods]
}

// now returns the slot of the period that t lies in, cleared if it holds an earlier one; nil
// when it holds a later one.
func (c *Counter) now(t time.Time) *slot {
	n, s := c.at(t)
	switch {
	case s.number > n:
		return nil
	case s.number < n:
		*s = slot{number: n}
	}
	return s
}

// Decided counts e. It never fails.
func (c *Counter) Decided(e *audit.Entry) error {
	if e.Revises != nil {
		return nil // the request was counted when its tunnel was opened
	}
	class := reason.ClassOf(e.Decision.Verdict, e.Decision.Reason, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.now(e.Time); s != nil {
		s.clients.take(Client(e)).classes[class]++
		s.sites.take(Site(e)).classes[class]++
	}
	return nil
}

// Ended adds the traffic and the wait of e, and moves it to the failed requests when the
// site was not reached.
func (c *Counter) Ended(e *audit.Entry) {
	traffic := TrafficOf(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	if traffic.Success.After(c.success) {
		c.success = traffic.Success
	}
	if traffic != (Traffic{}) {
		c.trafficLocked(e, &traffic)
	}
	c.outcomeLocked(e)
}

// trafficLocked counts the traffic of e in the period of its end.
func (c *Counter) trafficLocked(e *audit.Entry, traffic *Traffic) {
	s := c.now(e.Time.Add(e.Outcome.Duration))
	if s == nil {
		return
	}
	s.traffic.Add(traffic)
	s.clients.take(Client(e)).traffic.Add(traffic)
	s.sites.take(Site(e)).traffic.Add(traffic)
}

// outcomeLocked counts the wait and the failure of e in the period of its decision.
func (c *Counter) outcomeLocked(e *audit.Entry) {
	o := &e.Outcome
	failed := !o.FromSite && (o.Status == http.StatusBadGateway || o.Status == http.StatusGatewayTimeout)
	if o.Waited < waitedFrom && !failed || e.Revises != nil {
		return
	}
	before := reason.ClassOf(e.Decision.Verdict, e.Decision.Reason, false)
	after := reason.ClassOf(e.Decision.Verdict, e.Decision.Reason, failed)
	number, s := c.at(e.Time)
	if s.number != number {
		return
	}
	for _, n := range []*name{s.clients.names[Client(e)], s.sites.names[Site(e)]} {
		if n == nil {
			continue // it lost its place meanwhile
		}
		if o.Waited >= waitedFrom {
			n.waits++
			n.waited += o.Waited
		}
		if n.classes[before] > 0 && before != after {
			n.classes[before]--
			n.classes[after]++
		}
	}
}

// Hour returns the most busy clients and sites, at most most of each, of the sixty minutes
// before now, of which up to five may be missing.
func (c *Counter) Hour(now time.Time, most int) Busiest {
	clients, sites, all := map[string]*name{}, map[string]*name{}, Traffic{}
	last := now.UnixNano() / int64(period)
	c.mu.Lock()
	for i := range c.slots {
		if s := &c.slots[i]; s.number > last-periods && s.number <= last {
			s.clients.addTo(clients)
			s.sites.addTo(sites)
			all.Add(&s.traffic)
		}
	}
	all.Success = c.success
	c.mu.Unlock()
	return Busiest{Clients: top(clients, most), Sites: top(sites, most), Traffic: all}
}

func top(all map[string]*name, most int) []Counts {
	list := make([]Counts, 0, len(all))
	for text, n := range all {
		c := Counts{Name: text, Classes: map[string]uint64{}, Waits: n.waits, Waited: n.waited, Traffic: n.traffic}
		for class, count := range n.classes {
			if count > 0 {
				c.Classes[reason.Class(class).String()] = count
				c.Requests += count
			}
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Counts) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(b.BytesOut, a.BytesOut), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(most, len(list))]
}

// Named returns the name of e's client that does not depend on where it is: its [[client]],
// the agent of a run, or the user; empty when it has none.
func Named(e *audit.Entry) string {
	if e.ClientName == acl.RunName && e.Agent != nil && len(e.Agent.Tokens) > 0 {
		return clip(e.Agent.Tokens[0].Name)
	}
	return clip(cmp.Or(e.ClientName, e.User))
}

// Client returns the name of e's client: as Named, or its address.
func Client(e *audit.Entry) string {
	if named := Named(e); named != "" {
		return named
	}
	if host, _, err := net.SplitHostPort(e.Client); err == nil {
		return clip(host)
	}
	return clip(e.Client)
}

// Site returns the host of e. Which sites exempt clients visit is not counted.
func Site(e *audit.Entry) string {
	switch {
	case e.Decision.Reason == rules.ReasonExempt:
		return audit.People
	case e.Host == "":
		return "(no host)"
	}
	return clip(e.Host)
}

func clip(s string) string { return s[:min(len(s), maxName)] }

// name is the counts of one name in one period.
type name struct {
	text    string
	rank    uint64 // its requests, and those of the names whose place it took
	at      int    // its index in the heap
	classes [reason.Failed + 1]uint64
	waits   uint64
	waited  time.Duration
	traffic Traffic
}

// table holds the names of one period, and a heap of them with the lowest rank first.
type table struct {
	names map[string]*name
	heap  ranks
}

// take returns the counts of a name, whose rank it raises by one. A new name in a full
// table takes the place and the rank of the lowest one.
func (t *table) take(text string) *name {
	n := t.names[text]
	switch {
	case n != nil:
	case len(t.heap) < maxNames:
		if t.names == nil {
			t.names = map[string]*name{}
		}
		n = &name{text: strings.Clone(text)} // it may be part of a whole request
		t.names[n.text] = n
		heap.Push(&t.heap, n)
	default:
		n = t.heap[0]
		delete(t.names, n.text)
		*n = name{text: strings.Clone(text), rank: n.rank, at: n.at}
		t.names[n.text] = n
	}
	n.rank++
	heap.Fix(&t.heap, n.at)
	return n
}

// addTo adds the counts of t to those of all.
func (t *table) addTo(all map[string]*name) {
	for text, n := range t.names {
		sum := all[text]
		if sum == nil {
			sum = &name{}
			all[text] = sum
		}
		for class, count := range n.classes {
			sum.classes[class] += count
		}
		sum.waits += n.waits
		sum.waited += n.waited
		sum.traffic.Add(&n.traffic)
	}
}

// ranks implements heap.Interface.
type ranks []*name

// Len implements heap.Interface.
func (r ranks) Len() int { return len(r) }

// Less implements heap.Interface: the lowest rank is first.
func (r ranks) Less(i, j int) bool { return r[i].rank < r[j].rank }

// Swap implements heap.Interface.
func (r ranks) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].at, r[j].at = i, j
}

// Push implements heap.Interface.
func (r *ranks) Push(n any) {
	n.(*name).at = len(*r)
	*r = append(*r, n.(*name))
}

// Pop implements heap.Interface. No name is removed from the heap.
func (r *ranks) Pop() any { panic("busy: names are replaced, not removed") }
