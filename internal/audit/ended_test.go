package audit

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// Lines that wait are written in their order, with the times at which the exchanges ended,
// and wake is called once for all of them.
func TestHeed_LinesWaitForFlush(t *testing.T) {
	var out bytes.Buffer
	woken := 0
	l := NewLog(slog.NewJSONHandler(&out, nil), nil)
	l.WriteLater(func() { woken++ })
	ended := time.Now()
	for _, target := range []string{"/1", "/2", "/3"} {
		e := newEntry(target)
		must.OK(t, l.Decided(e))
		l.Ended(e)
	}
	must.True(t, woken == 1 && out.Len() == 0, "woken %d times, and %q is written", woken, out.String())
	latest := time.Now()
	l.Flush()
	l.Flush()
	all := lines(t, &out)
	must.Need(t, len(all) == 3, "%d lines", len(all))
	for i, line := range all {
		want := "http://site.test/" + string(rune('1'+i))
		must.True(t, line["url"] == want, "line %d is for %v, not %s", i, line["url"], want)
		if at, err := time.Parse(time.RFC3339Nano, line["time"].(string)); err != nil || at.Before(ended.Truncate(0)) || at.After(latest) {
			t.Errorf("line %d has the time %v, %v", i, line["time"], err)
		}
	}
	last := newEntry("/4")
	_ = l.Decided(last)
	if l.Ended(last); woken != 2 {
		t.Errorf("woken %d times", woken)
	}
}

// What waits is bounded, and nothing of it is lost when heed stops.
func TestHeed_LinesThatWaitAreBounded(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(slog.NewJSONHandler(&out, nil), nil)
	l.WriteLater(func() {})
	for range maxEnded + 7 {
		e := newEntry("/")
		_ = l.Decided(e)
		l.Ended(e)
	}
	must.Equal(t, bytes.Count(out.Bytes(), []byte("\n")), maxEnded, "of %d lines are written", maxEnded+7)
	l.Close("stopped")
	must.Equal(t, bytes.Count(out.Bytes(), []byte("\n")), maxEnded+7, "of %d lines are written at the end", maxEnded+7)
}

// A decision that another recorder refuses ends before its exchange, which goes on to
// change the entry: its line does not wait.
func TestHeed_ADecisionThatCannotBeRecordedIsLoggedBeforeItsEntryChanges(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(slog.NewJSONHandler(&out, nil), nil)
	l.WriteLater(func() {})
	first, refused := newEntry("/first"), newEntry("/refused")
	_, _ = l.Decided(first), l.Decided(refused)
	l.Ended(first)
	refused.Decision, refused.Detail = rules.Decision{Reason: rules.ReasonRecord}, "the disk is full"
	l.Ended(refused)
	refused.Outcome.Status, refused.Detail = 503, "later"
	l.Flush()
	all := lines(t, &out)
	if len(all) != 2 || all[1]["reason"] != "record" || all[1]["detail"] != "the disk is full" || all[1]["status"] != 0.0 {
		t.Errorf("%v", all)
	}
}

// faulty is a handler that panics.
type faulty struct{ slog.Handler }

func (faulty) Handle(context.Context, slog.Record) error { panic("a fault") }

// A fault in one line must not end the process, which serves others. It counts as a log
// that cannot be written.
func TestHeed_ALineThatCannotBeMadeIsAnError(t *testing.T) {
	l := NewLog(faulty{slog.NewJSONHandler(&bytes.Buffer{}, nil)}, nil)
	l.WriteLater(func() {})
	e := newEntry("/")
	must.OK(t, l.Decided(e))
	l.Ended(e)
	if l.Flush(); l.Err() == nil || l.Decided(newEntry("/")) == nil {
		t.Error("a decision is accepted although lines cannot be made")
	}
}
