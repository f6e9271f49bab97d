package pace

import (
	"time"

	"heed/rules"
)

// Settings say how turns are kept. The zero value keeps what sites ask for, lets
// nobody wait and clamps every delay to nothing: MaxDelay and MaxWait want
// values.
type Settings struct {
	MinDelay    time.Duration // between two requests to one origin, whoever makes them; 0: none of the operator's own
	MaxDelay    time.Duration // the longest delay that is kept; what is asked for beyond it is clamped, and told
	MaxWait     time.Duration // for a turn
	MaxParallel int           // requests to one origin under way; 0: any number
	ByAgent     bool          // each product token has turns of its own; otherwise all that a group governs share them
	ObeyVisits  bool          // Visit-time is kept; otherwise it is noted
}

// Ask is a request that wants to start.
type Ask struct {
	Settings
	Origin  rules.Origin
	Wishes  []*rules.Wish // of the groups that govern it; a turn is taken in each
	Fetched time.Time     // when heed itself last asked the origin for its robots.txt; zero: not known

	Agent  string // the product token that it goes by; for ByAgent
	Client string // turns go round between clients,
	Name   string // and between names that one client goes by
	Target string // what is asked for: coming back for it is known by that

	// RobotsTxt says that it is for /robots.txt: it waits for nobody, unless such
	// requests come so often that others would never start.
	RobotsTxt bool
	// Rules returns what the site asks for, once that matters: for RobotsTxt the
	// rules are not known beforehand. It may take its time. Nil: nothing is known.
	Rules func() []*rules.Wish
	// NoWait has the request start at once: what it would owe is told.
	NoWait bool
	// Waiting is called once, when a wait begins. Nil: nobody wants to know.
	Waiting func(Place)
}

// Place is where a request stands. Durations are as they were when the wait began.
type Place struct {
	Asked  time.Duration // between two requests, as is asked for: by the site, or by the operator's MinDelay
	Delay  time.Duration // that is kept: Asked, clamped
	By     rules.Field   // the line that asks; zero: MinDelay does
	Wait   time.Duration // until the turn, as far as can be told
	Ahead  int           // requests that come first
	Others int           // requests that wait for the same site
	Held   time.Duration // of the time until the turn, what the site asked for with Retry-After, or by failing
	// RobotsTxt says that Delay is what requests for robots.txt keep.
	RobotsTxt bool
	Visit     rules.Field // the Visit-time outside of which the request comes; zero: none
}

// lane is one sequence of turns at an origin: no two requests in it start closer
// than the delay.
type lane struct {
	name  string
	next  time.Time     // nobody starts before
	delay time.Duration // of the last turn; of the first to come before there was one
	held  *Turn         // a turn that has been given and has not started; nil: none
	round uint64        // of the fair order that has been served

	others  int       // of other heeds, that ask for turns in it, as last heard
	waiting int       // tickets in the queue
	plan    gap       // site.plan's own
	promise time.Time // site.dispatch's own: when the first that waits is due; zero: nobody does
}

// gap is where there is room in a lane while turns are planned: after the last of
// them, from free on, and before it between from and until, where a turn that
// waits for another lane as well leaves some. Without such room until is zero, and
// from is free.
type gap struct{ from, until, free time.Time }

// step is a lane with the delay that one request keeps in it.
type step struct {
	*lane
	delay time.Duration
}

// stride is what a request keeps in a lane, before there is one.
type stride struct {
	name  string
	delay time.Duration
}

// Names of lanes that are no group's.
const (
	floorLane = "\x00floor" // of the operator's MinDelay: everybody's
	pauseLane = "\x00pause" // of sites that nobody paces, when a pause ends
	otherLane = "\x00other" // of groups beyond maxLanes
)

// afterPause is the delay between requests that a pause has held back, where no
// other is kept: who asked for a pause is not to be stormed when it is over.
const afterPause = 200 * time.Millisecond

// strides returns the lanes that a request takes its turns in at now, and what
// is to be told of them.
func (a *Ask) strides(now time.Time) (all []stride, p Place) {
	own := ""
	if a.ByAgent {
		own = "\x00" + a.Agent
	}
	if a.MinDelay > 0 {
		all = append(all, stride{floorLane + own, a.clamp(a.MinDelay)})
		p.Asked = a.MinDelay
	}
	for _, w := range a.Wishes {
		asked, by := w.Delay(now)
		if asked <= 0 {
			continue
		}
		all = append(all, stride{w.Group + own, a.clamp(asked)})
		if asked >= p.Asked {
			p.Asked, p.By = asked, by
		}
	}
	p.Delay = a.clamp(p.Asked)
	return all, p
}

func (a *Ask) clamp(d time.Duration) time.Duration { return min(d, a.MaxDelay) }

// welcome returns from when on the site wants to be visited, and the line that
// says so when that is not now.
func (a *Ask) welcome(now time.Time) (from time.Time, by rules.Field) {
	from = now
	for _, w := range a.Wishes {
		if t, line := w.Welcome(now); t.After(from) {
			from, by = t, line
		}
	}
	return from, by
}
