package figures_test

import (
	"testing"
	"time"

	"heed/internal/judge/reason"
	"heed/internal/output/figures"
	"heed/internal/tools/testkit/must"
)

func TestHeed_AShareThatIsNotAllNeverLooksAsIfItWere(t *testing.T) {
	for _, c := range []struct {
		n, all int64
		want   string
	}{
		{0, 0, "-"}, {0, 10, "0 %"}, {10, 10, "100 %"}, {1, 3, "33.3 %"}, {1, 1_000_000, "< 0.1 %"}, {999_999, 1_000_000, "> 99.9 %"},
	} {
		must.Equal(t, figures.Percent(c.n, c.all), c.want, "%d of %d is written", c.n, c.all)
	}
}

func TestHeed_NumbersAreWrittenForPeople(t *testing.T) {
	for got, want := range map[string]string{
		figures.Commas(0): "0", figures.Commas(999): "999", figures.Commas(1000): "1,000", figures.Commas(-1234567): "-1,234,567",
		figures.Number(1, "request"): "1 request", figures.Number(2000, "request"): "2,000 requests",
		figures.Commas(figures.Ceiling(0)): "2", figures.Commas(figures.Ceiling(7)): "8", figures.Commas(figures.Ceiling(1500)): "2,000", figures.Commas(figures.Ceiling(20_000)): "20,000",
	} {
		must.Equal(t, got, want, "what is written")
	}
}

// The pieces of a bar follow one another, each in the style of its class.
func TestHeed_ABarHasAPieceForEachClassWithRequests(t *testing.T) {
	all := reason.Counts{reason.Allowed: 3, reason.Postponed: 1}
	pieces := figures.Pieces(&all, 8)
	if len(pieces) != 2 || pieces[0].Size != 37.5 || pieces[1].At != 37.5 || pieces[1].Size != 12.5 || pieces[1].Down() != 50 || pieces[1].Class != figures.Style(reason.Postponed) {
		t.Errorf("the pieces are %+v", pieces)
	}
	must.Equal(t, len(figures.Pieces(&all, 0)), 0, "a bar without length has pieces")
	for _, c := range reason.Classes() {
		must.True(t, figures.Style(c) != "", "the class %q has no style", c)
	}
}

// A chart has the columns of the periods with requests, and one entry of its key for each style.
func TestChart(t *testing.T) {
	from := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	parts := func(a, b, c int64) []figures.Part {
		return []figures.Part{{Style: "x", Name: "a", N: a}, {Style: "y", Name: "b", N: b}, {Style: "y", Name: "c", N: c}}
	}
	c := figures.NewChart(from, 15*time.Minute, "", [][]figures.Part{parts(1, 0, 1), parts(0, 0, 0), parts(2, 0, 0), parts(2, 3, 2)})
	if len(c.Columns) != 3 || c.Columns[1].When != "1 May 2026 12:30" || c.Columns[1].At != 51.5 || c.Columns[2].All != 7 || c.Top != 8 || c.Columns[2].Pieces[2].At != 62.5 {
		t.Errorf("%+v", c)
	}
	if len(c.Key) != 2 || c.Key[1].Name != "b, c" || c.Busiest.All != 7 || c.From != "1 May 2026 12:00" || c.Middle != "1 May 2026 12:30" || c.End != "1 May 2026 13:00" {
		t.Errorf("%+v", c)
	}
	for each, want := range map[time.Duration]string{time.Hour: "1 hour", 15 * time.Minute: "15 minutes", 7 * 24 * time.Hour: "7 days", 1500 * time.Millisecond: "1.5s"} {
		must.Equal(t, figures.NewChart(from, each, "", [][]figures.Part{parts(1, 0, 0)}).Each, want, "%v", each)
	}
}
