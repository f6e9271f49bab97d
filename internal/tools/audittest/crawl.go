package audittest

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/rules"
)

// Crawl says what kind of crawl is made up. The same Crawl is the same one each
// time, but for the ids of its decisions and for the id of the record.
type Crawl struct {
	Entries   int
	Sites     int       // 0: one for each hundred entries
	PerSecond int       // requests; 0: 20
	Begin     time.Time // zero: 2026-03-01, 08:00 UTC
	Seed      uint64

	// Config and Settings are those of every Entry.
	Config, Settings string
}

const atATime = 16 // requests under way

// clients are who asks.
var clients = []struct{ address, name, userAgent, mode string }{
	{"192.0.2.10", "", "ExampleBot/2.1 (+https://bot.example/about)", "enforce"},
	{"192.0.2.11", "", "ExampleBot/2.1 (+https://bot.example/about)", "enforce"},
	{"192.0.2.12", "", "Mozilla/5.0 (compatible; LabCrawler/1.4; +https://lab.example/bot)", "enforce"},
	{"192.0.2.13", "survey", "python-requests/2.32.3", "observe"},
	{"2001:db8::7", "", "NewsReader/0.9", "enforce"},
}

// Write makes up the record at path.
func (c Crawl) Write(path string, o store.Options) error {
	m := c.maker()
	var clock atomic.Int64 // the Writer looks at it from goroutines of its own
	clock.Store(m.now.UnixMicro())
	o.Now = func() time.Time { return time.UnixMicro(clock.Load()).UTC() }
	w, err := store.Open(path, o)
	if err != nil {
		return err
	}
	var committed time.Time
	err = m.each(func(e *audit.Entry) error {
		clock.Store(m.now.UnixMicro())
		return w.Decided(e)
	}, func(e *audit.Entry) error {
		clock.Store(m.now.UnixMicro())
		w.Ended(e)
		if m.now.Sub(committed) < 700*time.Millisecond { // as a Writer does by the clock
			return nil
		}
		committed = m.now
		return w.Complete()
	})
	if closing := w.Close("heed: cut off, since heed is stopping"); err == nil {
		err = closing
	}
	return err
}

// Each calls decided with every decision, in their order, and ended when the
// exchange is over and Outcome is set: some later than others. The first error
// ends it.
func (c Crawl) Each(decided, ended func(*audit.Entry) error) error {
	return c.maker().each(decided, ended)
}

func (c Crawl) maker() *maker {
	if c.Sites == 0 {
		c.Sites = max(1, c.Entries/100)
	}
	if c.PerSecond == 0 {
		c.PerSecond = 20
	}
	if c.Begin.IsZero() {
		c.Begin = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	}
	m := &maker{Crawl: c, random: rand.New(rand.NewPCG(c.Seed, 9309)), now: c.Begin, sites: make([]site, c.Sites)}
	for i := range clients {
		m.agents = append(m.agents, rules.Identify(clients[i].userAgent))
	}
	return m
}

// maker is a Crawl being made up.
type maker struct {
	Crawl
	random *rand.Rand
	now    time.Time
	agents []*rules.Agent
	sites  []site
	near   []int // the sites that are visited at this time
}

func (m *maker) each(decided, ended func(*audit.Entry) error) error {
	open := make([]*audit.Entry, 0, atATime)
	end := func(i int) error {
		e := open[i]
		open[i] = open[len(open)-1]
		open = open[:len(open)-1]
		e.Outcome = m.outcome(e)
		return ended(e)
	}
	for i := range m.Entries {
		m.now = m.now.Add(time.Duration(m.random.ExpFloat64() * float64(time.Second) / float64(m.PerSecond)))
		e := m.entry(i)
		if err := decided(e); err != nil {
			return err
		}
		if open = append(open, e); len(open) == atATime {
			if err := end(m.random.IntN(atATime)); err != nil {
				return err
			}
		}
	}
	for len(open) > 0 {
		if err := end(len(open) - 1); err != nil {
			return err
		}
	}
	return nil
}

// entry is a request to one of the sites that are crawled at this time: a crawl
// goes through a few dozen at a time.
func (m *maker) entry(i int) *audit.Entry {
	if m.near == nil {
		for range min(32, len(m.sites)) {
			m.near = append(m.near, m.random.IntN(len(m.sites)))
		}
	}
	if m.random.IntN(40) == 0 {
		m.near[m.random.IntN(len(m.near))] = m.random.IntN(len(m.sites))
	}
	number := m.near[m.random.IntN(len(m.near))]
	who := m.random.IntN(len(clients))
	if m.random.IntN(10) > 0 {
		who = number % 3 // most sites are one crawler's
	}
	client := &clients[who]
	e := &audit.Entry{
		ID: m.id(), Time: m.now, Client: address(client.address, 32768+i%28232), ClientName: client.name, Mode: client.mode,
		Config: m.Config, Settings: m.Settings, Agent: m.agents[who], UserAgent: client.userAgent, Method: http.MethodGet,
	}
	m.judge(e, number)
	return e
}

func address(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

// id is a decision's, of the time that it is in the crawl.
func (m *maker) id() (id [16]byte) {
	id = audit.NewID()
	ms := m.now.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}

// judge fills in what e asks of the site, and what is decided.
func (m *maker) judge(e *audit.Entry, number int) {
	s := &m.sites[number]
	if s.policy == nil || m.now.After(s.policy.Source().FreshUntil) {
		m.fetch(s, number)
	}
	p := s.policy
	source := p.Source()
	e.Scheme, e.Host = source.Origin.Scheme, source.Origin.Host
	e.Policy, e.Judged, e.Target = p, audit.ByPath, m.target(s)
	if source.State != rules.Unreachable {
		e.PolicyAge = max(0, m.now.Sub(source.FetchedAt))
	}
	switch m.random.IntN(500) {
	case 0: // a tunnel that is not looked into
		e.Method, e.Target, e.Judged, e.Policy = http.MethodConnect, "", audit.NotJudged, nil
		e.Scheme, e.Decision = "https", rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonTunnel}
		return
	case 1:
		e.Judged, e.Policy, e.Decision = audit.NotJudged, nil, rules.Decision{Reason: rules.ReasonDestination}
		e.Detail = "the address 10.0.0.7 is one of heed's own network"
		return
	case 2:
		e.Target, e.Raw = e.Target+"?q=%C3%BC", e.Target+"?q=ü"
	}
	e.Decision = p.Decide(e.Agent, rules.NewTarget(e.Target))
	if e.Mode == "observe" && e.Decision.Verdict == rules.Refuse {
		e.Decision.Verdict = rules.WouldRefuse
	}
	if number%3 > 0 && source.State == rules.Available {
		e.DelayAsked = time.Duration(1+number%10) * time.Second // as its robots.txt says
	}
	e.Outcome.Waited = time.Duration(m.random.IntN(400)) * time.Microsecond
	if m.random.IntN(20) == 0 {
		if number%3 > 0 && source.State == rules.Available {
			e.DelayAsked = time.Duration(1+number%10) * time.Second // as its robots.txt says
		}
		e.Outcome.Waited = time.Duration(m.random.IntN(900)) * time.Millisecond
	}
}

// outcome is how e ended.
func (m *maker) outcome(e *audit.Entry) audit.Outcome {
	o := audit.Outcome{Waited: e.Outcome.Waited, Duration: time.Duration(m.random.ExpFloat64() * float64(180*time.Millisecond))}
	switch {
	case e.Decision.Verdict == rules.Refuse:
		o.Status, o.BytesOut, o.Duration = 403, int64(420+m.random.IntN(80)), time.Duration(200+m.random.IntN(900))*time.Microsecond
		if e.Decision.Reason == rules.ReasonRobotsUnreachable {
			o.Status = 503
		}
		return o
	case e.Method == http.MethodConnect:
		o.Status, o.BytesIn, o.BytesOut = 200, int64(m.random.IntN(9000)), int64(m.random.IntN(90000))
		return o
	}
	o.FromSite, o.Status = true, 200
	o.BytesOut = int64(m.random.ExpFloat64() * 30000)
	switch n := m.random.IntN(100); {
	case n < 6:
		o.Status, o.BytesOut = 404, 1200
	case n < 10:
		o.Status, o.BytesOut = 301, 0
	case n < 12:
		o.Status, o.BytesOut = 403, 300
	case n == 12:
		o.Status, o.FromSite, o.BytesOut, o.Truncated = 502, false, 380, true
		o.End(audit.BySite, "connection reset by peer")
	case n == 13:
		o.Truncated = true
		o.End(audit.ByClient, "left before the answer was complete")
	}
	return o
}
