package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/safetext"
	"heed/rules"
)

// LongExchange is the duration after which the decision of an open exchange is
// logged before the exchange has ended.
const LongExchange = 10 * time.Second

// maxLogged bounds each text of a log line that a client or a site chose, in octets.
const maxLogged = 4096

// Log is a recorder that writes one structured line per decision, when the
// exchange has ended. Requests of exempt clients are counted in one line per day.
// An exchange that lasts longer than LongExchange has two lines with the same id:
// the decision, after that time, and the end. It is safe for concurrent use.
type Log struct {
	handler slog.Handler
	retry   func() error
	spared  bool                  // see Spare
	wake    func()                // see WriteLater; nil: Ended writes its line
	failed  atomic.Pointer[error] // the error of the last line; nil: it was written

	writing sync.Mutex // held while lines are written; before mu
	spare   []endedLine

	mu     sync.Mutex
	open   map[*Entry]bool // exchanges that have not ended; true: the decision has been logged
	ended  []endedLine     // that are not written yet
	closed bool
	people people
	pages  Pages // with subresources that were answered recently
}

// NewLog returns a recorder that writes to handler. The lines of long exchanges
// are written by Run. After a line could not be written, decisions are refused
// until retry, which tries to write again, returns nil; with a nil retry they
// are refused permanently.
func NewLog(handler slog.Handler, retry func() error) *Log {
	return &Log{handler: handler, retry: retry, open: make(map[*Entry]bool)}
}

// Spare makes Decided accept decisions while the log cannot be written, since another
// recorder has the evidence. It must be called before the first decision.
func (l *Log) Spare() { l.spared = true }

var errClosed = errors.New("heed is stopping")

// Decided implements the proxy's Recorder. Unless the log is spared, it fails while the
// log cannot be written, so that no request proceeds unrecorded.
func (l *Log) Decided(e *Entry) error {
	if err := l.Err(); err != nil && !l.spared {
		return fmt.Errorf("the log cannot be written: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	if e.Exempt() {
		l.people.count(e)
		return nil
	}
	l.open[e] = false
	return nil
}

// Err returns why the log cannot be written; nil when it can.
func (l *Log) Err() error {
	if failed := l.failed.Load(); failed != nil {
		if l.retry == nil || l.retry() != nil {
			return *failed
		}
		l.failed.Store(nil)
	}
	if l.wake != nil && l.retry != nil {
		return l.retry() // the lines that wait have not been tried
	}
	return nil
}

// Close logs the exchanges that have not ended, with why as their error, and
// refuses all later decisions.
func (l *Log) Close(why string) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.writeEnded()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, e := range l.sortedLocked(func(*Entry, bool) bool { return true }) {
		l.write(e, time.Now(), messages[l.open[e]], func(a []slog.Attr) []slog.Attr {
			return append(a, slog.Bool("truncated", true), slog.String("error", why))
		})
	}
	clear(l.open)
	l.logPagesLocked(time.Now().Add(pageIdle))
	l.logExemptLocked(time.Now().AddDate(0, 0, 1))
}

// Ended implements the proxy's Recorder.
func (l *Log) Ended(e *Entry) {
	now := time.Now()
	l.mu.Lock()
	logged, known := l.open[e]
	delete(l.open, e)
	if known { // else Close has logged its end
		l.ended = append(l.ended, endedLine{e, logged, now})
	}
	if known && e.Part != "" {
		l.pages.Add(e, now)
	}
	waiting := len(l.ended)
	l.mu.Unlock()
	switch {
	case l.wake == nil || waiting >= maxEnded || e.Decision.Reason == rules.ReasonRecord:
		l.Flush() // the entry of a decision that another recorder has refused goes on to change
	case waiting == 1:
		l.wake()
	}
}

// messages are the messages of lines, by whether the decision has been logged before.
var messages = map[bool]string{false: "decision", true: "ended"}

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

// tick logs the decisions of exchanges that have lasted LongExchange at now. It
// holds the locks while it writes, so that the decision is logged before the end.
func (l *Log) tick(now time.Time) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.writeEnded()
	l.mu.Lock()
	defer l.mu.Unlock()
	due := l.sortedLocked(func(e *Entry, logged bool) bool { return !logged && now.Sub(e.Time) >= LongExchange })
	for _, e := range due {
		l.open[e] = true
		l.write(e, now, messages[false], nil)
	}
	l.logPagesLocked(now)
	l.logExemptLocked(now)
}

// sortedLocked returns the open entries that match, oldest first.
func (l *Log) sortedLocked(match func(e *Entry, logged bool) bool) []*Entry {
	var found []*Entry
	for e, logged := range l.open {
		if match(e, logged) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *Entry) int { return a.Time.Compare(b.Time) })
	return found
}

var attrs = sync.Pool{New: func() any { s := make([]slog.Attr, 0, 40); return &s }}

// write logs e's decision and the attributes that outcome appends, with the time at.
// outcome is nil before the exchange has ended: e.Outcome may not be read until then.
func (l *Log) write(e *Entry, at time.Time, message string, outcome func([]slog.Attr) []slog.Attr) {
	level := slog.LevelInfo
	if e.Decision.Reason == rules.ReasonUntrusted && e.Decision.Verdict == rules.Refuse || e.Decision.Reason == rules.ReasonRecord || e.Decision.Reason == rules.ReasonInternal {
		level = slog.LevelWarn
	}
	if !l.handler.Enabled(context.Background(), level) {
		return
	}
	buf := attrs.Get().(*[]slog.Attr)
	a := appendDecision((*buf)[:0], e)
	if outcome != nil {
		a = outcome(a)
	}
	l.log(at, level, message, a...)
	clear(a)
	*buf = a
	attrs.Put(buf)
}

// log logs one line, and keeps the error.
func (l *Log) log(now time.Time, level slog.Level, message string, a ...slog.Attr) {
	if !l.handler.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(now, level, message, 0)
	r.AddAttrs(slog.Attr{Value: slog.GroupValue(a...)}) // written as a; the Record would copy a itself
	if err := l.handler.Handle(context.Background(), r); err != nil {
		l.failed.Store(&err)
	}
}

// configDigits is the number of digits logged of a configuration's hash.
const configDigits = 12

// appendDecision appends the attributes known when the request was decided on.
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
	if e.Part != "" {
		a = append(a, slog.String("part", e.Part), slog.String("page", bounded(e.Page)))
	}
	if e.Judged == ByHost {
		a = append(a, slog.Int("unseen_rules", e.Unseen))
	}
	a = appendText(a, "group", d.Group)
	a = appendText(a, "rule", d.Rule)
	if d.Line != 0 {
		a = append(a, slog.Int("line", d.Line))
	}
	a = appendText(a, "variant", d.Variant)
	a = appendPolicy(a, e)
	a = appendPace(a, e)
	a = appendText(a, "raw_target", safetext.Octets(e.Raw))
	a = appendSettings(a, e)
	a = appendText(a, "purpose", strings.Join(e.Purposes, ","))
	a = appendText(a, "signals", e.Said)
	if e.Revises != nil {
		a = append(a, slog.String("revises", e.Revises.String()))
	}
	return appendText(a, "detail", e.DetailWith(strings.Clone))
}

// appendText appends a text unless it is empty.
func appendText(a []slog.Attr, key, value string) []slog.Attr {
	if value == "" {
		return a
	}
	return append(a, slog.String(key, bounded(value)))
}

// appendPolicy appends the age of the rules.
func appendPolicy(a []slog.Attr, e *Entry) []slog.Attr {
	if e.Policy == nil {
		return a
	}
	source := e.Policy.Source()
	if source.State != rules.Unreachable {
		a = append(a, slog.Int64("policy_age_s", int64(e.PolicyAge/time.Second)))
	}
	if source.Stale {
		a = append(a, slog.Bool("stale", true))
	}
	if e.PolicyAge < time.Second { // the first decisions by it; the record has it with the policy
		a = appendText(a, "robots_note", source.Note)
	}
	return a
}

// appendPace appends the crawl delay and the time waited for it.
func appendPace(a []slog.Attr, e *Entry) []slog.Attr {
	if e.DelayAsked > 0 {
		a = append(a, slog.Float64("delay_asked_ms", milliseconds(e.DelayAsked)))
	}
	if e.TurnWaited > 0 {
		a = append(a, slog.Float64("turn_ms", milliseconds(e.TurnWaited)))
	}
	if e.Owed > 0 {
		a = append(a, slog.Float64("owed_ms", milliseconds(e.Owed)))
	}
	return appendText(a, "pace", e.PaceNote)
}

// appendSettings appends the settings that applied to the client and the site.
func appendSettings(a []slog.Attr, e *Entry) []slog.Attr {
	a = appendText(a, "sent_user_agent", e.Sent)
	a = appendText(a, "sent_from", e.SentFrom)
	a = appendText(a, "signed_key", e.SignedKey)
	a = appendText(a, "signed_by", e.SignedBy)
	a = appendText(a, "user", e.User)
	a = appendText(a, "client_name", e.ClientName)
	if e.Mode != "enforce" {
		a = appendText(a, "mode", e.Mode)
	}
	a = appendText(a, "config", e.Config[:min(configDigits, len(e.Config))])
	return appendText(a, "settled", e.Settled)
}

// appendOutcome appends the result of the exchange.
func appendOutcome(a []slog.Attr, e *Entry) []slog.Attr {
	o := &e.Outcome
	by := "heed"
	if o.FromSite {
		by = "site"
	}
	a = append(a,
		slog.Int("status", o.Status),
		slog.String("by", by),
		slog.String("outcome", e.Became()),
		slog.Int64("bytes_in", o.BytesIn),
		slog.Int64("bytes_out", o.BytesOut),
		slog.Float64("waited_ms", milliseconds(o.Waited)),
		slog.Float64("duration_ms", milliseconds(o.Duration)),
	)
	if d := o.Late; d != nil {
		a = append(a, slog.String("late_verdict", d.Verdict.String()), slog.String("late_reason", string(d.Reason)))
		if d.Line != 0 {
			a = append(a, slog.String("late_rule", bounded(d.Rule)), slog.Int("late_line", d.Line))
		}
	}
	a = appendText(a, "page_signals", o.Said)
	if o.SiteStatus != 0 {
		a = append(a, slog.Int("site_status", o.SiteStatus))
	}
	a = appendText(a, "site_answer", o.SiteAnswer)
	if o.Truncated {
		a = append(a, slog.Bool("truncated", true))
	}
	a = appendText(a, "site_asks", o.Note)
	return appendText(a, "error", o.Err)
}

// agentOf returns the product token that an entry was judged by, and its source.
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
		return bounded(e.Agent.Name()), from
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
