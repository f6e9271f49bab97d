package logs

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A log that could not be turned once, for want of a file perhaps, is written
// again when there is one: without it nothing would be let through.
func TestHeed_ABoundedLogGoesOnAfterATurnThatFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	w := must.Get(OpenFile(path, 30))(t)
	must.Get(w.Write(make([]byte, 30)))(t)
	must.OK(t, os.Rename(path, path+".old")) // as far as the turn came
	must.Get(w.Write([]byte("and on\n")))(t)
	text, err := os.ReadFile(path)
	must.True(t, err == nil && string(text) == "and on\n", "%q, %v", text, err)
}

func TestHeed_ALogOfBoundedSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	testkit.Write(t, path, "before\n")
	w := must.Get(OpenFile(path, 30))(t)
	for range 9 {
		n, err := w.Write([]byte("0123456789\n"))
		must.Need(t, n == 11 && err == nil, "%v %v", n, err)
	}
	for _, name := range []string{path, path + ".old"} {
		info := must.Get(os.Stat(name))(t)
		must.True(t, info.Size() <= 30 && info.Size() != 0 && info.Mode().Perm() == 0o600,
			"%s: %d bytes, mode %v", name, info.Size(), info.Mode())
	}
}

// Opening a device or a FIFO in the place of the log would wait for its reader.
func TestHeed_ALogThatIsNoFileIsAnError(t *testing.T) {
	must.Fail(t, must.Err(OpenFile(os.DevNull, 30)), "not a regular file")
}

func TestHeed_LogLinesHoldNothingThatATerminalObeys(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		record := audit.NewLog(Handler(&out, format == "json", slog.LevelInfo, (*audit.Privacy)(nil).Redact), nil)
		e := &audit.Entry{
			Method: "GET" + testkit.Hostile, Host: "h.test", Scheme: "http", Target: "/" + testkit.Hostile, Raw: testkit.Hostile, UserAgent: testkit.Hostile, Detail: testkit.Hostile,
			Agent: rules.Identify(testkit.Hostile), Decision: rules.Decision{Reason: rules.ReasonRule, Group: testkit.Hostile, Rule: testkit.Hostile, Line: 1, Token: testkit.Hostile},
		}
		e.Outcome.Err = testkit.Hostile
		must.OK(t, record.Decided(e))
		record.Ended(e)
		slog.New(Handler(&out, format == "json", slog.LevelInfo, (*audit.Privacy)(nil).Redact)).Warn("w", "error", testkit.Hostile, "plain", "a\x7fb")
		testkit.Harmless(t, format, out.String())
		must.Equal(t, strings.Count(out.String(), "\n"), 2, "%s: %q", format, out.String())
	}
}
