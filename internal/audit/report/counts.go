package report

import "time"

// Counts are requests by what became of them. Requests is the sum of the four
// that follow: one that was not judged counts there whatever its verdict.
type Counts struct {
	Requests    int64 `json:"requests"`
	Allowed     int64 `json:"allowed"`
	Refused     int64 `json:"refused"`
	WouldRefuse int64 `json:"would_refuse"` // refused by the rules, let through by the operator (observe)
	NotJudged   int64 `json:"not_judged"`

	ByHost      int64 `json:"by_host"`      // of the judged: by the host alone, the path was not seen
	SiteRefused int64 `json:"site_refused"` // of those let through: the site itself refused (401, 403, 429, 451, 503)
	Unknown     int64 `json:"unknown"`      // how they ended is not recorded: still open, or heed was killed
	Bytes       int64 `json:"bytes"`        // of the answers' bodies, as clients received them

	Waited      int64   `json:"waited"`           // had to wait for rules or a turn, 10 ms or longer
	WaitedTotal float64 `json:"waited_s"`         // all of them together, in seconds
	WaitedMost  float64 `json:"waited_longest_s"` // the longest, in seconds

	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// add adds o to c.
func (c *Counts) add(o *Counts) {
	if o.Requests == 0 {
		return
	}
	if c.Requests == 0 || o.First.Before(c.First) {
		c.First = o.First
	}
	if o.Last.After(c.Last) {
		c.Last = o.Last
	}
	c.Requests += o.Requests
	c.Allowed += o.Allowed
	c.Refused += o.Refused
	c.WouldRefuse += o.WouldRefuse
	c.NotJudged += o.NotJudged
	c.ByHost += o.ByHost
	c.SiteRefused += o.SiteRefused
	c.Unknown += o.Unknown
	c.Bytes += o.Bytes
	c.Waited += o.Waited
	c.WaitedTotal += o.WaitedTotal
	c.WaitedMost = max(c.WaitedMost, o.WaitedMost)
}

// The names that a record has for how a request was judged, and for verdicts.
const (
	judgedNo    = "no"
	judgedHost  = "host"
	allow       = "allow"
	refuse      = "refuse"
	wouldRefuse = "would-refuse"
)

// class is where a decision is counted.
type class int

const (
	classAllowed class = iota
	classRefused
	classWouldRefuse
	classNotJudged
	classes
)

func (w *way) class() class {
	switch {
	case w.judged == judgedNo:
		return classNotJudged
	case w.verdict == allow:
		return classAllowed
	case w.verdict == wouldRefuse:
		return classWouldRefuse
	}
	return classRefused
}

// cell counts the decisions of one agent about one site that came about in one way.
type cell struct {
	n, siteRefused, unknown, bytes int64
	waits, waited, waitedMost      int64 // microseconds
	first, last                    int64
}

// waitedFrom is the shortest wait that is told, in microseconds: less is not felt.
const waitedFrom = 10_000

func (c *cell) add(e *entry) {
	if c.n == 0 || e.time < c.first {
		c.first = e.time
	}
	if c.n == 0 || e.time > c.last {
		c.last = e.time
	}
	c.n++
	if w := e.waited.Int64; w >= waitedFrom {
		c.waits++
		c.waited += w
		c.waitedMost = max(c.waitedMost, w)
	}
	switch {
	case !e.status.Valid:
		c.unknown++
	case e.fromSite.Int64 == 1 && siteRefused(e.status.Int64):
		c.siteRefused++
	}
	c.bytes += e.bytesOut.Int64
}

// siteRefused reports whether a site's answer means "not you" or "not now".
func siteRefused(status int64) bool {
	switch status {
	case 401, 403, 429, 451, 503:
		return true
	}
	return false
}

// counts returns what the cell counts of decisions that came about as w says.
func (c *cell) counts(w *way) *Counts {
	counts := &Counts{
		Requests: c.n, SiteRefused: c.siteRefused, Unknown: c.unknown, Bytes: c.bytes,
		Waited: c.waits, WaitedTotal: seconds(c.waited), WaitedMost: seconds(c.waitedMost),
		First: micros(c.first), Last: micros(c.last),
	}
	*[]*int64{&counts.Allowed, &counts.Refused, &counts.WouldRefuse, &counts.NotJudged}[w.class()] = c.n
	if w.judged == judgedHost {
		counts.ByHost = c.n
	}
	return counts
}

func micros(t int64) time.Time { return time.UnixMicro(t).UTC() }

func seconds(micros int64) float64 { return float64(micros) / 1e6 }
