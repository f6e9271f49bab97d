package soak

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// mostRequests is how many requests a ledger has room for.
const mostRequests = 1 << 26

// set is a set of request numbers. It is safe for concurrent use.
type set struct {
	words []atomic.Uint64
	count atomic.Int64
}

func newSet() *set { return &set{words: make([]atomic.Uint64, mostRequests/64)} }

// add reports whether n is new.
func (s *set) add(n uint64) bool {
	bit := uint64(1) << (n % 64)
	if s.words[n/64].Or(bit)&bit != 0 {
		return false
	}
	s.count.Add(1)
	return true
}

func (s *set) has(n uint64) bool { return s.words[n/64].Load()>>(n%64)&1 == 1 }

// beyond returns the first numbers of s that are not in other.
func (s *set) beyond(other *set) (all []uint64) {
	for i := range s.words {
		rest := s.words[i].Load() &^ other.words[i].Load()
		for bit := range uint64(64) {
			if rest>>bit&1 == 1 && len(all) < 5 {
				all = append(all, uint64(i)*64+bit)
			}
		}
	}
	return all
}

// ledger is what the three sides say of each request: the client, heed's log,
// and the site. Every request has a number, the last part of its path.
type ledger struct {
	next atomic.Uint64

	// Of the client:
	answered *set // a head came
	fromSite *set // and it was the site's
	whole    *set // the whole answer came, and was right
	left     *set // the client left before the end
	// Of heed's log:
	allowed, refused *set
	bySite           *set         // the answer was the site's
	early            atomic.Int64 // of refused: clients that left before the site's rules were known
	twice, others    atomic.Int64
	// Of the site:
	reached *set

	wrong    atomic.Int64 // requests that went otherwise than they should
	examples chan string  // some of them
}

func newLedger() *ledger {
	return &ledger{
		answered: newSet(), fromSite: newSet(), whole: newSet(), left: newSet(),
		allowed: newSet(), refused: newSet(), bySite: newSet(), reached: newSet(),
		examples: make(chan string, 20),
	}
}

// amiss notes what should not be.
func (l *ledger) amiss(format string, values ...any) {
	l.wrong.Add(1)
	select {
	case l.examples <- fmt.Sprintf(format, values...):
	default:
	}
}

// line takes one line of heed's log.
func (l *ledger) line(text []byte) {
	var r struct {
		Msg, URL, Verdict, By string
		Reason, Level         string
		Error                 string
		Truncated             bool
		Out                   int `json:"bytes_out"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		l.amiss("a line of the log is no JSON: %q", text)
		return
	}
	n, kind, ok := parse(r.URL)
	if r.Msg != "decision" && r.Msg != "ended" || !ok {
		l.others.Add(1)
		// Who leaves right after the handshake looks as one that does not trust
		// the CA does.
		if r.Level != "INFO" && r.Reason != "ca-untrusted" {
			l.amiss("the log says %s", text)
		}
		return
	}
	if r.By == "site" {
		l.bySite.add(n)
	}
	// A client that has all the octets it was told of may leave before heed knows.
	whole := r.Out == len(bodyOf(n))
	if (r.Truncated || r.Error != "") && !l.left.has(n) && kind != cut && kind != reset && !whole {
		l.amiss("the log says %s", text)
	}
	if r.Msg == "ended" {
		return // its decision has been told
	}
	verdicts := l.allowed
	if r.Verdict != "allow" {
		verdicts = l.refused
	}
	if !verdicts.add(n) {
		l.twice.Add(1)
	}
	leftEarly := r.Reason == "client-left" && l.left.has(n)
	if leftEarly {
		l.early.Add(1)
	}
	if (r.Verdict == "allow") != kind.allowed() && !leftEarly {
		l.amiss("the log says %s of %s (%s)", r.Verdict, r.URL, r.Reason)
	}
}

// parse takes a request's number and kind out of its address or path.
func parse(address string) (n uint64, k kind, ok bool) {
	rest, number, _ := cutLast(address)
	_, name, _ := cutLast(rest)
	n, err := strconv.ParseUint(number, 10, 64)
	k, known := kinds[name]
	return n, k, err == nil && known && n < mostRequests
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// settled reports whether heed has told of every request that was answered.
func (l *ledger) settled() bool {
	return len(l.answered.beyond(union{l.allowed, l.refused}.set())) == 0
}

// union is several sets at once.
type union []*set

func (u union) set() *set {
	all := newSet()
	for i := range all.words {
		for _, s := range u {
			all.words[i].Or(s.words[i].Load())
		}
	}
	return all
}

// check compares what the three sides say.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	t.Logf("%d requests: %d answered (%d by the site, %d whole, %d left by the client before the end); the log has %d allowed, %d refused, %d answered by the site, %d other lines; %d reached the site",
		l.next.Load(), l.answered.count.Load(), l.fromSite.count.Load(), l.whole.count.Load(), l.left.count.Load(),
		l.allowed.count.Load(), l.refused.count.Load(), l.bySite.count.Load(), l.others.Load(), l.reached.count.Load())
	within := func(what string, s, other *set) {
		t.Helper()
		if beyond := s.beyond(other); len(beyond) > 0 {
			t.Errorf("%s: not so for %v and perhaps others", what, beyond)
		}
	}
	within("what reached the site was allowed before", l.reached, l.allowed)
	within("what the site answered reached it", l.bySite, l.reached)
	within("what a client has from the site is recorded as such", l.fromSite, l.bySite)
	within("what a client was answered was decided on", l.answered, union{l.allowed, l.refused}.set())
	within("what was decided on was answered, but for clients that left", union{l.allowed, l.refused}.set(), union{l.answered, l.left}.set())
	within("what was allowed reached the site, but for clients that left", l.allowed, union{l.reached, l.left}.set())
	within("an answer is whole, but for clients that left", l.answered, union{l.whole, l.left}.set())
	if n := l.twice.Load(); n > 0 {
		t.Errorf("%d requests were decided on twice", n)
	}
	if n := l.wrong.Load(); n > 0 {
		t.Errorf("%d requests went wrong", n)
		for len(l.examples) > 0 {
			t.Error(<-l.examples)
		}
	}
}
