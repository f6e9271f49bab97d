package console

import (
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

func TestHeed_ABarSaysHowFarItIsAndHowLongItTakes(t *testing.T) {
	for _, c := range []struct {
		done, all int64
		want      string
	}{
		{0, 0, "for 10s"},
		{0, 100, "for 10s"},
		{50, 100, "[###############...............]  50 %, 50 of 100, 10s left"},
		{100, 100, "[##############################] 100 %, 100 of 100, 0s left"},
		{101, 100, "[##############################] 100 %, 101 of 100, 0s left"},
	} {
		must.Equal(t, barWords(c.done, c.all, 10*time.Second), c.want, "%d of %d is printed as", c.done, c.all)
	}
}

func TestHeed_ColoursAreForTerminals(t *testing.T) {
	must.Equal(t, Colours(nil, &strings.Builder{})(Red, "x"), "x")
}
