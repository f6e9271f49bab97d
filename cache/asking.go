package cache

import (
	"strings"
	"sync"

	"heed/rules"
)

// asking is a way of asking an origin: as ourselves (the zero value), or as a
// client.
type asking struct {
	key  string // of the entries kept for it
	name string // the User-Agent that is sent
}

// agentMark begins the keys of agentKey.
const agentMark = "as"

// agentKey returns what the entries of clients with this User-Agent are kept
// under; empty for an empty one. Clients are told apart by what rules could
// tell them apart by, their product tokens: every version of a program is one.
func agentKey(userAgent string) string {
	if userAgent == "" {
		return ""
	}
	key := agentMark
	for _, t := range rules.Identify(userAgent).Tokens {
		key += " " + t.Name
	}
	return key
}

// maxAgentKeys is how many User-Agents are remembered with their keys.
const maxAgentKeys = 1024

// agentKeys remembers keys, which are not cheap to find. The zero value is
// ready; it is safe for concurrent use.
type agentKeys struct {
	mu   sync.RWMutex
	keys map[string]string // by User-Agent
}

// asking returns the way of asking as the client of this User-Agent.
func (k *agentKeys) asking(userAgent string) asking {
	k.mu.RLock()
	key, ok := k.keys[userAgent]
	k.mu.RUnlock()
	if ok {
		return asking{key: key, name: userAgent}
	}
	as := asking{key: agentKey(userAgent), name: strings.Clone(userAgent)}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil || len(k.keys) >= maxAgentKeys {
		k.keys = make(map[string]string)
	}
	k.keys[as.name] = as.key
	return as
}
