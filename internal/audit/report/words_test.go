package report

import (
	"heed/internal/figures"
	"slices"
	"testing"
	"time"
)

func TestHeed_AShareThatIsNotAllNeverLooksAsIfItWere(t *testing.T) {
	for _, c := range []struct {
		n, all int64
		want   string
	}{
		{0, 0, "-"}, {0, 10, "0 %"}, {10, 10, "100 %"}, {1, 3, "33.3 %"}, {1, 1_000_000, "< 0.1 %"}, {999_999, 1_000_000, "> 99.9 %"},
	} {
		if got := figures.Percent(c.n, c.all); got != c.want {
			t.Errorf("%d of %d is written %q, not %q", c.n, c.all, got, c.want)
		}
	}
}

func TestHeed_NumbersAreWrittenForPeople(t *testing.T) {
	for got, want := range map[string]string{
		figures.Commas(0): "0", figures.Commas(999): "999", figures.Commas(1000): "1,000", figures.Commas(-1234567): "-1,234,567",
		figures.Number(1, "request"): "1 request", figures.Number(2000, "request"): "2,000 requests",
		unit(time.Hour): "1 hour", unit(15 * time.Minute): "15 minutes", unit(7 * 24 * time.Hour): "7 days", unit(1500 * time.Millisecond): "1.5s",
		span(0): "-", span(12_000): "12ms", span(3_250_000): "3.3s", span(3723e6): "1h2m3s",
		figures.Commas(figures.Ceiling(0)): "2", figures.Commas(figures.Ceiling(7)): "8", figures.Commas(figures.Ceiling(1500)): "2,000", figures.Commas(figures.Ceiling(20_000)): "20,000",
		wrap("aa bb cc 5.0 % dd", 9): "aa bb cc\n5.0 % dd",
	} {
		if got != want {
			t.Errorf("it is written %q, not %q", got, want)
		}
	}
}

func TestHeed_ListsAreSortedByNumberThenName(t *testing.T) {
	list, calls := []string{"b", "aa", "c", "a", "bb"}, 0
	byMost(list, func(s *string) (int64, string) { calls++; return int64(len(*s)), *s })
	if !slices.Equal(list, []string{"aa", "bb", "a", "b", "c"}) || calls != 5 {
		t.Errorf("%q after %d calls", list, calls)
	}
}
