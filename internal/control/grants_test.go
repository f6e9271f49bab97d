package control

import (
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// A mode override ends in any case: one of a file that names no end is not listed as in force,
// since no rule applies it. A block may be permanent.
func TestGranted_OnlyABlockHasNoEnd(t *testing.T) {
	now := time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	later := Break{ID: "2"}
	later.Until = now.Add(time.Hour)
	g := Granted{Breaks: []Break{{ID: "1"}, later}, Exceptions: []Exception{{ID: "3", Refuse: true}, {ID: "4", Expires: now}}}
	left, ended, next := g.Without(now)
	must.True(t, len(left.Breaks) == 1 && left.Breaks[0].ID == "2" && len(left.Exceptions) == 1 && left.Exceptions[0].ID == "3",
		"left: %+v", left)
	must.True(t, len(ended) == 2 && next.Equal(later.Until), "ended: %q; the next ends at %v", ended, next)
}
