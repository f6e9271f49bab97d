package proxy

import (
	"slices"
	"strings"

	"heed/rules"
)

// HTTPS says what becomes of a CONNECT. The zero value refuses it.
type HTTPS uint8

// The modes of HTTPS.
const (
	NoTunnel  HTTPS = iota // refused
	Intercept              // heed looks inside: every request is judged by its path
	HostOnly               // tunnelled unless robots.txt bars the agent from everything
	Tunnel                 // tunnelled unjudged
)

// Hosts is what the operator says of the hosts that are asked for. The zero
// value refuses every CONNECT; Config takes nil for "intercept all".
type Hosts struct {
	HTTPS HTTPS      // of hosts that no rule fits
	Rules []HostRule // the first that fits decides
}

// HostRule is what holds for the hosts that fit Match.
type HostRule struct {
	// Match holds canonical hosts (see rules.Origin), "*.NAME" for every host
	// below NAME, and "*" for all.
	Match []string
	HTTPS HTTPS
	// Ports are where a tunnel that is not intercepted may go; empty: 443.
	Ports []uint16
}

// of returns the rule for a host.
func (h *Hosts) of(host string) HostRule {
	for i := range h.Rules {
		if slices.ContainsFunc(h.Rules[i].Match, func(pattern string) bool { return fits(pattern, host) }) {
			return h.Rules[i]
		}
	}
	return HostRule{HTTPS: h.HTTPS}
}

// fits reports whether a canonical host fits a pattern of HostRule.Match.
func fits(pattern, host string) bool {
	if below, ok := strings.CutPrefix(pattern, "*."); ok {
		return strings.HasSuffix(host, "."+below)
	}
	return pattern == "*" || pattern == host
}

// tunnels reports whether o may be tunnelled to as r says.
func (r *HostRule) tunnels(o rules.Origin) bool {
	ports := r.Ports
	if len(ports) == 0 {
		ports = []uint16{443}
	}
	return slices.Contains(ports, o.Port)
}
