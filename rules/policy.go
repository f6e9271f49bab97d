package rules

import (
	"errors"
	"strings"
	"time"
)

// State says what is known of an origin's robots.txt. The zero value is
// Unreachable, which refuses.
type State uint8

// The states of RFC 9309 §2.3.1.
const (
	Unreachable State = iota // could not be had: everything is refused (§2.3.1.4)
	Unavailable              // the site answered that there is none: everything is allowed (§2.3.1.3)
	Available                // read and parsed (§2.3.1.1)
)

// Source tells how and when a Policy was obtained. It is data: rules has no
// clock and fetches nothing.
type Source struct {
	Origin     Origin
	State      State
	Status     int       // of the final answer; 0 when there was none
	FetchedAt  time.Time // when the bytes were received or last revalidated
	FreshUntil time.Time // when the copy should be asked for again
	// RetryAt is when an Unreachable origin is asked again; zero otherwise.
	RetryAt time.Time
	// Stale is set when the rules are an older copy, served because the site
	// cannot be asked (RFC 9309 §2.4).
	Stale bool
	// Err says why the policy is Unreachable or Stale; nil otherwise. It wraps
	// the network's error, for the proxy to classify.
	Err error
	// NoConnection is set when the origin itself was never reached (DNS,
	// connect, TLS on the first hop): the site is down, not only its robots.txt.
	NoConnection bool
	// RetriedAs is the User-Agent under which the file was asked for again
	// after a 401 or 403; empty when it was not.
	RetriedAs string
	// Own is set when the file is the operator's, in place of the site's.
	Own bool
	// Note is a remark for people, such as "HTML without a rule"; often empty.
	Note string
	// Snapshot is the answer that the Policy was made of, shared by all that
	// were; nil when none was received, or when it is not kept. It holds the
	// file where there was one to read. A Policy that is Unreachable since a
	// later answer was of no use has that answer.
	Snapshot *Snapshot
}

// Engine is the number of the rules by which files are read and targets judged.
// It is raised whenever a verdict, the rule or its line may differ for the same
// bytes, so that a recorded Decision can be held against the engine that made it.
const Engine = 2

// Policy is what one origin's robots.txt says. It is immutable and safe for
// concurrent use.
type Policy struct {
	source  Source
	profile Profile
	engine  *engine // nil unless there are rules to ask
	mark    Source  // State, Err and Note that reading the file led to; Note empty: none
}

// MaxWildcards is how many "*" the rules of one file may have. A file with
// more is not judged by: its policy is Unreachable, with ErrTooManyWildcards.
const MaxWildcards = 1 << 20

// ErrTooManyWildcards says that a robots.txt has more than MaxWildcards wildcards.
var ErrTooManyWildcards = errors.New("robots.txt has more than 1,048,576 wildcards, too many to judge by it")

// New returns the policy that source and body make under the standard profile:
// body is parsed when source.State is Available and ignored otherwise. body is
// not kept. A page of HTML without a rule counts as no file, and Source says so.
func New(source Source, body []byte) *Policy { return NewAs(Standard, source, body) }

// NewAs is New under another profile.
func NewAs(profile Profile, source Source, body []byte) *Policy {
	p := &Policy{source: source, profile: profile}
	if source.State != Available {
		return p
	}
	e := &engine{differences: profile.differences()}
	parser := parser{differences: e.differences, engine: e, origin: source.Origin}
	var cut bool
	e.text, e.start, _, cut = read(body)
	parser.parse(e.text, e.start)
	switch {
	case parser.stars > MaxWildcards:
		p.mark = Source{State: Unreachable, Err: ErrTooManyWildcards, Note: "more than 1,048,576 wildcards: not judged by, and everything is refused"}
	case parser.rules == 0 && looksLikeHTML(e.text[e.start:]):
		p.mark = Source{State: Unavailable, Note: "HTML without a rule"}
	case cut:
		p.mark = Source{State: Available, Note: "longer than 4 MiB: the rest is ignored"}
	}
	if p.mark.Note == "" || p.mark.State == Available {
		e.costly = parser.stars > costlyStars
		e.finish()
		p.engine = e
	}
	p.source = p.marked(source)
	return p
}

// marked returns source with what reading the file led to.
func (p *Policy) marked(source Source) Source {
	switch {
	case p.mark.Err != nil:
		source.State, source.Err, source.Note = p.mark.State, p.mark.Err, p.mark.Note
	case p.mark.Note != "" && source.State == Available:
		source.State, source.Note = p.mark.State, p.mark.Note
	}
	return source
}

// looksLikeHTML reports whether a file without a rule is a page of HTML.
func looksLikeHTML(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\v\f\r\n"), "<")
}

// With returns a policy of the same rules that was obtained as source says: a
// revalidated or a stale copy. It costs no parse.
func (p *Policy) With(source Source) *Policy {
	q := *p
	q.source = p.marked(source)
	return &q
}

// Source returns how and when the policy was obtained.
func (p *Policy) Source() Source { return p.source }

// Profile returns how the file was read.
func (p *Policy) Profile() Profile { return p.profile }

// Size returns about how many bytes of memory the policy holds at most: what it
// remembers of the agents that asked counts as MaxRemembered from the start.
func (p *Policy) Size() int {
	const fixed = 1024 // Policy, Source and engine
	n := fixed + p.source.Snapshot.held()
	switch {
	case p.engine == nil:
		return n
	case !p.engine.calls:
		return n + p.engine.size() // no agent makes a difference
	}
	return n + p.engine.size() + MaxRemembered
}
