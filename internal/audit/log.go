package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"heed/rules"
)

// LongExchange is how long an exchange may last before its decision is logged
// ahead of its end.
const LongExchange = 10 * time.Second

// maxLogged bounds each text of a log line that a client or a site chose, in octets.
const maxLogged = 4096

// Log is a recorder that writes one structured line per decision, when the
// exchange has ended. An exchange that lasts over LongExchange has two lines
// with the same id: the decision, once that time has passed, and the end. It
// is safe for concurrent use.
type Log struct {
	handler slog.Handler

	mu   sync.Mutex
	open map[*Entry]bool // exchanges that have not ended; true: the decision is logged already
}

// NewLog returns a recorder that writes to handler. Run has to be running for
// the lines of long exchanges.
func NewLog(handler slog.Handler) *Log {
	return &Log{handler: handler, open: make(map[*Entry]bool)}
}

// Decided implements the proxy's Recorder. It never fails.
func (l *Log) Decided(e *Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[e] = false
	return nil
}

// Ended implements the proxy's Recorder.
func (l *Log) Ended(e *Entry) {
	l.mu.Lock()
	logged := l.open[e]
	delete(l.open, e)
	l.mu.Unlock()
	message := "decision"
	if logged {
		message = "ended"
	}
	l.write(e, message, true)
}

// Run logs the decisions of long exchanges until ctx ends.
func (l *Log) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			l.tick(now)
		}
	}
}

// tick logs the exchanges that have lasted LongExchange at now. It holds the
// lock while it writes, so that no exchange ends before its decision is told.
func (l *Log) tick(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []*Entry
	for e, logged := range l.open {
		if !logged && now.Sub(e.Time) >= LongExchange {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b *Entry) int { return a.Time.Compare(b.Time) })
	for _, e := range due {
		l.open[e] = true
		l.write(e, "decision", false)
	}
}

var attrs = sync.Pool{New: func() any { s := make([]slog.Attr, 0, 40); return &s }}

// write logs e; the outcome only when the exchange has ended, since it is
// still being written before.
func (l *Log) write(e *Entry, message string, ended bool) {
	level := slog.LevelInfo
	if e.Decision.Reason == rules.ReasonUntrusted || e.Decision.Reason == rules.ReasonRecord || e.Decision.Reason == rules.ReasonInternal {
		level = slog.LevelWarn
	}
	ctx := context.Background()
	if !l.handler.Enabled(ctx, level) {
		return
	}
	buf := attrs.Get().(*[]slog.Attr)
	a := appendDecision((*buf)[:0], e)
	at := e.Time
	if ended {
		a = appendOutcome(a, e)
		at = e.Time.Add(e.Outcome.Duration)
	}
	r := slog.NewRecord(at, level, message, 0)
	r.AddAttrs(a...)
	_ = l.handler.Handle(ctx, r) // a log that cannot be written has nowhere to say so
	clear(a)
	*buf = a
	attrs.Put(buf)
}

// appendDecision adds what was known when the request was decided on.
func appendDecision(a []slog.Attr, e *Entry) []slog.Attr {
	d := &e.Decision
	name, from := agentOf(e)
	a = append(a,
		slog.String("id", e.ID.String()),
		slog.String("client", e.Client),
		slog.String("agent", name),
		slog.String("agent_from", from),
		slog.String("user_agent", bounded(e.UserAgent)),
		slog.String("method", bounded(e.Method)),
		slog.String("url", bounded(e.URL())),
		slog.String("judged", e.Judged.String()),
		slog.String("verdict", d.Verdict.String()),
		slog.String("reason", string(d.Reason)),
	)
	if d.Group != "" {
		a = append(a, slog.String("group", bounded(d.Group)))
	}
	if d.Line != 0 {
		a = append(a, slog.String("rule", bounded(d.Rule)), slog.Int("line", d.Line))
	}
	if d.Variant != "" {
		a = append(a, slog.String("variant", d.Variant))
	}
	if e.Policy != nil {
		source := e.Policy.Source()
		if source.State != rules.Unreachable {
			a = append(a, slog.Int64("policy_age_s", int64(e.PolicyAge/time.Second)))
		}
		if source.Stale {
			a = append(a, slog.Bool("stale", true))
		}
	}
	if e.Raw != "" {
		a = append(a, slog.String("raw_target", bounded(e.Raw)))
	}
	if e.Sent != "" {
		a = append(a, slog.String("sent_user_agent", bounded(e.Sent)))
	}
	if e.Detail != "" {
		a = append(a, slog.String("detail", bounded(e.Detail)))
	}
	return a
}

// appendOutcome adds how the exchange ended.
func appendOutcome(a []slog.Attr, e *Entry) []slog.Attr {
	o := &e.Outcome
	by := "heed"
	if o.FromSite {
		by = "site"
	}
	a = append(a,
		slog.Int("status", o.Status),
		slog.String("by", by),
		slog.Int64("bytes_in", o.BytesIn),
		slog.Int64("bytes_out", o.BytesOut),
		slog.Float64("waited_ms", milliseconds(o.Waited)),
		slog.Float64("duration_ms", milliseconds(o.Duration)),
	)
	if o.Truncated {
		a = append(a, slog.Bool("truncated", true))
	}
	if o.Err != "" {
		a = append(a, slog.String("error", bounded(o.Err)))
	}
	return a
}

// agentOf returns the name an entry was judged by and where it comes from.
func agentOf(e *Entry) (name, from string) {
	switch {
	case e.Agent == nil:
		return "", "none"
	case e.Agent.Declared:
		from = "declared"
	case e.UserAgent == "":
		return "*", "none"
	default:
		from = "user-agent"
	}
	switch {
	case e.Decision.Token != "":
		return bounded(e.Decision.Token), from
	case len(e.Agent.Tokens) > 0:
		return bounded(e.Agent.Tokens[0].Name), from
	default:
		return "*", from
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func bounded(s string) string {
	if len(s) > maxLogged {
		return s[:maxLogged] + "..."
	}
	return s
}
