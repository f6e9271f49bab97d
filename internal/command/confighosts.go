package command

import (
	"fmt"
	"slices"
	"strings"

	"heed/proxy"
	"heed/rules"
)

// httpsModes are what can become of a host's https, by the names of the settings.
var httpsModes = []string{"intercept", "host-only", "tunnel", "refuse"}

// checkHosts brings the patterns of [[host]] into their canonical form and
// notes what cannot be meant.
func (c *Config) checkHosts(d *decoder) {
	defer func() { d.scope = "" }()
	for i := range c.Hosts {
		d.scope = entry(i)
		h := &c.Hosts[i]
		if len(h.Match) == 0 {
			d.problem("host.match", `this [[host]] fits no host; say which with match = ["www.example.org", "*.example.com"]`)
		}
		for j, pattern := range h.Match {
			canonical, err := canonicalPattern(pattern)
			if err != nil {
				d.problem("host.match", "host.match: %v", err)
			}
			h.Match[j] = canonical
		}
		c.checkTerms(d, &h.HostTerms)
		mode := h.HTTPS
		if mode == "" {
			mode = c.HTTPS.Mode
		} else {
			d.oneOf("host.https", mode, httpsModes...)
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

// canonicalPattern returns a host pattern as canonical hosts are compared with
// it: a name or an address, "*.NAME" for all names below NAME, or "*".
func canonicalPattern(pattern string) (string, error) {
	if pattern == "*" {
		return pattern, nil
	}
	name, below := strings.CutPrefix(pattern, "*.")
	authority := name
	if strings.Count(name, ":") > 1 && !strings.HasPrefix(name, "[") {
		authority = "[" + name + "]"
	}
	o, err := rules.ParseOrigin("https", authority)
	hint := `write a host such as "www.example.org", "*.example.org" for all below it, or "*"`
	switch {
	case strings.Contains(name, "*"):
		return "", fmt.Errorf("%q has a * elsewhere than in front; %s", pattern, hint)
	case err == nil && o.Port != 443, strings.HasSuffix(name, ":443"):
		return "", fmt.Errorf("%q has a port; ports stand in ports = [443]", pattern)
	case err != nil, strings.ContainsAny(name, "/@?#"):
		return "", fmt.Errorf("%q is no host; %s", pattern, hint)
	case below:
		return "*." + o.Host, nil
	}
	return o.Host, nil
}

// hosts returns the settings as the proxy takes them.
func (c *Config) hosts() proxy.Hosts {
	all := proxy.Hosts{HTTPS: httpsOf(c.HTTPS.Mode)}
	for _, h := range c.Hosts {
		rule := proxy.HostRule{Match: h.Match, HTTPS: all.HTTPS}
		if h.HTTPS != "" {
			rule.HTTPS = httpsOf(h.HTTPS)
		}
		for _, port := range h.Ports {
			rule.Ports = append(rule.Ports, uint16(port))
		}
		all.Rules = append(all.Rules, rule)
	}
	return all
}

func httpsOf(mode string) proxy.HTTPS {
	return map[string]proxy.HTTPS{
		"intercept": proxy.Intercept, "host-only": proxy.HostOnly, "tunnel": proxy.Tunnel,
	}[mode] // what is not known is refused
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
