package proxy

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"heed/rules"
)

// When a wait is announced.
const (
	longWait      = 2 * time.Second
	announceEvery = 30 * time.Second // of one host
	maxAnnounced  = 1024             // hosts that are remembered
)

// announced remembers when waits for sites were last told of. The zero value is
// ready.
type announced struct {
	mu   sync.Mutex
	last map[rules.Origin]time.Time
}

// due reports whether a wait for o is to be told of now, and remembers that it was.
func (a *announced) due(o rules.Origin, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, ok := a.last[o]; ok && now.Sub(last) < announceEvery {
		return false
	}
	if a.last == nil || len(a.last) >= maxAnnounced {
		a.last = map[rules.Origin]time.Time{} // starting over is cheaper than keeping an order
	}
	a.last[o] = now
	return true
}

// announce tells whoever looks on that requests wait, when it is for long.
func (p *Proxy) announce(o rules.Origin, place TurnPlace) {
	if place.Wait < longWait || p.Announce == nil || !p.announced.due(o, time.Now()) {
		return
	}
	p.Announce(fmt.Sprintf("%s: %d waiting, yours in %s", place.why(printable(o.Authority(), 100)), place.Waiting, inSeconds(place.Wait)))
}

// why says what makes requests to a host wait.
func (p *TurnPlace) why(host string) string {
	switch {
	case p.Visit.Line > 0:
		return fmt.Sprintf("%s asks to be visited at another time of the day (robots.txt line %d)", host, p.Visit.Line)
	case p.Held > 0 && p.Held+p.Delay >= p.Wait:
		return host + " has answered that it is too busy"
	case p.RobotsTxt && p.Delay > 0:
		return fmt.Sprintf("requests for the robots.txt of %s come too often to go before all others, and keep %s between requests", host, inSeconds(p.Delay))
	case p.By.Line > 0 && p.Asked > p.Delay:
		return fmt.Sprintf("%s asks for %s between requests (robots.txt line %d), of which %s are kept", host, inSeconds(p.Asked), p.By.Line, inSeconds(p.Delay))
	case p.By.Line > 0:
		return fmt.Sprintf("%s asks for %s between requests (robots.txt line %d)", host, inSeconds(p.Asked), p.By.Line)
	case p.Delay > 0:
		return fmt.Sprintf("heed's settings ask for %s between requests to %s", inSeconds(p.Delay), host)
	}
	return "as many requests to " + host + " as heed's settings allow are under way"
}

// inSeconds writes a duration as people do: "0.5 s", "10 s".
func inSeconds(d time.Duration) string {
	if d >= 10*time.Second || d%time.Second == 0 {
		return strconv.Itoa(int(d.Round(time.Second)/time.Second)) + " s"
	}
	return strconv.FormatFloat(d.Seconds(), 'g', 2, 64) + " s"
}
