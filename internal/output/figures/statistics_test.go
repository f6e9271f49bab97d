package figures

import (
	"math"
	"testing"

	"heed/internal/tools/testkit/must"
)

// The bounds are those of Newcombe (1998), table I, method 3, and of the formula by hand.
func TestWilson_IsTheIntervalOfTheLiterature(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		part, all int64
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}, {20, 20, 0.8389, 1}} {
		low, high := Wilson(x.part, x.all)
		must.True(t, math.Abs(low-x.low) <= 5e-5 && math.Abs(high-x.high) <= 5e-5,
			"%d of %d: %.4f to %.4f, want %.4f to %.4f", x.part, x.all, low, high, x.low, x.high)
	}
}

func TestMedian_IsTheMiddle(t *testing.T) {
	t.Parallel()
	for want, list := range map[float64][]int64{7: {7}, 2: {1, 2, 9}, 5: {1, 2, 8, 9}, 1.5: {1, 2}, math.MaxInt32: {math.MaxInt32, math.MaxInt32}} {
		must.Equal(t, Median(list), want, "the median of %v", list)
	}
}
