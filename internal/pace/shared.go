package pace

import (
	"context"
	"time"
)

// SharedLane is a lane as a fleet knows it.
type SharedLane struct {
	Name  string        // tells it from the other lanes of its origin
	Delay time.Duration // between two starts
}

// Shared is where the heeds of a fleet take turns together. It is safe for
// concurrent use, and its methods return when ctx ends. An error means that the
// store is away: then each heed keeps its delays times Proxies by itself.
type Shared interface {
	// Take takes a turn in all lanes of an origin ("https://example.org"), or in
	// none of them. ticket names the request, and keeps its place among the heeds
	// while it asks again. wait is 0 when the turn is taken: then it is the
	// ticket's until Started or Leave, or until the store takes it for dead. Else
	// it is how long to wait before asking again.
	Take(ctx context.Context, origin, ticket string, lanes []SharedLane) (wait time.Duration, err error)
	// Started has the delays of a turn begin, ago before now. It may be called
	// more than once for one ticket.
	Started(ctx context.Context, origin, ticket string, lanes []SharedLane, ago time.Duration) error
	// Leave gives back a turn that was taken and not started, or a place among
	// those who ask.
	Leave(ctx context.Context, origin, ticket string, lanes []SharedLane) error
	// Hold keeps everybody from the origin for d. What others hold is told
	// through Turns.Hold.
	Hold(ctx context.Context, origin string, d time.Duration) error
	// Proxies is how many heeds there are, as last seen: 1 or more.
	Proxies() int
}
