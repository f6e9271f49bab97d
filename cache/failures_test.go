package cache

import (
	"net/http"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func hangsUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// A failure to reach a site ends with DropFailures; what a site has answered does not,
// nor does an older copy of its file.
func TestHeed_DroppedFailuresAreAskedAgain(t *testing.T) {
	dead, deadOrigin := newSite(t, status(200))
	dead.turn(hangsUp)
	busy, busyOrigin := newSite(t, status(503, "Retry-After", "600"))
	well, wellOrigin := newSite(t, status(200))
	c, clock := newCache(t, Config{})
	refuses(t, c, wellOrigin)
	clock.step(25 * time.Hour)
	well.turn(hangsUp)
	for _, o := range []rules.Origin{deadOrigin, busyOrigin} {
		must.Is(t, c.Policy(t.Context(), o, "").Source().State, rules.Unreachable)
	}
	s := c.Policy(t.Context(), wellOrigin, "").Source()
	must.Need(t, s.Stale, "%+v", s)
	asked := busy.count.Load()
	dead.turn(status(200))
	well.turn(status(200))
	s = c.Policy(t.Context(), deadOrigin, "").Source()
	must.Need(t, s.State == rules.Unreachable, "asked again before its time: %+v", s)
	must.Equal(t, c.DropFailures(t.Context()), 2, "failures dropped")
	for _, o := range []rules.Origin{deadOrigin, wellOrigin} {
		s := c.Policy(t.Context(), o, "").Source()
		must.True(t, s.State == rules.Available && !s.Stale, "after that: %+v", s)
	}
	if s := c.Policy(t.Context(), busyOrigin, "").Source(); s.State != rules.Unreachable || busy.count.Load() != asked {
		t.Errorf("a site that asked for ten minutes was asked again: %+v", s)
	}
}
