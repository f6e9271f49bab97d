package pace

import (
	"cmp"
	"time"

	"heed/rules"
)

// Settings configure pacing. The zero value clamps every delay to zero and makes
// no request wait: MaxDelay and MaxWait need values.
type Settings struct {
	MinDelay    time.Duration `toml:"min_delay"`    // between two requests to one origin, of all clients; 0: the operator sets none
	MaxDelay    time.Duration `toml:"max_delay"`    // the longest delay that is kept; longer ones are clamped and noted
	MaxWait     time.Duration `toml:"max_wait"`     // for a turn
	MaxParallel int           `toml:"max_parallel"` // requests to one origin under way; 0: any number
	ByAgent     bool          `toml:"-" json:"-"`   // each product token has separate turns; otherwise all clients of a group share them
	ObeyVisits  bool          `toml:"-" json:"-"`   // Visit-time is kept; otherwise it is noted
	PaceObserve bool          `toml:"-" json:"-"`   // requests that are only observed wait, too
	ByAddress   bool          `toml:"-" json:"-"`   // all names of one address keep MinDelay together; otherwise each site does
}

// Ask is a request for a turn.
type Ask struct {
	*Settings // in force; the Pacer sets them
	Origin    rules.Origin
	Hints     []*rules.RateHint // of the groups that govern it; a turn is taken in each
	Fetched   time.Time         // when heed itself last asked the origin for its robots.txt; zero: not known

	Agent  string // its product token; for ByAgent
	Client string // turns alternate between clients,
	Name   string // and between the names of one client
	Target string // method and target of the request; identifies a request that comes back
	Who    Who    // for List

	// RobotsTxt marks a request for /robots.txt: it does not wait, unless such
	// requests are so frequent that others would never start.
	RobotsTxt bool
	// Rules returns the delays that the site asks for. It is called when they are needed,
	// because the rules are not known before a request for robots.txt, and may block. Nil: none
	// are known.
	Rules func() []*rules.RateHint
	// Patience is the client's own limit of the wait. Nil: MaxWait applies.
	Patience *time.Duration
	// Observed marks a request that is only observed. Unless PaceObserve is set it
	// starts immediately, and the Answer contains what it would owe.
	Observed bool
	// Waiting is called once, when a wait begins. Nil: it is not reported.
	Waiting func(Position)
}

// patience returns for how long the request may wait.
func (a *Ask) patience() time.Duration { return *cmp.Or(a.Patience, &a.MaxWait) }

// exempt reports whether the request waits for no turn.
func (a *Ask) exempt() bool { return a.Observed && !a.PaceObserve }

// Position is the position of a request in the queue. Durations are as they were when the wait began.
type Position struct {
	Asked  time.Duration // between two requests, as is asked for: by the site, or by the operator's MinDelay
	Delay  time.Duration // that is kept: Asked, clamped
	By     rules.Field   // the line that asks; zero: MinDelay does
	Wait   time.Duration // until the turn, estimated
	Ahead  int           // requests that come first
	Others int           // requests that wait for the same site
	Pause  time.Duration // the part of Wait that is due to a pause of the site
	// RobotsTxt says that Delay is what requests for robots.txt keep.
	RobotsTxt bool
	Visit     rules.Field // the Visit-time outside of which the request comes; zero: none
	// Store is the fleet's store, when it was never reached: no turn is given until it
	// was. Empty: it was, or there is no fleet.
	Store string
	// Address is the address whose names keep MinDelay together, when the wait is for the turn
	// of that. Empty: it is for that of the site.
	Address string
}

// lane is one sequence of turns at an origin: no two requests in it start closer
// than the delay.
type lane struct {
	name    string
	next    time.Time     // no request starts before
	delay   time.Duration // of the last turn; of the first to come before there was one
	pending *permit       // a turn that has been given and has not started; nil: none
	round   uint64        // of the fair order that has been served

	others  int       // requests of other heeds that wait for it, as of the last answer
	waiting int       // tickets in the queue
	plan    gap       // site.plan's own
	promise time.Time // site.dispatch's own: when the first that waits is due; zero: none waits
}

// gap is where there is room in a lane while turns are planned: after the last of
// them, from free on, and before it between from and until, where a turn that
// waits for another lane as well leaves some. Without such room until is zero, and
// from is free. So a robot for which robots.txt asks for ten seconds does not keep one that
// waits for the operator's min_delay of one second from its turns, or has it refused.
type gap struct{ from, until, free time.Time }

// step is a lane with the delay that one request keeps in it.
type step struct {
	*lane
	delay time.Duration
}

// Names of lanes that are not of a group.
const (
	floorLane = "\x00floor" // of the operator's MinDelay, for all requests
	pauseLane = "\x00pause" // of sites without a delay, when a pause ends
	otherLane = "\x00other" // of groups beyond bounds.lanes
)

// afterPause is the delay between requests that a pause has delayed, at sites without another
// delay: a site that asked for a pause must not get all requests at its end.
const afterPause = 200 * time.Millisecond

// laneDelays returns the lanes that a request takes its turns in at now, and adds the delay that
// they imply to p.
func (a *Ask) laneDelays(now time.Time, p *Position) (all []Lane) {
	own := ""
	if a.ByAgent {
		own = "\x00" + a.Agent
	}
	if a.MinDelay > 0 {
		all = append(all, Lane{Name: floorLane + own, Delay: a.clamp(a.MinDelay)})
		p.Asked = a.MinDelay
	}
	for _, w := range a.Hints {
		asked, by := w.Delay(now)
		if asked <= 0 {
			continue
		}
		all = append(all, Lane{Name: w.Group + own, Delay: a.clamp(asked)})
		if asked >= p.Asked {
			p.Asked, p.By = asked, by
		}
	}
	p.Delay = a.clamp(p.Asked)
	return all
}

func (a *Ask) clamp(d time.Duration) time.Duration { return min(d, a.MaxDelay) }

// visitStart returns the start of the site's next Visit-time, and the line that sets
// it; now and zero when the site may be visited now.
func (a *Ask) visitStart(now time.Time) (from time.Time, by rules.Field) {
	from = now
	for _, w := range a.Hints {
		if t, line := w.NextVisit(now); t.After(from) {
			from, by = t, line
		}
	}
	return from, by
}
