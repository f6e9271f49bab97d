package transparent

import (
	"slices"
	"testing"

	"heed/internal/tools/testkit/must"
)

// TestTransparency asks every shape by every way that can carry it, directly
// and through heed.
func TestTransparency(t *testing.T) {
	shapes := slices.Concat(requests, answers, bodies, hops, framed, files)
	w := newWorld(t, shapes)
	must.True(t, len(shapes) >= 60, "only %d shapes", len(shapes))
	asked := 0
	for _, s := range shapes {
		ways := s.ways
		if ways == nil {
			ways = everyWay
		}
		for _, m := range ways {
			asked++
			t.Run(s.name+"/"+string(m), func(t *testing.T) { w.in(t).compare(t, m, s) })
		}
	}
	t.Logf("%d shapes, %d comparisons", len(shapes), asked)
}
