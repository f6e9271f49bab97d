package proxy

import (
	"net/http"
	"strings"
	"sync"

	"heed/rules"
)

// Bounds of agentMemo: User-Agent strings are the client's to choose.
const (
	maxAgents      = 4096
	maxAgentLength = 1024 // octets; longer strings are identified each time
)

// agentMemo remembers which Agent a User-Agent string names. The zero value
// is ready.
type agentMemo struct {
	mu     sync.RWMutex
	agents map[string]*rules.Agent
}

func (m *agentMemo) identify(userAgent string) *rules.Agent {
	m.mu.RLock()
	a := m.agents[userAgent]
	m.mu.RUnlock()
	if a != nil {
		return a
	}
	a = rules.Identify(userAgent)
	if len(userAgent) > maxAgentLength {
		return a
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agents == nil || len(m.agents) >= maxAgents {
		m.agents = make(map[string]*rules.Agent) // starting over is cheaper than keeping an order
	}
	m.agents[strings.Clone(userAgent)] = a
	return a
}

// userAgent returns the User-Agent of a request. Several lines are one value,
// so that no name in them is overlooked.
func userAgent(h http.Header) string {
	switch v := h["User-Agent"]; len(v) {
	case 0:
		return ""
	case 1:
		return v[0]
	default:
		return strings.Join(v, ", ")
	}
}
