package command

import (
	"strings"
	"sync"

	"heed/rules"
)

const (
	maxRobots = 4 << 20  // bytes of a robots.txt that are read, as when it is fetched
	maxParsed = 64 << 20 // bytes of texts and policies that parsed keeps
)

// parsed remembers the policies of robots.txt texts, so that a text which
// comes again is not parsed again. It is safe for concurrent use.
type parsed struct {
	mu       sync.Mutex
	policies map[parsedKey]*rules.Policy
	size     int // bytes of the texts and policies kept
	limit    int // of size
}

type parsedKey struct {
	origin rules.Origin
	text   string
}

func newParsed() *parsed {
	return &parsed{policies: map[parsedKey]*rules.Policy{}, limit: maxParsed}
}

// policy returns what the text says when it is the robots.txt of o. A text
// beyond maxRobots is cut after its last whole line.
func (p *parsed) policy(o rules.Origin, text string) *rules.Policy {
	if len(text) > maxRobots {
		text = text[:maxRobots]
		text = text[:strings.LastIndexAny(text, "\r\n")+1]
	}
	key := parsedKey{o, text}
	p.mu.Lock()
	known := p.policies[key]
	p.mu.Unlock()
	if known != nil {
		return known
	}
	made := rules.New(rules.Source{Origin: o, State: rules.Available, Status: 200}, []byte(text))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size += len(text) + made.Size(); p.size > p.limit {
		clear(p.policies)
		p.size = len(text) + made.Size()
	}
	p.policies[key] = made
	return made
}
