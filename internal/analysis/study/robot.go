package study

import (
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"heed/internal/base/memo"
	"heed/internal/output/figures"
)

// robot is a product token at a site.
type robot struct {
	id         uint64
	site       *site
	token      string
	category   string
	known      bool
	requests   int64
	bytes      int64
	addresses  int64
	userAgents int64
	actors     int64
	classes    [classes]int64

	// robots.txt
	askTimes  []int64
	otherSeen bool // a request for something else
	askFirst  bool // the first request of all was for robots.txt
	statuses  map[int]int64

	last    int64 // the last request that was no request for robots.txt
	started bool
	whole   pauses // between the requests of all its clients
	each    pauses // between those of one client
	fastest figures.Fastest

	sessions   int64
	robotsHead int64 // sessions that begin with robots.txt
	durations  []uint32
	lengths    []uint32

	refusals map[int]int64 // by status

	fetched, repeated, repeatedBytes, notModified int64
	kimGaps, kimKept, kimEndpoint                 int64

	spans   map[int]*span // by version
	outside side          // of the published ranges
	inside  side
}

// pauses are times between successive requests.
type pauses struct {
	gaps                         []uint32 // milliseconds, at most 49 days
	limited, kept, near, unclear int64
	asked                        time.Duration // the longest delay asked for
}

// add adds a gap under a delay, both in microseconds.
func (p *pauses) add(gap, delay int64) {
	p.gaps = append(p.gaps, uint32(min(max(gap, 0)/1000, 1<<32-1)))
	if delay == 0 {
		return
	}
	p.limited++
	p.asked = max(p.asked, time.Duration(delay)*time.Microsecond)
	if figures.Keeps(gap, delay) {
		p.kept++
	}
	if figures.Keeps(gap*10, delay*9) {
		p.near++
	}
	const second = 1_000_000
	if gap-second < delay && delay < gap+second {
		p.unclear++
	}
}

// span is what a robot did under one version of a file. The first 24 hours under it are
// left out: copies of the version before may be in use (RFC 9309 §2.4).
type span struct {
	all, robots                  int64
	judged, refused, nextRefused int64
	gaps, gapsKept, nextKept     int64
	nextJudged                   int64
	delayed, nextDelayed         bool
}

// side is the part of a robot's requests from some addresses.
type side struct {
	requests, robots, judged, refused, limited, kept int64
	networks                                         int64
}

func (s *side) add(o *side) {
	s.requests += o.requests
	s.robots += o.robots
	s.judged += o.judged
	s.refused += o.refused
	s.limited += o.limited
	s.kept += o.kept
	s.networks++
}

// add adds a request.
func (r *robot) add(e *event) {
	r.requests++
	r.bytes += e.Bytes
	r.classes[e.verdict.class]++
	switch e.Status {
	case 401, 402, 403, 429, 503:
		r.refusals[e.Status]++
	}
	if e.robots {
		r.ask(e)
	}
	sp := r.span(e)
	if sp != nil {
		sp.add(e)
	}
	if e.robots {
		return
	}
	r.otherSeen = true
	if r.started {
		gap := e.at - r.last
		r.whole.add(gap, e.verdict.delay.Microseconds())
		if sp != nil {
			sp.gap(gap, &e.verdict)
		}
	}
	r.last, r.started = e.at, true
	r.fastest.Add(e.at)
}

// ask counts a request for robots.txt.
func (r *robot) ask(e *event) {
	if len(r.askTimes) == 0 {
		r.askFirst = !r.otherSeen
	}
	r.statuses[e.Status]++
	r.askTimes = append(r.askTimes, e.at)
}

func (r *robot) asks() int64 { return int64(len(r.askTimes)) }

// span returns the counts under the version in force; nil when none is, or it has just
// replaced another.
func (r *robot) span(e *event) *span {
	v := &e.verdict
	if v.version == 0 || v.version > 1 && v.age < grace {
		return nil
	}
	return memo.At(r.spans, v.version)
}

func (sp *span) add(e *event) {
	v := &e.verdict
	sp.all++
	if e.robots {
		sp.robots++
	}
	if v.judged {
		sp.judged++
		if !v.allowed {
			sp.refused++
		}
	}
	if v.hasNext && v.class != classRobots && v.class != classNoPath {
		sp.nextJudged++
		if !v.nextAllowed {
			sp.nextRefused++
		}
	}
}

func (sp *span) gap(gap int64, v *verdict) {
	sp.gaps++
	if v.delay > 0 {
		sp.delayed = true
		if figures.Keeps(gap, v.delay.Microseconds()) {
			sp.gapsKept++
		}
	}
	if v.nextDelay > 0 {
		sp.nextDelayed = true
		if figures.Keeps(gap, v.nextDelay.Microseconds()) {
			sp.nextKept++
		}
	}
}

func (s *side) count(e *event) {
	s.requests++
	if e.robots {
		s.robots++
	}
	switch e.verdict.class {
	case classAllowed, classGrace:
		s.judged++
	case classRefused:
		s.judged++
		s.refused++
	}
}

// actor is a robot at a site, from one network.
type actor struct {
	robot   *robot
	id      uint64
	network uint32
	side

	last, lastPage int64
	session        int64 // its begin
	sessionLength  uint32
	sessionNumber  uint32
	sessionRobots  bool // it begins with robots.txt
	started        bool

	pages, assets uint32
	favicon       bool
}

// add adds a request.
func (a *actor) add(e *event) {
	if a.requests == 0 || e.at-a.last > sessionEnd.Microseconds() {
		a.endSession()
		a.session, a.sessionRobots = e.at, e.robots
		a.sessionNumber++
	}
	a.sessionLength++
	a.last = e.at
	a.count(e)
	if e.robots {
		return
	}
	if a.started {
		delay := e.verdict.delay.Microseconds()
		gap := e.at - a.lastPage
		a.robot.each.add(gap, delay)
		if delay > 0 {
			a.limited++
			if figures.Keeps(gap, delay) {
				a.kept++
			}
		}
	}
	a.lastPage, a.started = e.at, true
}

// endSession counts the session that is over, if there is one.
func (a *actor) endSession() {
	if a.sessionLength == 0 {
		return
	}
	r := a.robot
	r.sessions++
	if a.sessionRobots {
		r.robotsHead++
	}
	r.durations = append(r.durations, uint32(min((a.last-a.session)/1000, 1<<32-1)))
	r.lengths = append(r.lengths, a.sessionLength)
	a.sessionLength = 0
}

// look notes whether a client without a robot's name loads what browsers load.
func (a *actor) look(e *event) {
	target := pathOf(e.target)
	switch {
	case e.robots, target == "":
	case strings.HasSuffix(target, "/favicon.ico"):
		a.favicon = true
	case asset(target):
		a.assets++
	default:
		a.pages++
	}
}

// asset reports whether a path is of a file that pages load.
func asset(target string) bool {
	switch strings.ToLower(path.Ext(target)) {
	case ".css", ".js", ".mjs", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".woff", ".woff2", ".ttf", ".otf", ".map":
		return true
	}
	return false
}

// partKey is a token of an AI robot that a User-Agent string contains, at a site.
type partKey struct {
	site  *site
	token string
}

// partCount is Liu et al.'s row of an agent.
type partCount struct{ requests, robots, other, outside int64 }

// addParts counts a request under each token that its User-Agent string contains.
func (s *Study) addParts(e *event) {
	for _, token := range e.who.parts {
		c := memo.At(s.parts, partKey{e.site, token})
		c.requests++
		ranges, published := s.Ranges[token]
		switch {
		case published && !contains(ranges, e.place.addr):
			c.outside++
		case e.robots:
			c.robots++
		default:
			c.other++
		}
	}
}

func contains(ranges []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// pathOf returns a target without its query.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}
