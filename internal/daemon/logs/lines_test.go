package logs

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// Whatever a client or a site puts into a line: it has the octets that log/slog writes.
func FuzzLine(f *testing.F) {
	f.Add("http://a.test/b?token=c", "", 1.25, int64(-1))
	f.Add("two words", `a"\`+"\x7f\u202e\xff", 1e-7, int64(0))
	f.Add("a=b", "\u00e9", 1e21, int64(1<<62))
	at := time.Date(2026, 3, 4, 5, 6, 7, 8_900_000, time.FixedZone("", 3600))
	f.Fuzz(func(t *testing.T, text, other string, number float64, n int64) {
		for _, json := range []bool{true, false} {
			var got, want bytes.Buffer
			redact := func(s string) (string, bool) {
				kept := strings.ReplaceAll(s, "token=c", "token=redacted")
				return kept, kept != s
			}
			r := slog.NewRecord(at, slog.LevelWarn, other, 0)
			r.AddAttrs(slog.Attr{Value: slog.GroupValue(slog.String("url", text), slog.Float64("ms", number))}, slog.Int64("n", n),
				slog.Bool("stale", n > 0), slog.Uint64("u", uint64(n)))
			h := Handler(&got, json, slog.LevelInfo, redact)
			must.OK(t, h.Handle(context.Background(), r))
			must.OK(t, Handler(&want, json, slog.LevelInfo, redact).(*lines).Handler.Handle(context.Background(), r))
			must.Equal(t, got.String(), want.String(), "got\n%swant\n%s", &got, &want)
		}
	})
}
