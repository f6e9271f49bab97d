package clock_test

import (
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules/clock"
)

// TestHeed_Waits has waits as sites write them: an exact one is in the form that robots
// expect.
func TestHeed_Waits(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0.5": 500 * time.Millisecond, "0,5": 500 * time.Millisecond, ".5": 500 * time.Millisecond,
		"1e3": 1000 * time.Second, "0": 0, "10.": 10 * time.Second, "99999999999999999999": clock.Most, "1,25": 1250 * time.Millisecond,
		"1e9": clock.Most, "1e999": clock.Most,
	} {
		d, exact, ok := clock.Seconds(s)
		must.True(t, d == want && exact && ok, "%q: %v, exact %v, %v; want %v", s, d, exact, ok, want)
	}
	for s, want := range map[string]time.Duration{
		"10s": 10 * time.Second, "10 s": 10 * time.Second, "10sec": 10 * time.Second, "10 seconds": 10 * time.Second, "10 Seconds.": 10 * time.Second,
		"1m": time.Minute, "2 min": 2 * time.Minute, "5 minutes": 5 * time.Minute, "1h": time.Hour, "1 hour": time.Hour, "2 days": 48 * time.Hour,
		"500ms": 500 * time.Millisecond, "1500 milliseconds": 1500 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "1,5 s": 1500 * time.Millisecond,
		`"10"`: 10 * time.Second, "'10'": 10 * time.Second, "“10”": 10 * time.Second, "10;": 10 * time.Second, "=10": 10 * time.Second, ": 10": 10 * time.Second,
		"+10": 10 * time.Second, "~10": 10 * time.Second, "(10)": 10 * time.Second, "１０": 10 * time.Second, "10\u00a0s": 10 * time.Second, "\u200b10": 10 * time.Second,
		"5-10": 10 * time.Second, "5 – 10": 10 * time.Second, "10 to 20 seconds": 20 * time.Second, "60, 120": 120 * time.Second, "1/10": 10 * time.Second,
		"1h30m": 90 * time.Minute, "1 minute 30 seconds": 90 * time.Second, "PT10S": 10 * time.Second, "pt1m30s": 90 * time.Second, "P1D": 24 * time.Hour,
		"1:30": 90 * time.Second, "00:00:10": 10 * time.Second, "1,000": 1000 * time.Second, "1,000,000": 1000000 * time.Second,
		"every 10 seconds": 10 * time.Second, "10 between requests": 10 * time.Second, "10 секунд": 10 * time.Second, "10秒": 10 * time.Second,
		"10 sec per page": 10 * time.Second, "wait 30": 30 * time.Second, "10 seconds between 2 requests": 10 * time.Second, "400 days": clock.Most,
	} {
		d, exact, ok := clock.Seconds(s)
		must.True(t, d == want && !exact && ok, "%q: %v, exact %v, %v; want %v", s, d, exact, ok, want)
	}
	for _, s := range []string{"", ".", "-1", "-1s", "−5", "soon", "ten", "NaN", "0x10", "1ee9", "e9", "v2", "P", "PT", "none", "Thu, 32 Foo 2026", "5x", "\x00"} {
		d, _, ok := clock.Seconds(s)
		must.True(t, !ok, "%q is read as %v", s, d)
	}
}

func TestHeed_Rates(t *testing.T) {
	t.Parallel()
	day := func(n int, per time.Duration) clock.Rate { return clock.Rate{Documents: n, Per: per} }
	for s, want := range map[string]clock.Rate{
		"1/10": day(1, 10*time.Second), "30/1m": day(30, time.Minute), "2/1h 0800-1845": {Documents: 2, Per: time.Hour, Window: clock.Window{From: 480, To: 1125}},
		"1/5s 22:00-06:00": {Documents: 1, Per: 5 * time.Second, Window: clock.Window{From: 1320, To: 360}},
		"1/2000000000h":    day(1, clock.Most), "1/99999999999999999999": day(1, clock.Most),
	} {
		r, exact, ok := clock.RateOf(s)
		must.True(t, r == want && exact && ok, "%q: %+v, exact %v, %v; want %+v", s, r, exact, ok, want)
	}
	for s, want := range map[string]clock.Rate{
		"1 / 10s": day(1, 10*time.Second), "1/10 s": day(1, 10*time.Second), "1/10sec": day(1, 10*time.Second), "1/10 seconds": day(1, 10*time.Second),
		"1/minute": day(1, time.Minute), "1/s": day(1, time.Second), "60/h": day(60, time.Hour), "1 per minute": day(1, time.Minute), "1 page per 10 seconds": day(1, 10*time.Second),
		"1 request every 5 min": day(1, 5*time.Minute), "1/2d": day(1, 48*time.Hour), "0.5/1s": day(1, 2*time.Second), `"1/10s"`: day(1, 10*time.Second), "1/10s;": day(1, 10*time.Second),
		"1/10s UTC": day(1, 10*time.Second), "1/10 soon": day(1, 10*time.Second), "1/10 s 8-18": {Documents: 1, Per: 10 * time.Second, Window: clock.Window{From: 480, To: 1080}},
		"1/10s (0800 - 1845 UTC)": {Documents: 1, Per: 10 * time.Second, Window: clock.Window{From: 480, To: 1125}}, "1/10 0800-1845 x": day(1, 10*time.Second), "１/１０s": day(1, 10*time.Second),
		"1/10s 600-845": {Documents: 1, Per: 10 * time.Second, Window: clock.Window{From: 360, To: 525}},
	} {
		r, exact, ok := clock.RateOf(s)
		must.True(t, r == want && !exact && ok, "%q: %+v, exact %v, %v; want %+v", s, r, exact, ok, want)
	}
	for _, s := range []string{"", "10", "0/1", "1/0", "1/", "/10s", "-1/5", "1/x", "slow", "1/10 parsecs 5/s"} {
		r, _, ok := clock.RateOf(s)
		must.True(t, !ok || s == "1/10 parsecs 5/s", "%q is read as %+v", s, r)
	}
}

func TestHeed_HoursOfTheDay(t *testing.T) {
	t.Parallel()
	for s, want := range map[string][3]int{
		"0600-0845": {360, 525, 1}, "0600 - 2400": {360, 0, 1}, "06:00-08:45": {360, 525, 1}, "600-845": {360, 525, 0}, "6-8": {360, 480, 0}, "6:00 - 8:45": {360, 525, 0},
		"0600–0845": {360, 525, 0}, "0600-0845 UTC": {360, 525, 0}, "8am-6pm": {480, 1080, 0}, "8:30 am to 12 pm": {510, 720, 0}, "12am - 6am": {0, 360, 0},
		"from 22 until 6": {1320, 360, 0}, "06:00:00-08:45:00": {360, 525, 0}, "(0600-0845)": {360, 525, 0}, "6.00-8.45": {360, 525, 0}, "6h-8h45": {360, 525, 0},
	} {
		if w, exact, ok := clock.Hours(s); w.From != want[0] || w.To != want[1] || exact != (want[2] == 1) || !ok {
			t.Errorf("%q: %+v, exact %v, %v; want %v", s, w, exact, ok, want)
		}
	}
	for _, s := range []string{"", "0600", "0660-0845", "2500-0100", "2401-0100", "night", "13pm-6pm", "0600-0845 EST", "-", "0600-0845-0900"} {
		w, _, ok := clock.Hours(s)
		must.True(t, !ok, "%q is read as %+v", s, w)
	}
}

func TestHeed_Dates(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 7, 0, 0, 0, time.UTC)
	for _, s := range []string{
		"Thu, 26 Nov 2026 07:00:00 GMT", "Thursday, 26-Nov-26 07:00:00 GMT", "Thu Nov 26 07:00:00 2026", "Thu, 26 Nov 2026 07:00:00 UTC",
		"Thu, 26 Nov 2026 07:00:00 +0000", "Thu, 26 Nov 2026 09:00:00 +02:00", "26 Nov 2026 07:00:00", "thu, 26 nov 2026 07:00:00 gmt", "Thu, 26 November 2026 07:00:00 GMT",
		"2026-11-26T07:00:00Z", "2026-11-26T07:00:00.000Z", "2026-11-26 07:00:00", "2026-11-26 07:00:00 UTC", "2026-11-26T08:00:00+01:00", "20261126T070000Z",
		"Nov 26, 2026 07:00:00", "26.11.2026 07:00", "26/11/2026 07:00", "11/26/2026 07:00", `"Thu, 26 Nov 2026 07:00:00 GMT"`, "Thu, 26 Nov 2026 02:00:00 EST", "Thu Nov 26 07:00:00 UTC 2026",
	} {
		got, ok := clock.Date(s)
		must.True(t, ok && got.Equal(at), "%q: %v, %v", s, got, ok)
	}
	for _, s := range []string{"", "soon", "11/12/2026", "Thu, 32 Nov 2026 07:00:00 GMT", "2026", "07:00"} {
		got, ok := clock.Date(s)
		must.True(t, !ok, "%q is read as %v", s, got)
	}
	got, ok := clock.Date("2026-11-26")
	must.True(t, ok && got.Equal(time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)), "a day ends at %v", got)
}
