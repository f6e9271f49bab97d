package rules

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// State is the availability of an origin's robots.txt. The zero value is
// Unreachable, which refuses.
type State uint8

// The states of RFC 9309 §2.3.1.
const (
	Unreachable State = iota // could not be fetched: everything is refused (§2.3.1.4)
	Unavailable              // the site has none: everything is allowed (§2.3.1.3)
	Available                // read and parsed (§2.3.1.1)
)

// StateNames are the stable names of the states: records and answers contain them.
var StateNames = []string{Unreachable: "unreachable", Unavailable: "unavailable", Available: "available"}

// Source is how and when a Policy was obtained. It is data: rules has no clock
// and fetches nothing. As JSON it has what does not follow from where it is kept.
type Source struct {
	Origin     Origin    `json:"-"`
	State      State     `json:"state"`
	Status     int       `json:"status,omitzero"`  // of the final answer; 0 when there was none
	FetchedAt  time.Time `json:"fetched,omitzero"` // when the octets were received or last revalidated
	FreshUntil time.Time `json:"fresh,omitzero"`   // when the copy should be fetched again
	// RetryAt is when an Unreachable robots.txt is requested again; zero otherwise.
	RetryAt time.Time `json:"retry,omitzero"`
	// Stale is set when the rules are an older copy, used because the site
	// is unreachable (RFC 9309 §2.4).
	Stale bool `json:"stale,omitzero"`
	// Err is the cause when the policy is Unreachable or Stale; nil otherwise. It
	// wraps the error of the network, so that the proxy can classify it.
	Err error `json:"-"`
	// NoConnection is set when the origin itself was never reached (DNS,
	// connect, TLS on the first hop): the site is down, not only its robots.txt.
	NoConnection bool `json:"unconnected,omitzero"`
	// RetriedAs is the User-Agent with which the file was requested again
	// after a 401 or 403; empty when it was not.
	RetriedAs string `json:"as,omitzero"`
	// NameNotAsked is set when the site may answer each client differently and was not
	// asked under the client's name, because it was under many others: the files that it
	// gave to those count too.
	NameNotAsked bool `json:"-"`
	// Own is set when the file is the operator's, in place of the site's.
	Own bool `json:"-"`
	// Note is a remark for people, such as "HTML without a rule in a group"; often empty.
	Note string `json:"note,omitzero"`
	// Snapshot is the answer from which the Policy was made; policies of one
	// answer share it. It is nil when none was received, or when it is not kept.
	// It contains the file if there was one. A Policy that is Unreachable because
	// a later answer was not usable has that answer.
	Snapshot *Snapshot `json:"-"`
}

// Engine is the version of the way in which files are read and targets judged.
// It is raised whenever a verdict, the rule or its line may differ for the same
// octets, so that a recorded Decision can be held against the engine that made it.
const Engine = 5

// Policy is one origin's robots.txt, parsed. It is immutable and safe for
// concurrent use.
type Policy struct {
	source  Source
	profile Profile
	engine  *engine // nil when there are no rules
	outcome Source  // State, Err and Note from reading the file; Note empty: none
}

// MaxWildcards is the number of "*" that the rules of one file may have. A file
// with more is not used: its policy is Unreachable, with ErrTooManyWildcards.
const MaxWildcards = 1 << 20

// MaxNameWords is the number of words in all names of several words that the
// user-agent lines of one file may have: each of them is compared with the names of
// each new agent. A file with more is not used: its policy is Unreachable, with
// ErrTooManyWords.
const MaxNameWords = 1 << 16

// ErrTooManyWords is the error for a robots.txt that has more than MaxNameWords words
// in names of several words.
var ErrTooManyWords = errors.New("robots.txt has more than 65,536 words in names of several words and is not used")

// ErrTooManyWildcards is the error for a robots.txt that has more than
// MaxWildcards wildcards.
var ErrTooManyWildcards = errors.New("robots.txt has more than 1,048,576 wildcards and is not used")

// New returns the policy of source and body under the standard profile: body is
// parsed when source.State is Available and ignored otherwise. body is
// not kept. A page of HTML without a rule counts as no file; the Source
// of the policy has a Note then.
func New(source Source, body []byte) *Policy { return NewAs(Standard, source, body) }

// NewAs is New under another profile.
func NewAs(profile Profile, source Source, body []byte) *Policy {
	p := &Policy{source: source, profile: profile}
	if source.State != Available {
		return p
	}
	e := &engine{file: file{differences: profile.differences()}}
	parser := parser{differences: e.differences, file: &e.file, origin: source.Origin}
	var cut bool
	e.text, e.start, _, cut = read(body)
	parser.parse(e.text, e.start)
	switch {
	case parser.Wildcards > MaxWildcards:
		p.outcome = Source{State: Unreachable, Err: ErrTooManyWildcards, Note: "more than 1,048,576 wildcards: the file is not used and everything is refused"}
	case e.words > MaxNameWords:
		p.outcome = Source{State: Unreachable, Err: ErrTooManyWords, Note: "more than 65,536 words in names of several words: the file is not used and everything is refused"}
	case parser.Rules == 0 && looksLikeHTML(e.text[e.start:]):
		p.outcome = Source{State: Unavailable, Note: "HTML without a rule in a group"}
	case cut:
		p.outcome = Source{State: Available, Note: "longer than 4 MiB: the rest is ignored"}
	case parser.lostLines > 0:
		p.outcome = Source{State: Available, Note: parser.lostNote()}
	}
	if p.outcome.Note == "" || p.outcome.State == Available {
		e.finish()
		p.engine = e
	}
	p.source = p.withOutcome(source)
	return p
}

// withOutcome returns source with the outcome of reading the file.
func (p *Policy) withOutcome(source Source) Source {
	switch {
	case p.outcome.Err != nil:
		source.State, source.Err, source.Note = p.outcome.State, p.outcome.Err, p.outcome.Note
	case p.outcome.Note != "" && source.State == Available:
		source.State = p.outcome.State
		if !strings.Contains(source.Note, p.outcome.Note) {
			source.Note = strings.TrimPrefix(source.Note+"; "+p.outcome.Note, "; ")
		}
	}
	return source
}

// looksLikeHTML reports whether a file without a rule is a page of HTML.
func looksLikeHTML(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\v\f\r\n"), "<")
}

// With returns a policy of the same rules with another source, such as a
// revalidated or a stale copy. It does not parse the file again.
func (p *Policy) With(source Source) *Policy {
	q := *p
	q.source = p.withOutcome(source)
	return &q
}

// ReadAs returns a policy of the same rules that judges targets in the readings of another
// profile: under Strict in all. Everything else is as p has it.
func (p *Policy) ReadAs(profile Profile) *Policy {
	if p.engine == nil {
		return p
	}
	q, e := *p, p.engine
	q.engine = &engine{file: e.file, indexes: e.indexes, hasNames: e.hasNames, paced: e.paced, general: e.general, star: e.star}
	q.engine.allReadings = profile.differences().allReadings
	return &q
}

// Source returns how and when the policy was obtained.
func (p *Policy) Source() Source { return p.source }

// Profile returns how the file was read.
func (p *Policy) Profile() Profile { return p.profile }

// Size returns about the most memory that the policy takes, in octets: what it
// remembers of agents counts as MaxRemembered from the start.
func (p *Policy) Size() int {
	const fixed = 1024 // Policy, Source and engine
	n := fixed + p.source.Snapshot.memory()
	switch {
	case p.engine == nil:
		return n
	case !p.engine.hasNames:
		return n + p.engine.size() // the same for all agents
	}
	return n + p.engine.size() + MaxRemembered
}

// engine answers questions about a file. It is immutable except for agents.
type engine struct {
	file
	indexes  map[string]*index // by the groups that a name merges, if they have many rules
	hasNames bool              // there are names other than "*"
	paced    bool              // there are lines about speed
	general  []*RateHint       // of those, the lines before any group
	star     []ruleSet         // what governs agents that no name in the file matches
	agents   agentMemo         // what governs the agents of earlier decisions
}

// finish prepares the engine when all lines are read.
func (e *engine) finish() {
	e.file.finish()
	e.makeIndexes()
	e.paced = slices.ContainsFunc(e.fields, func(f fieldLine) bool { return f.kind.pacing() })
	e.hasNames = len(e.names) > 0 && (e.nameText(0) != "*" || e.nameEnd(0) < len(e.names))
	e.prepare()
}

// prepare chooses the groups of agents without a name in the file.
func (e *engine) prepare() {
	lines := e.hintLines(nil)
	e.general = e.hintsOf(lines, e.groupNames(lines))
	e.star = e.choose(nil)
}

// makeIndexes makes an index for each list of groups that some name merges, if
// it has many rules. Lists may overlap: together they take at most twice the
// rules of the file, and beyond that each rule of a list is tried.
func (e *engine) makeIndexes() {
	e.indexes = make(map[string]*index)
	room := 2 * len(e.rules)
	var key []byte
	for i := 0; i < len(e.names); i = e.nameEnd(i) {
		groups := e.groupsOf(i)
		count := 0
		for _, g := range groups {
			count += int(e.groupEnd(g) - e.groups[g])
		}
		if key = indexKey(key[:0], groups); count <= fewRules || count > room || e.indexes[string(key)] != nil {
			continue
		}
		room -= count
		e.indexes[string(key)] = newIndex(&e.file, e.rulesOf(groups))
	}
}

// size returns how many octets of memory e takes.
func (e *engine) size() int {
	n := e.file.size()
	for key, x := range e.indexes {
		n += 64 + len(key) + x.size()
	}
	return n
}

// MaxRemembered is the most memory, in octets, in which a policy remembers the
// groups of agents. An agent that does not fit is looked up again each time.
const MaxRemembered = 4 << 10

// agentMemo remembers the groups that govern agents. Readers take no lock.
type agentMemo struct {
	known atomic.Pointer[map[agentKey][]ruleSet]
	mu    sync.Mutex // held while known is replaced
	size  int        // of known; guarded by mu
}

// governing returns the groups that govern agent.
func (e *engine) governing(agent *Agent) []ruleSet {
	switch {
	case e.hasNames && agent != nil && len(agent.Tokens) > 0:
	case agent != nil && agent.Role == Obeyed:
		return nil
	default:
		return e.star
	}
	if known := e.agents.known.Load(); known != nil {
		if all, ok := (*known)[agent.key]; ok {
			return all
		}
	}
	all := e.choose(agent)
	for i, c := range all {
		if c.token.Name != "" { // a copy, so that the whole User-Agent string can be freed
			all[i].token = Token{Name: strings.Clone(c.token.Name), Piece: strings.Clone(c.token.Piece)}
		}
	}
	if agent.key != (agentKey{}) {
		e.agents.remember(agent.key, all, e.costs(all))
	}
	return all
}

// costs returns about how many octets it takes to remember all.
func (e *engine) costs(all []ruleSet) int {
	const slot, each, hint, line = 56, 136, 120, 120 // of a map, a ruleSet, a RateHint, a line of it
	n := slot
	if len(all) > 0 && len(e.star) > 0 && &all[0] == &e.star[0] {
		return n // shared by all agents that no name matches
	}
	for _, c := range all {
		n += each + len(c.token.Name) + len(c.token.Piece)
		for _, w := range c.hints {
			n += hint + line*cap(w.lines)
		}
	}
	return n
}

// remember adds an agent. When there is no room it forgets all: that is cheaper
// than keeping an order, and rare.
func (m *agentMemo) remember(key agentKey, all []ruleSet, size int) {
	const room = MaxRemembered / 2 // a map has up to twice the slots that it needs
	if size > room {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[agentKey][]ruleSet{key: all}
	if known := m.known.Load(); known != nil && m.size+size <= room {
		for k, v := range *known {
			next[k] = v
		}
	} else {
		m.size = 0
	}
	m.size += size
	m.known.Store(&next)
}
