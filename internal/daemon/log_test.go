package daemon

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"heed/internal/audit"
	"heed/internal/config"
	"heed/internal/daemon/logs"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// The last line before heed dies must not be among those that wait for others, and
// follows the decisions made before it.
func TestHeed_AnErrorIsLoggedWithoutDelay(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	hurried := 0
	lines := slog.NewTextHandler(&out, nil)
	decisions := audit.NewLog(lines, nil)
	decisions.WriteLater(func() {})
	log := slog.New(logs.Events{Handler: lines, Decisions: decisions.Flush, Hurry: func() { hurried++ }})
	e := &audit.Entry{Method: "GET", Host: "h.test"}
	must.OK(t, decisions.Decided(e))
	if decisions.Ended(e); out.Len() > 0 {
		t.Errorf("written early: %s", out.String())
	}
	log.Info("an event")
	log.Warn("a remark")
	must.Equal(t, hurried, 0, "lines below the level error were hurried")
	log.Error("an error")
	log.With("id", 1).Error("another")
	log.WithGroup("group").Error("a third")
	must.True(t, hurried == 3, "%d of 3 errors were hurried:\n%s", hurried, out.String())
	at := strings.Index(out.String(), "msg=decision")
	must.True(t, at >= 0 && at <= strings.Index(out.String(), "an event"), "the decision does not come first:\n%s", out.String())
}

// gate is an output that blocks while it is shut, or fails with its error.
type gate struct {
	mu   sync.Mutex // held while it is shut
	fail atomic.Pointer[error]
	out  bytes.Buffer
}

// Write implements io.Writer.
func (g *gate) Write(p []byte) (int, error) {
	if err := g.fail.Load(); err != nil {
		return 0, *err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out.Write(p)
}

// logThrough returns a log of decisions that writes to out as a daemon's does.
func logThrough(out io.Writer) (*audit.Log, *logs.Writer) {
	buffered := logs.NewWriter(out)
	log := audit.NewLog(logs.Handler(buffered, true, slog.LevelInfo, (*audit.Privacy)(nil).Redact), buffered.Err)
	log.WriteLater(buffered.Wake)
	buffered.Gather(log.Flush)
	return log, buffered
}

// While the output of the log blocks, decisions are refused before there is no room for
// their lines: those that were accepted are all in it later.
func TestHeed_NoLineIsLostWhenTheLogBlocks(t *testing.T) {
	t.Parallel()
	out := &gate{}
	log, buffered := logThrough(out)
	out.mu.Lock()
	accepted := 0
	long := strings.Repeat("x", 1<<16) // more than a line takes of it
	for ; ; accepted++ {
		e := &audit.Entry{Method: "GET", Scheme: "http", Host: "h.test", Target: "/" + long, Raw: long, UserAgent: long, Detail: long}
		if err := log.Decided(e); err != nil {
			must.True(t, errors.Is(err, logs.ErrPending), "refused with %v", err)
			break
		}
		log.Ended(e)
	}
	out.mu.Unlock()
	log.Close("")
	must.OK(t, buffered.Drain(testkit.Patience))
	n := bytes.Count(out.out.Bytes(), []byte("\n"))
	must.True(t, n == accepted && accepted != 0, "%d lines of %d decisions", n, accepted)
}

// Where the record has the evidence, a log that cannot be written or is not read is no
// outage: the failure is reported, the lines that are lost are counted, and those that are
// not lost are written later.
func TestHeed_TheRecordAloneCarriesTheEvidence(t *testing.T) {
	t.Parallel()
	full := errors.New("no space")
	for name, c := range map[string]struct{ begin, end func(*gate) }{
		"not read":  {func(g *gate) { g.mu.Lock() }, func(g *gate) { g.mu.Unlock() }},
		"full disk": {func(g *gate) { g.fail.Store(&full) }, func(g *gate) { g.fail.Store(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &gate{}
			log, buffered := logThrough(out)
			log.Spare()
			c.begin(out)
			decided, long := uint64(0), strings.Repeat("x", 1<<16)
			for ; buffered.Lost() < 3; decided++ {
				e := &audit.Entry{Method: "GET", Scheme: "http", Host: "h.test", Target: "/" + long, Raw: long, UserAgent: long, Detail: long}
				must.OK(t, log.Decided(e), "decision %d was refused", decided)
				log.Ended(e)
			}
			must.True(t, log.Err() != nil, "the failure is not reported")
			c.end(out)
			err := buffered.Drain(testkit.Patience)
			must.True(t, err == nil && log.Err() == nil, "afterwards: %v, %v", err, log.Err())
			n := uint64(bytes.Count(out.out.Bytes(), []byte("\n")))
			must.True(t, n+buffered.Lost() == decided, "%d lines and %d lost of %d decisions", n, buffered.Lost(), decided)
		})
	}
}

// A heed whose log is the record stops when the log has lost its reader; where the record
// or audit.on_failure carries on, it does not.
func TestHeed_StopsWithoutAReaderOfItsOnlyRecord(t *testing.T) {
	for text, stops := range map[string]bool{
		"": false, "[audit]\nenabled = false\n": true, "[audit]\nenabled = false\non_failure = \"continue\"\n": false,
	} {
		cfg := must.Get(config.Load(testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), text), testkit.BuiltIn(t)))(t)
		d := &daemon{resources: &resources{}, failed: make(chan error, 1)}
		d.current.Store(&runtimeConfig{cfg: cfg})
		r, w := must.Two(os.Pipe())(t)
		defer w.Close()
		r.Close()
		called := make(chan struct{})
		buffered := logs.NewWriter(w)
		buffered.Broken(func(err error) { d.stopWithoutLog(err); close(called) })
		_, _ = buffered.Write([]byte("a line\n"))
		<-called
		must.Equal(t, (len(d.failed) == 1), stops, "%q: stops is %t, want %t", text, !stops, stops)
	}
}

// When the output has failed, the next decision is refused, even though no line has been
// given to it since.
func TestHeed_NoDecisionFollowsAFailureOfTheLog(t *testing.T) {
	t.Parallel()
	out, full := &gate{}, errors.New("no space")
	out.fail.Store(&full)
	log, buffered := logThrough(out)
	e := &audit.Entry{Method: "GET", Host: "h.test"}
	must.OK(t, log.Decided(e))
	log.Ended(e)
	testkit.Until(t, "the failure is known", func() bool { return buffered.Err() != nil })
	err := log.Decided(&audit.Entry{})
	must.True(t, errors.Is(err, full) && log.Err() != nil, "accepted with %v", err)
	out.fail.Store(nil)
	testkit.Until(t, "decisions are accepted again", func() bool { return log.Decided(&audit.Entry{}) == nil })
}
