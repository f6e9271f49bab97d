package retryafter_test

import (
	"net/http"
	"testing"
	"time"

	"heed/internal/pace/retryafter"
	"heed/internal/tools/testkit/must"
)

var now = time.Date(2026, 11, 26, 7, 0, 0, 0, time.UTC)

// TestHeed_WaitsAsSitesWriteThem has forms of Retry-After, those of the standard first.
func TestHeed_WaitsAsSitesWriteThem(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"120": 2 * time.Minute, "0": 0, "Thu, 26 Nov 2026 07:02:00 GMT": 2 * time.Minute, "Thu, 26 Nov 2026 06:59:00 GMT": -time.Minute,
		"120s": 2 * time.Minute, "120 seconds": 2 * time.Minute, "2m": 2 * time.Minute, "2 minutes": 2 * time.Minute, "120.0": 2 * time.Minute, "1,5": 1500 * time.Millisecond,
		`"120"`: 2 * time.Minute, "120;": 2 * time.Minute, "60, 120": 2 * time.Minute, "PT2M": 2 * time.Minute, "00:02:00": 2 * time.Minute, "120000ms": 2 * time.Minute,
		"2026-11-26T07:02:00Z": 2 * time.Minute, "2026-11-26 07:02:00": 2 * time.Minute, "Thu, 26 Nov 2026 07:02:00 +0000": 2 * time.Minute, "26 Nov 2026 07:02:00 UTC": 2 * time.Minute,
		"1795676520": 2 * time.Minute, "1795676520000": 2 * time.Minute, "99999999": 99999999 * time.Second,
		"99999999999999999999": 365 * 24 * time.Hour, "try again in 2 minutes": 2 * time.Minute,
	} {
		h := http.Header{"Retry-After": {value}}
		d, ok := retryafter.Parse(h, now)
		must.True(t, ok && d == want && retryafter.Unread(h) == "", "%q: %v, %v, want %v", value, d, ok, want)
	}
	for _, value := range []string{"soon", "-60", "never", "tomorrow", "Thu, 32 Nov 2026 07:02:00 GMT", "\x00"} {
		h := http.Header{"Retry-After": {value}}
		d, ok := retryafter.Parse(h, now)
		must.True(t, !ok && retryafter.Unread(h) == value, "%q: %v", value, d)
	}
}

func TestHeed_OtherNamesAndSeveralFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		h    http.Header
		want time.Duration
	}{
		{http.Header{"Retry-After": {"5", "20"}}, 20 * time.Second},
		{http.Header{"Retry-After": {"soon", "20"}}, 20 * time.Second},
		{http.Header{"X-Retry-After": {"20"}}, 20 * time.Second},
		{http.Header{"Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond},
		{http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"1500"}}, 2 * time.Second},
		{http.Header{"Retry-After": {"Wed, 25 Nov 2026 07:00:20 GMT"}, "Date": {"Wed, 25 Nov 2026 07:00:00 GMT"}}, 20 * time.Second},
	} {
		d, ok := retryafter.Parse(c.h, now)
		must.True(t, ok && d == c.want, "%v: %v, %v, want %v", c.h, d, ok, c.want)
	}
	_, ok := retryafter.Parse(http.Header{}, now)
	must.True(t, !ok && retryafter.Unread(http.Header{}) == "", "without a field a wait is read")
}
