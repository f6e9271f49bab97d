package command

import (
	"fmt"
	"slices"
	"strings"

	"heed/internal/terms"
)

// checkHosts notes what cannot be meant in [[host]].
func (c *Config) checkHosts(d *decoder) {
	defer func() { d.scope = "" }()
	for i := range c.Hosts {
		d.scope = entry(i)
		h := &c.Hosts[i]
		if len(h.Match) == 0 {
			d.problem("host.match", `this [[host]] fits no host; say which with match = ["www.example.org", "*.example.com"]`)
		}
		for _, pattern := range h.Match {
			_, err := terms.ParseHostPattern(pattern)
			d.note("host.match", err)
		}
		c.checkTerms(d, &h.HostTerms)
		c.checkHostUpstream(d, &h.HostUpstream, h.Reason)
		mode := h.HTTPS
		if mode == "" {
			mode = c.HTTPS.Mode
		} else {
			d.oneOf("host.https", mode, terms.HTTPSNames...)
		}
		if len(h.Ports) > 0 && (mode == "intercept" || mode == "refuse") {
			d.problem("host.ports", "host.ports says where tunnels may go, but https = %q lets none through; leave ports out", mode)
		}
		for _, port := range h.Ports {
			if port < 1 || port > 65535 {
				d.problem("host.ports", "host.ports: %d is no port; they go from 1 to 65535", port)
			}
		}
	}
}

// unjudged says, in a line each, what the settings let pass unjudged or judged
// by its host alone; empty when every request is judged by its path.
func (c *Config) unjudged() []string {
	var out []string
	out = append(out, unjudgedLine(c.HTTPS.Mode, []string{"every host that no [[host]] is about"}, nil)...)
	for _, h := range c.Hosts {
		mode := h.HTTPS
		if mode == "" {
			mode = c.HTTPS.Mode
		}
		out = append(out, unjudgedLine(mode, h.Match, h.Ports)...)
	}
	if c.HTTPS.Pinned != "" && c.HTTPS.Pinned != c.HTTPS.Mode {
		out = append(out, unjudgedLine(c.HTTPS.Pinned, []string{"hosts that are known to pin certificates (heed config pinned)"}, nil)...)
	}
	return out
}

func unjudgedLine(mode string, hosts []string, ports []int64) []string {
	if len(ports) == 0 {
		ports = []int64{443}
	}
	names := strings.Join(hosts, ", ")
	to := strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Sorted(slices.Values(ports))), " ", ", "), "[]")
	switch mode {
	case "tunnel":
		return []string{fmt.Sprintf("https to %s is NOT JUDGED: tunnels to port %s pass as they are", names, to)}
	case "host-only":
		return []string{fmt.Sprintf("https to %s is judged by its host alone: tunnels to port %s pass unless robots.txt bars the agent from everything", names, to)}
	}
	return nil
}

// mode says in a few words what heed does with requests.
func (c *Config) mode() string {
	text := "enforce"
	if c.Observe {
		text = "observe"
	}
	text += ", https " + map[string]string{
		"intercept": "intercepted", "host-only": "judged by host only", "tunnel": "tunnelled unjudged", "refuse": "refused",
	}[c.HTTPS.Mode]
	if len(c.Hosts) > 0 {
		text += ", unless [[host]] says otherwise"
	}
	return text
}
