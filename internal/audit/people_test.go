package audit

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// People have no line per request, and no host: each client is counted once a
// day.
func TestHeed_ExemptClientsAreCountedOnceADay(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(slog.NewJSONHandler(&out, nil), nil)
	day := time.Date(2026, 11, 23, 23, 59, 0, 0, time.UTC)
	for _, client := range []string{"192.0.2.1:1000", "192.0.2.1:1001", "192.0.2.2:9"} {
		e := newEntry("/")
		e.Time, e.Client, e.ClientName, e.Judged, e.Host = day, client, "office", NotJudged, "somewhere.test"
		e.Decision = rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonExempt}
		must.OK(t, l.Decided(e))
		l.Ended(e)
	}
	l.tick(day)
	must.True(t, out.Len() == 0, "before the day is over: %s", out.String())
	l.tick(day.Add(time.Minute))
	all := lines(t, &out)
	if len(all) != 2 || all[0]["msg"] != "exempt" || all[0]["client"] != "192.0.2.1" || all[0]["requests"] != 2.0 || all[0]["day"] != "2026-11-23" {
		t.Errorf("%v", all)
	}
	l.Close("stopped")
	must.Lack(t, out.String(), "somewhere.test", "the log contains where people go")
}
