package refusal

import (
	"fmt"
	"strconv"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/pace"
	"heed/rules"
)

// queue is the state of a site whose requests are paced, for the client.
type queue struct {
	Waiting int      `json:"waiting"`
	Delay   *float64 `json:"delay_seconds,omitempty"` // between two requests, as heed keeps it
	Asked   *float64 `json:"delay_asked_seconds,omitempty"`
	Pause   int      `json:"held_seconds,omitempty"` // of the wait, what the site asked for
}

// pacedSentence states why a turn is too far off.
func (a *Answer) pacedSentence() string {
	q := a.of.Paced
	if q != nil && q.Ended {
		return "Refused by heed: it is shutting down, and no request can wait for a turn; ask again after " + Seconds(a.RetryAfter)
	}
	if q == nil || q.Wait == 0 {
		return "Refused by heed: it paces as many sites as it can; ask again after " + Seconds(a.RetryAfter)
	}
	return "Refused by heed: " + WaitCause(&q.Position, a.of.Entry.Host) + ", " + othersWait(q.Others) + "; ask again after " + Seconds(a.RetryAfter)
}

// othersWait states how many other requests wait.
func othersWait(n int) string {
	switch n {
	case 0:
		return "no other request waits"
	case 1:
		return "1 other waits"
	}
	return strconv.Itoa(n) + " others wait"
}

// pacedDetail explains the queue to a person, and what can be done.
func (a *Answer) pacedDetail(p *Problem) string {
	q := a.of.Paced
	if q != nil && q.Ended {
		return "Requests to this site are paced, and this one was waiting when the proxy began to shut down. Nothing was sent to the site."
	}
	if q == nil || q.Wait == 0 {
		return "heed remembers the last request to each site that it paces, and there are more such sites than it has room for. A retry can help."
	}
	if q.Store != "" {
		return fmt.Sprintf("The requests of all clients to this site are paced together with those of other proxies, and %s. "+
			"Nothing was sent to the site. A retry after %d seconds can help.", unreached(q.Store), p.RetryAfter)
	}
	return fmt.Sprintf("The requests of all clients to this site are paced together: %s. The turn of this request would have come in about %s, "+
		"which is longer than this proxy lets a client wait (pacing.max_wait, or max_wait of its [[client]]). "+
		"Nothing was sent to the site. The same request is served after %d seconds.", WaitCause(&q.Position, a.of.Entry.Host), Seconds(q.Wait), p.RetryAfter)
}

// newQueue returns p as data.
func newQueue(p *pace.Position) *queue {
	q := &queue{Waiting: p.Others + 1, Pause: seconds(p.Pause)}
	if p.Asked > 0 {
		delay, asked := p.Delay.Seconds(), p.Asked.Seconds()
		q.Delay, q.Asked = &delay, &asked
	}
	return q
}

// WaitRule returns the line that makes a request wait; zero when none does.
func WaitRule(p *pace.Position) rules.Field {
	if p.Visit.Line > 0 {
		return p.Visit
	}
	return p.By
}

// WaitCause returns a clause that states why requests to host wait.
func WaitCause(p *pace.Position, host string) string {
	switch {
	case p.Store != "":
		return unreached(p.Store)
	case p.Address != "" && p.Wait > 0:
		return fmt.Sprintf("heed's settings ask for %s between requests to all names at the address of %s, %s", Seconds(p.Delay), host, p.Address)
	case p.Visit.Line > 0:
		return fmt.Sprintf("%s asks to be visited at another time of the day (robots.txt line %d)", host, p.Visit.Line)
	case p.Pause > 0 && p.Pause+p.Delay >= p.Wait:
		return host + " has answered that it is too busy"
	case p.RobotsTxt && p.Delay > 0:
		return fmt.Sprintf("requests for the robots.txt of %s come too often to go before all others, and keep %s between requests", host, Seconds(p.Delay))
	case p.By.Line > 0 && p.Asked > p.Delay:
		return fmt.Sprintf("%s asks for %s between requests (robots.txt line %d), of which %s are kept", host, Seconds(p.Asked), p.By.Line, Seconds(p.Delay))
	case p.By.Line > 0:
		return fmt.Sprintf("%s asks for %s between requests (robots.txt line %d)", host, Seconds(p.Asked), p.By.Line)
	case p.Delay > 0:
		return fmt.Sprintf("heed's settings ask for %s between requests to %s", Seconds(p.Delay), host)
	}
	return "as many requests to " + host + " as heed's settings allow are under way"
}

// unreached returns a clause for a store of the fleet that was never reached.
func unreached(store string) string {
	return "heed has not reached the store of its fleet, " + safetext.Printable(store, 200) + ", since it was started: until then it gives no turns"
}

// Seconds writes a duration as people do: "0.5 s", "10 s".
func Seconds(d time.Duration) string {
	if d >= 10*time.Second || d%time.Second == 0 {
		return strconv.Itoa(int(d.Round(time.Second)/time.Second)) + " s"
	}
	return strconv.FormatFloat(d.Seconds(), 'g', 2, 64) + " s"
}
