package pace

import (
	"strings"
	"time"
)

// Limits of the requests that List describes.
const (
	maxWaiters = 20  // at one origin
	maxRequest = 200 // octets of one request
)

// Who is the client of an Ask, for display.
type Who struct {
	Address  string `json:"address"`
	User     string `json:"user,omitempty"`   // whose credentials it showed; empty: none
	Name     string `json:"client,omitempty"` // of its [[client]]; empty: none
	Listener string `json:"listener"`         // that it connected to; each run has its own
}

// String returns the address, and in parentheses the name and the user.
func (w Who) String() string {
	var more []string
	if w.Name != "" {
		more = append(more, w.Name)
	}
	if w.User != "" && w.User != w.Name {
		more = append(more, "user "+w.User)
	}
	if len(more) == 0 {
		return w.Address
	}
	return w.Address + " (" + strings.Join(more, ", ") + ")"
}

// Waiter is a request that waits for its turn.
type Waiter struct {
	Who
	Run     bool          `json:"run,omitempty"` // Listener is that of a run
	Request string        `json:"request"`       // method and path; text of the client
	Since   time.Time     `json:"since"`
	Waited  time.Duration `json:"waited_ns"`
	Next    time.Duration `json:"next_ns"` // until its turn, estimated
}

// waiters describes the first requests of a site's queue.
func waiters(queue []*ticket, now time.Time) []Waiter {
	list := []Waiter{}
	for _, k := range queue[:min(maxWaiters, len(queue))] {
		path, _, _ := strings.Cut(k.ask.Target, "?") // a query may contain secrets
		list = append(list, Waiter{
			Who: k.ask.Who, Request: strings.Clone(path[:min(maxRequest, len(path))]), Since: k.came.Round(0),
			Waited: now.Sub(k.came), Next: max(0, k.due.Sub(now)),
		})
	}
	return list
}
