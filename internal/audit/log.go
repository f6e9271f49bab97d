package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/base/memo"
	"heed/rules"
)

// LongExchange is the duration after which the decision of an open exchange is
// logged before the exchange has ended.
const LongExchange = 10 * time.Second

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
		l.write(e, time.Now(), messages[l.open[e]], func(a []slog.Attr, _ *Entry) []slog.Attr {
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

// tick logs the decisions of exchanges that have lasted LongExchange at now.
func (l *Log) tick(now time.Time) {
	for l.logLong(now) {
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logPagesLocked(now)
	l.logExemptLocked(now)
}

// logLong logs the decisions of some exchanges that have lasted LongExchange at now, the
// oldest first, and reports whether there may be more. It holds the locks while it writes,
// so that the decision is logged before the end; not for all of them, since every other
// decision waits meanwhile.
func (l *Log) logLong(now time.Time) bool {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.writeEnded()
	l.mu.Lock()
	defer l.mu.Unlock()
	due := l.sortedLocked(func(e *Entry, logged bool) bool { return !logged && now.Sub(e.Time) >= LongExchange })
	more := len(due) > maxEnded
	for _, e := range due[:min(len(due), maxEnded)] {
		l.open[e] = true
		l.write(e, now, messages[false], nil)
	}
	return more
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

var attrs = sync.Pool{New: func() any { s := make([]slog.Attr, 1, 40); return &s }}

// write logs e's decision and the attributes that outcome appends, with the time at.
// outcome is nil before the exchange has ended: e.Outcome may not be read until then.
func (l *Log) write(e *Entry, at time.Time, message string, outcome func([]slog.Attr, *Entry) []slog.Attr) {
	level := slog.LevelInfo
	if e.Decision.Reason == rules.ReasonUntrusted && e.Decision.Verdict == rules.Refuse || e.Decision.Reason == rules.ReasonRecord || e.Decision.Reason == rules.ReasonInternal {
		level = slog.LevelWarn
	}
	if !l.handler.Enabled(context.Background(), level) {
		return
	}
	buf := attrs.Get().(*[]slog.Attr)
	a := appendDecision((*buf)[:1], e)
	if outcome != nil {
		a = outcome(a, e)
	}
	a[0] = slog.Attr{Value: slog.GroupValue(a[1:]...)} // written as those; the Record would copy them
	l.log(at, level, message, a[:1])
	clear(a)
	*buf = a
	attrs.Put(buf)
}

// log logs one line, and keeps the error.
func (l *Log) log(now time.Time, level slog.Level, message string, a []slog.Attr) {
	if !l.handler.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(now, level, message, 0)
	r.AddAttrs(a...)
	if err := l.handler.Handle(context.Background(), r); err != nil {
		failed := err // err itself would be in memory for each line
		l.failed.Store(&failed)
	}
}

// maxEnded bounds the lines that wait for Log.Flush: their writer must have room for all
// of them when it begins to refuse more, and each keeps its exchange in memory.
const maxEnded = 64

// endedLine is the last line of an exchange.
type endedLine struct {
	e      *Entry
	logged bool // the decision has been logged
	at     time.Time
}

// WriteLater makes Ended keep its lines until Flush, which costs less for many lines
// than for one at a time. wake is called when lines begin to wait, and must cause a
// Flush soon. The retry of NewLog is then called before each decision, and must be fast.
// WriteLater must be called before the first decision.
func (l *Log) WriteLater(wake func()) { l.wake = wake }

// Flush writes the lines of exchanges that have ended.
func (l *Log) Flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.writeEnded()
}

// writeEnded is Flush for a caller that holds writing.
func (l *Log) writeEnded() {
	l.mu.Lock()
	lines := l.ended
	l.ended = l.spare
	l.mu.Unlock()
	for _, line := range lines {
		l.writeLine(line)
	}
	clear(lines)
	l.spare = lines[:0]
}

// writeLine writes one line. A panic is an error of the log: the goroutine that writes
// the lines of all requests must not end the process.
func (l *Log) writeLine(line endedLine) {
	defer func() {
		if v := recover(); v != nil {
			err := fmt.Errorf("a line could not be made: %v", v)
			l.failed.Store(&err)
		}
	}()
	l.write(line.e, line.at, messages[line.logged], appendOutcome)
}

// People replaces, in counts, the hosts that exempt clients request: heed does
// not record which sites people visit.
const People = "(people)"

// TLSForHTTP begins the Detail of a connection on which TLS came where HTTP was expected.
const TLSForHTTP = "TLS came in place of HTTP"

// WrongClock is in the Detail of a failed handshake whose client rejected the time of a
// certificate of heed.
const WrongClock = "the clock of this client may be wrong: it says that a certificate of heed is not valid at its time"

// Other replaces, in counts, all names beyond a bound.
const Other = "(others)"

// maxPeople bounds how many exempt clients are counted by their address.
const maxPeople = 10_000

// person is an exempt client: the name of its [[client]] and its address.
type person struct{ name, address string }

func (p person) clone() person { return person{strings.Clone(p.name), strings.Clone(p.address)} }

// people counts the requests of exempt clients on one day.
type people struct {
	day    string // UTC
	counts memo.Bounded[person, uint64]
}

// count adds e.
func (p *people) count(e *Entry) {
	k := person{e.ClientName, e.Client}
	if address, _, err := net.SplitHostPort(e.Client); err == nil {
		k.address = address
	}
	if p.counts == nil {
		p.day = e.Time.UTC().Format(time.DateOnly)
	}
	*p.counts.At(k, person{Other, Other}, maxPeople, person.clone)++
}

// logExemptLocked logs a line for each exempt client and clears the counts when
// their day is over at now. The lines have the present time: at the end of heed now is
// tomorrow.
func (l *Log) logExemptLocked(now time.Time) {
	if l.people.counts == nil || l.people.day == now.UTC().Format(time.DateOnly) {
		return
	}
	all := slices.SortedFunc(maps.Keys(l.people.counts), func(a, b person) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.address, b.address))
	})
	for _, k := range all {
		l.log(time.Now(), slog.LevelInfo, "exempt", []slog.Attr{slog.String("client", k.address), slog.String("client_name", k.name),
			slog.String("day", l.people.day), slog.Uint64("requests", *l.people.counts[k])})
	}
	l.people = people{}
}

// maxPages bounds the pages that are counted by their address, and maxPage the octets of one.
const (
	maxPages = 1000
	maxPage  = 200
)

// pageIdle is the time after its last subresource when a page counts as loaded.
const pageIdle = 2 * time.Second

// PageCount counts the requests that a browser made for the subresources of one
// page. Page is the address that the browser sent, cut to 200 octets; empty when
// it sent none, and Other for pages beyond a bound.
type PageCount struct {
	Page        string `json:"page"`
	Parts       uint64 `json:"parts"`
	Refused     uint64 `json:"refused"`         // by heed
	SiteRefused uint64 `json:"refused_by_site"` // allowed by heed, and refused by the site

	last time.Time // when a subresource was last answered
}

// Pages counts requests for subresources by page. The zero value is empty.
type Pages struct {
	counts memo.Bounded[string, PageCount]
}

// Add counts e, a request for a subresource that ended at a time.
func (p *Pages) Add(e *Entry, at time.Time) {
	c := p.counts.At(e.Page[:min(len(e.Page), maxPage)], Other, maxPages, strings.Clone)
	c.Parts++
	if e.Decision.Verdict == rules.Refuse {
		c.Refused++
	}
	if e.SiteRefused() {
		c.SiteRefused++
	}
	c.last = at
}

// Refused returns the pages with refused subresources, most first.
func (p *Pages) Refused() []PageCount {
	list := make([]PageCount, 0, len(p.counts))
	for address, c := range p.counts {
		if c.Refused+c.SiteRefused > 0 {
			list = append(list, PageCount{Page: address, Parts: c.Parts, Refused: c.Refused, SiteRefused: c.SiteRefused})
		}
	}
	slices.SortFunc(list, func(a, b PageCount) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.SiteRefused, a.SiteRefused), cmp.Compare(a.Page, b.Page))
	})
	return list
}

// logPagesLocked removes the pages that are loaded at now, and logs a line for
// each with refused subresources. The lines have the present time: at the end of heed now
// is a time at which every page is loaded.
func (l *Log) logPagesLocked(now time.Time) {
	done := Pages{memo.Bounded[string, PageCount]{}}
	for address, c := range l.pages.counts {
		if now.Sub(c.last) >= pageIdle {
			done.counts[address] = c
			delete(l.pages.counts, address)
		}
	}
	for _, c := range done.Refused() {
		l.log(time.Now(), slog.LevelInfo, "page", []slog.Attr{slog.String("page", c.Page), slog.Uint64("parts", c.Parts),
			slog.Uint64("refused", c.Refused), slog.Uint64("refused_by_site", c.SiteRefused)})
	}
}
