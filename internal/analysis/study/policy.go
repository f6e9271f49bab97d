package study

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"heed/rules"
)

// class is how a request counts in the table of obedience. Each request is in one.
type class uint8

const (
	classRobots      class = iota // the robots.txt itself
	classAllowed                  // the file in force allows it
	classRefused                  // the file in force does not allow it
	classGrace                    // it does not, but one that was in force within the last 24 h does
	classUnavailable              // the site has no file (4xx): everything is allowed
	classUnreachable              // the file could not be read (5xx, 429)
	classUnknown                  // no file is known for this site and time
	classNoPath                   // CONNECT, "*" and what is no request: nothing to judge
	classes
)

// classNames are the names of classes in outputs.
var classNames = [classes]string{"robots.txt", "allowed", "not allowed", "within cache life", "no robots.txt", "robots.txt unreachable", "rules unknown", "no path"}

// String returns the name of c.
func (c class) String() string { return classNames[c] }

// Version is a robots.txt of a site from a time on.
type Version struct {
	Site   string    // the host
	From   time.Time // zero: from the beginning of the log
	Source string    // where it is from, for people
	Status int       // of the answer; 0: not known, a file, unless Failed
	Failed bool      // there was no answer that could be used
	Body   []byte    // the file; nil: there was none

	// nameKey is the rules.NameKey of the client under whose name it was asked; empty: it is
	// for all.
	nameKey string

	rank   int // of the kind of source; lower goes first
	state  rules.State
	policy *rules.Policy
	sha    string
	from   int64 // microseconds
	number int   // of the site, from 1
}

// The kinds of sources, the most trusted first.
const (
	rankFile = iota
	rankWARC
	rankRecord
	rankLog
)

// Policies are the known robots.txt files, by site and time.
type Policies struct {
	versions map[string][]*Version // by site; empty: of files that name none
	compiled map[rules.Digest]*rules.Policy
}

// Empty reports whether no file is known.
func (p *Policies) Empty() bool { return p == nil || len(p.versions) == 0 }

// add adds a version. Files of the same octets are compiled once.
func (p *Policies) add(v *Version) {
	if p.versions == nil {
		p.versions, p.compiled = map[string][]*Version{}, map[rules.Digest]*rules.Policy{}
	}
	if v.from = math.MinInt64; !v.From.IsZero() {
		v.from = v.From.UnixMicro()
	}
	digest := rules.DigestOf(v.Body)
	v.sha = digest.String()
	if v.state = stateOf(v.Status); v.Failed {
		v.state = rules.Unreachable
	}
	if v.state != rules.Available {
		v.policy, v.sha = rules.New(rules.Source{State: v.state, Status: v.Status}, nil), ""
	} else if v.policy = p.compiled[digest]; v.policy == nil {
		v.policy = rules.New(rules.Source{State: v.state}, v.Body)
		p.compiled[digest] = v.policy
	}
	if v.Site != "" {
		v.Site = siteName(v.Site)
	}
	p.versions[v.Site] = append(p.versions[v.Site], v)
}

// stateOf returns what the status of an answer means (RFC 9309 §2.3.1); 0 is a file.
func stateOf(status int) rules.State {
	switch {
	case status == 0, status >= 200 && status < 300:
		return rules.Available
	case status >= 400 && status < 500 && status != 429:
		return rules.Unavailable
	}
	return rules.Unreachable
}

// versionsOf returns the versions of a site, as named there.
func (p *Policies) versionsOf(site string) []*Version {
	if all := p.versions[site]; len(all) > 0 {
		return all
	}
	return p.versions[""]
}

// forName returns those of versions that are in force for the clients of a key
// (rules.InForce); empty: for those without versions of their own.
func forName(versions []*Version, key string) []*Version {
	answers := make([]rules.Answer, len(versions))
	for i, v := range versions {
		denied := v.Status == http.StatusUnauthorized || v.Status == http.StatusForbidden
		answers[i] = rules.Answer{For: v.nameKey, File: v.state == rules.Available, Denied: denied, Failed: v.state == rules.Unreachable}
	}
	best := rules.InForce(answers, key)
	if best < 0 {
		return nil
	}
	other := answers[best].For != "" && answers[best].For != key // a denial of it counts for all
	var held []*Version
	for i, v := range versions {
		if other && answers[i].Denied || !other && answers[i].For == answers[best].For {
			held = append(held, v)
		}
	}
	return held
}

// line is the robots.txt files of a site that are in force for a client, in the order of time.
type line struct {
	timeline []*Version
	at       int // the version in force; -1: none is
}

// newLine returns versions in the order of time, of which at any time the last one is in
// force. Of several sources that know the file of a time, the first rank counts. A version
// that is the same as the one before it is left out. Their numbers begin after before.
func newLine(versions []*Version, before int) *line {
	all := slices.Clone(versions)
	slices.SortStableFunc(all, func(a, b *Version) int { return cmp.Compare(a.from, b.from) })
	var kept []*Version
	var current [rankLog]*Version
	for _, v := range all {
		current[v.rank] = v
		first := slices.IndexFunc(current[:], func(c *Version) bool { return c != nil })
		best := current[first]
		if last := len(kept) - 1; last >= 0 && kept[last].same(best) || best != v {
			continue
		}
		next := *v
		next.number = before + len(kept) + 1
		if last := len(kept) - 1; last >= 0 && kept[last].from == v.from {
			next.number, kept = kept[last].number, kept[:last]
		}
		kept = append(kept, &next)
	}
	return &line{timeline: kept, at: -1}
}

// same reports whether two versions say the same.
func (v *Version) same(o *Version) bool {
	return v.policy == o.policy || v.state != rules.Available && v.state == o.state && v.Status == o.Status
}

// site is a host of the log.
type site struct {
	name       string
	requests   int64
	disordered int64
	*line                       // of clients that have none of their own
	named      map[string]*line // of clients with versions of their own, by rules.NameKey
	perVersion map[int]int64    // requests by version
	status     rules.State      // by the log's own requests for robots.txt
	observed   bool             // status is known
}

// begun reports whether v is in force at a time. A log of whole seconds, or milliseconds, does
// not say when in one of them a request was: one in that in which v came into force counts as
// after it.
func (v *Version) begun(t int64) bool {
	from := v.from
	for _, unit := range []int64{1_000_000, 1000} { // microseconds
		if t%unit == 0 && from != math.MinInt64 {
			from -= (from%unit + unit) % unit
			break
		}
	}
	return from <= t
}

// setLines sets the lines of a site whose robots.txt files are known.
func (s *site) setLines(versions []*Version) {
	s.line = newLine(forName(versions, ""), 0)
	last := len(s.timeline)
	for _, v := range versions {
		if v.nameKey == "" || s.named[v.nameKey] != nil {
			continue
		}
		own := newLine(forName(versions, v.nameKey), last)
		s.named[v.nameKey] = own
		last += len(own.timeline)
	}
}

// lineOf returns the files in force for an agent.
func (s *site) lineOf(w *who) *line {
	if len(s.named) > 0 {
		if own := s.named[rules.NameKey(w.text)]; own != nil {
			return own
		}
	}
	return s.line
}

// versions returns all versions of a site, in the order of their numbers.
func (s *site) versions() []*Version {
	all := slices.Clone(s.timeline)
	for _, own := range s.named {
		all = append(all, own.timeline...)
	}
	slices.SortFunc(all, func(a, b *Version) int { return cmp.Compare(a.number, b.number) })
	return all
}

// advance makes the version of time t the one in force.
func (s *line) advance(t int64) {
	for s.at+1 < len(s.timeline) && s.timeline[s.at+1].begun(t) {
		s.at++
	}
}

// inForce returns the version in force; nil when none is known.
func (s *line) inForce() *Version {
	if s.at < 0 {
		return nil
	}
	return s.timeline[s.at]
}

// next returns the version after the one in force; nil without one.
func (s *line) next() *Version {
	if s.at >= 0 && s.at+1 < len(s.timeline) {
		return s.timeline[s.at+1]
	}
	return nil
}

// observe takes in the status of the log's own robots.txt. A 401 or 403 may be meant for
// that one client, a redirect leads elsewhere and a 304 changes nothing.
func (s *site) observe(status int) {
	switch {
	case status == 401, status == 403, status < 200, status >= 300 && status < 400:
		return
	}
	s.status, s.observed = stateOf(status), true
}

// verdict is what the rules say about a request.
type verdict struct {
	class   class
	version int           // the number of the version in force; 0: none is known
	age     time.Duration // of that version; negative: its beginning is not known
	line    int           // of the rule; 0: none decided
	delay   time.Duration // that the version asks for; 0: none
	judged  bool          // by the version in force: allowed or not
	allowed bool
	// by the version that follows
	hasNext, nextAllowed bool
	nextDelay            time.Duration
}

// judge returns the verdict on a request.
func (s *site) judge(e *event) (v verdict) {
	v.age = -1
	current := e.line.inForce()
	if current != nil {
		if v.version = current.number; current.from != math.MinInt64 {
			v.age = time.Duration(max(0, e.at-current.from)) * time.Microsecond
		}
	}
	switch {
	case e.robots:
		v.class = classRobots
	case e.target == "":
		v.class = classNoPath
	case current == nil:
		v.class = s.withoutFile()
	default:
		s.byVersion(e, current, &v)
	}
	if current == nil || current.state != rules.Available {
		return v
	}
	v.delay = rules.LongestDelay(current.policy.RateHints(e.who.agent), e.Time)
	if next := e.line.next(); next != nil && next.state == rules.Available {
		v.hasNext = true
		v.nextDelay = rules.LongestDelay(next.policy.RateHints(e.who.agent), e.Time)
		v.nextAllowed = e.robots || e.target == "" || next.policy.Decide(e.who.agent, rules.NewTarget(e.target)).Verdict == rules.Allow
	}
	return v
}

// withoutFile returns the class of a request where no file is known: the log itself may
// show that there was none.
func (s *site) withoutFile() class {
	if c, known := withoutRules[s.status]; known && s.observed {
		return c
	}
	return classUnknown
}

// withoutRules are the classes of requests while a site has no file.
var withoutRules = map[rules.State]class{rules.Unavailable: classUnavailable, rules.Unreachable: classUnreachable}

// byVersion judges a request by the version in force.
func (s *site) byVersion(e *event, current *Version, v *verdict) {
	if c, known := withoutRules[current.state]; known {
		v.class = c
		return
	}
	d := current.policy.Decide(e.who.agent, rules.NewTarget(e.target))
	v.line = d.Line
	switch {
	case d.Reason == rules.ReasonMalformed:
		v.class = classNoPath
		return
	case d.Reason == rules.ReasonTooComplex, d.Reason == rules.ReasonRobotsUnreachable:
		v.class = classUnreachable
		return
	}
	v.judged, v.allowed = true, d.Verdict == rules.Allow
	switch {
	case v.allowed:
		v.class = classAllowed
	case e.line.allowedBefore(e):
		v.class = classGrace
	default:
		v.class = classRefused
	}
}

// allowedBefore reports whether a version that was in force within the last 24 hours
// allows a request.
func (s *line) allowedBefore(e *event) bool {
	for i := s.at; i > 0 && e.at-s.timeline[i].from < grace.Microseconds(); i-- {
		switch before := s.timeline[i-1]; before.state {
		case rules.Unavailable:
			return true
		case rules.Available:
			if before.policy.Decide(e.who.agent, rules.NewTarget(e.target)).Verdict == rules.Allow {
				return true
			}
		}
	}
	return false
}
