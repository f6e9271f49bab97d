package command

import (
	"fmt"
	"slices"
	"strings"
)

// Addresses are where heed listens, host:port each: one or more, written as a
// text or as a list of them.
type Addresses []string

// first is the address that is told to programs of this machine.
func (l Addresses) first() string {
	if len(l) == 0 {
		return ""
	}
	return l[0]
}

// String names all.
func (l Addresses) String() string { return strings.Join(l, ", ") }

// addresses reads one address or a list of them.
func (d *decoder) addresses(value any, full string) Addresses {
	if text, ok := value.(string); ok {
		return Addresses{text}
	}
	if _, ok := value.([]any); !ok {
		d.problem(full, `%s must be a text in quotes, or a list of them, not %s`, full, kindName(value))
		return nil
	}
	return listOf[string](d, value, full, "texts", `["127.0.0.1:3128", "[::1]:3128"]`, "a text in quotes")
}

// checkAddresses notes what cannot be listened on.
func (d *decoder) checkAddresses(path string, l Addresses) {
	if len(l) == 0 {
		d.problem(path, `%s has no address, so that nobody could connect; write "127.0.0.1:3128"`, path)
	}
	for i, addr := range l {
		at := element(path, i)
		if _, listed := d.lines[at]; !listed {
			at = path
		}
		if err := checkListen(addr); err != nil {
			d.problem(at, "%s: %v", path, err)
		} else if slices.Contains(l[:i], addr) {
			d.problem(at, "%s: %q stands there twice; leave one of them out", path, addr)
		}
	}
}

// deafListener says which listener an entry is meant for when heed does not
// listen there, so that the entry fits nobody; empty when it does.
func (c *Config) deafListener(cl *ClientConfig) string {
	if cl.Listener == "" || slices.ContainsFunc(c.Listen, func(at string) bool { return mayAccept(at, cl.Listener) }) {
		return ""
	}
	return fmt.Sprintf("client %q is whoever connects to %s, where heed does not listen, so that it is nobody; listen has %s", cl.Name, cl.Listener, c.Listen)
}
