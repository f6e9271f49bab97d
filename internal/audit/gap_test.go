package audit

import (
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

func FuzzParseGap(f *testing.F) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 1000, time.UTC)
	whole := Gap{at, at.Add(time.Minute), 7, "write audit.db.tail: no space: left"}
	if got, ok := ParseGap(whole.Text(), 7); !ok || got != whole {
		f.Errorf("%q is %+v", whole.Text(), got)
	}
	for _, text := range []string{whole.Text(), "", "refused from ", "no space left on device", "refused from 2026-03-01T12:00:00.000000Z to : x", whole.Text()[:50]} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, ok := ParseGap(text, 1)
		if !ok {
			return
		}
		again, ok := ParseGap(g.Text(), 1)
		must.True(t, ok && again == g, "%q is %+v, and that %+v", text, g, again)
	})
}
