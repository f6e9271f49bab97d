package command

import (
	"strings"
	"sync"

	"heed/rules"
)

// maxParsed is how many bytes of texts and policies parsed keeps.
const maxParsed = 64 << 20

// parsed remembers the policies of robots.txt texts, so that a text which
// comes again is not parsed again. It is safe for concurrent use.
type parsed struct {
	profile rules.Profile

	mu       sync.Mutex
	policies map[parsedKey]*rules.Policy
	size     int // bytes of the texts and policies kept
	limit    int // of size
}

type parsedKey struct {
	origin rules.Origin
	text   string
}

func newParsed(profile rules.Profile) *parsed {
	return &parsed{profile: profile, policies: map[parsedKey]*rules.Policy{}, limit: maxParsed}
}

// policy returns what the text says when it is the robots.txt of o.
func (p *parsed) policy(o rules.Origin, text string) *rules.Policy {
	if !namesOrigin(text) {
		o = rules.Origin{}
	}
	return p.get(parsedKey{o, text}, text)
}

// of returns the policy of one text for any origin. It looks through the text
// once, not with each question.
func (p *parsed) of(text string) func(rules.Origin) *rules.Policy {
	if !namesOrigin(text) {
		only := p.get(parsedKey{text: text}, text)
		return func(rules.Origin) *rules.Policy { return only }
	}
	return func(o rules.Origin) *rules.Policy { return p.get(parsedKey{origin: o}, text) }
}

// get returns the policy kept under key, else that of the text.
func (p *parsed) get(key parsedKey, text string) *rules.Policy {
	p.mu.Lock()
	known := p.policies[key]
	p.mu.Unlock()
	if known != nil {
		return known
	}
	made := rules.NewAs(p.profile, rules.Source{Origin: key.origin, State: rules.Available, Status: 200}, []byte(text))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size += len(key.text) + made.Size(); p.size > p.limit {
		clear(p.policies)
		p.size = len(key.text) + made.Size()
	}
	p.policies[key] = made
	return made
}

// namesOrigin reports whether a rule of the text may be an absolute URL, which
// counts at the origin it names and at no other. The URLs of Sitemap lines,
// which most files have, do not matter to decisions.
func namesOrigin(text string) bool {
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "://") {
			continue
		}
		field, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !strings.EqualFold(strings.TrimSpace(field), "sitemap") {
			return true
		}
	}
	return false
}
