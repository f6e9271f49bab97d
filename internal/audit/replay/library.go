package replay

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"heed/internal/audit/store"
	"heed/internal/audit/uses"
	"heed/internal/base/memo"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/rules"
)

// Bounds of what a library remembers.
const (
	maxNames       = 1 << 18 // of each table
	maxAgents      = 1 << 16
	maxPolicyBytes = 256 << 20
	basesRead      = 512 // in one query
)

// sizeOf returns the size of p, which may be nil.
func sizeOf(p *rules.Policy) int {
	if p == nil {
		return 0
	}
	return p.Size()
}

// library caches the rows that entries of a record refer to. It is safe for
// concurrent use.
type library struct {
	// parseRules is Options.ParseRules; nil: settings are not parsed.
	parseRules func(text string) (*acl.Rules, error)

	clients  memo.Map[int64, *store.Client]
	sites    memo.Map[int64, rules.Origin]
	bases    memo.Map[int64, *store.Basis]
	settings memo.Map[int64, settings]
	versions memo.Map[int64, string] // of heed, by run
	agents   memo.Map[string, *rules.Agent]
	policies memo.Map[int64, *policy]
	variants memo.Map[variantKey, *rules.Policy] // nil: the origin has none

	answers     map[rules.Origin]*siteAnswers // nil: not read yet
	answersRead sync.Mutex

	verdicts uses.Reader
	robots   memo.Map[robotsKey, *signal.Robots]
}

// variantKey identifies a hypothetical policy: that of a row, or else that of an
// origin, under a profile.
type variantKey struct {
	policy  int64
	origin  rules.Origin
	profile rules.Profile
}

// settings are the settings of a configuration; zero: none were recorded.
type settings struct {
	*acl.Rules
	hash string
	err  error // why they cannot be parsed
}

// settingsOf returns the settings of a configuration.
func (l *library) settingsOf(r *store.Reader, id int64) (settings, error) {
	if id == 0 {
		return settings{}, nil
	}
	return l.settings.Load(id, maxNames, func() (s settings, err error) {
		var text string
		if s.hash, text, err = r.Configuration(id); err == nil && l.parseRules != nil {
			s.Rules, s.err = l.parseRules(text)
		}
		return s, err
	})
}

// agent returns rules.Identify of a User-Agent, cached.
func (l *library) agent(userAgent string) *rules.Agent {
	a, _ := l.agents.Load(userAgent, maxAgents, func() (*rules.Agent, error) { return rules.Identify(userAgent), nil })
	return a
}

// basis returns a basis. It also reads those after it, which are needed next.
func (l *library) basis(r *store.Reader, id int64) (*store.Basis, error) {
	return l.bases.Load(id, maxNames, func() (found *store.Basis, err error) {
		err = r.Bases(id, id+basesRead, func(b *store.Basis) {
			if b.ID == id {
				found = b
			}
			l.bases.Put(b.ID, b, maxNames)
		})
		if found == nil && err == nil {
			err = fmt.Errorf("the record has no verdict %d, which it refers to\nSee `heed audit verify`", id)
		}
		return found, err
	})
}

// answersOf returns the answers of a site; nil when it has none.
func (l *library) answersOf(r *store.Reader, o rules.Origin) (s *siteAnswers, err error) {
	l.answersRead.Lock()
	defer l.answersRead.Unlock()
	if l.answers == nil {
		l.answers, err = indexAnswers(r)
	}
	return l.answers[o], err
}

// policy is a Policy made of a row of the record.
type policy struct {
	*rules.Policy
	id    int64  // of its row
	body  []byte // of the file; nil: there was none
	state string // available, unavailable or unreachable, as recorded
	err   error  // why its file cannot be parsed
}

// policy returns the policy with an id.
func (l *library) policy(r *store.Reader, id int64) (*policy, error) {
	size := func(p *policy) int { return p.Size() + len(p.body) }
	return l.policies.LoadSized(id, size, maxPolicyBytes, func() (*policy, error) { return l.readPolicy(r, id) })
}

func (l *library) readPolicy(r *store.Reader, id int64) (*policy, error) {
	p, err := r.Policy(id)
	if err != nil {
		return nil, err
	}
	source := p.Source
	made := &policy{id: id, state: p.State}
	profile, ok := rules.ParseProfile(p.Profile)
	switch {
	case !ok:
		made.err = fmt.Errorf("its robots.txt was read under the profile %q, which this heed does not know", p.Profile)
	case source.Snapshot != nil:
		made.body, made.err = source.Snapshot.Body()
	}
	switch {
	case made.err != nil:
	case made.body != nil:
		// The state of a site with a file is determined by the file.
		source.State = rules.Available
	case source.State == rules.Available:
		made.err = errors.New("the record does not have the octets of its robots.txt")
	}
	made.Policy = rules.NewAs(profile, source, made.body)
	return made, nil
}

// under returns p under another profile: the file is parsed again, and a response
// without a file is interpreted as the profile requires.
func (p *policy) under(profile rules.Profile) *rules.Policy {
	s := p.Source()
	denied := s.Snapshot != nil && (s.Snapshot.Status == http.StatusUnauthorized || s.Snapshot.Status == http.StatusForbidden)
	switch {
	case p.body != nil && s.Stale && profile == rules.Strict:
		s.State = rules.Unreachable // which does not use stale copies
	case p.body != nil:
		s.State = rules.Available
	case denied && profile == rules.Strict:
		s.State = rules.Unreachable
	case denied:
		s.State = rules.Unavailable
	}
	return rules.NewAs(profile, s, p.body)
}
