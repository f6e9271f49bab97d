package report

import (
	"slices"
	"testing"
)

func TestHeed_NumbersAreWrittenForPeople(t *testing.T) {
	for got, want := range map[string]string{
		span(12_000): "12ms", span(3_250_000): "3.3s", span(3723e6): "1h2m3s",
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
