package report

import (
	"slices"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_NumbersAreWrittenForPeople(t *testing.T) {
	for got, want := range map[string]string{
		span(12_000): "12ms", span(3_250_000): "3.3s", span(3723e6): "1h2m3s",
	} {
		must.Equal(t, got, want, "what is written")
	}
}

func TestHeed_ListsAreSortedByNumberThenName(t *testing.T) {
	list, calls := []string{"b", "aa", "c", "a", "bb"}, 0
	byMost(list, func(s *string) (int64, string) { calls++; return int64(len(*s)), *s })
	must.True(t, slices.Equal(list, []string{"aa", "bb", "a", "b", "c"}) && calls == 5, "%q after %d calls", list, calls)
}
