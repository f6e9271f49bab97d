package terms

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heed/rules"
)

// HTTPS says what becomes of a CONNECT. The zero value has all inside judged.
type HTTPS uint8

// What can become of a CONNECT.
const (
	Intercept HTTPS = iota // heed looks inside: every request is judged by its path
	HostOnly               // tunnelled, unless robots.txt bars the agent from everything
	Tunnel                 // tunnelled unjudged
	NoHTTPS                // refused
)

// HTTPSNames are the names of all of them, as String gives them.
var HTTPSNames = []string{"intercept", "host-only", "tunnel", "refuse"}

// ParseHTTPS returns what a name as String gives it stands for.
func ParseHTTPS(name string) (HTTPS, error) {
	i := slices.Index(HTTPSNames, name)
	if i < 0 {
		return NoHTTPS, fmt.Errorf("%q is not among %s", name, strings.Join(HTTPSNames, ", "))
	}
	return HTTPS(i), nil
}

// String returns the stable name: intercept, host-only, tunnel or refuse.
func (h HTTPS) String() string { return HTTPSNames[min(h, NoHTTPS)] }

// defaultPorts are where tunnels may go when no entry says more.
var defaultPorts = []uint16{443}

// HTTPS returns what becomes of a CONNECT to the origin. People are not looked
// at, so that their tunnels pass where any may.
func (t Terms) HTTPS() HTTPS {
	h := t.https
	if t.Site.HTTPSSet {
		h = t.Site.HTTPS
	}
	if t.Mode == Exempt && h != NoHTTPS {
		return Tunnel
	}
	return h
}

// TunnelsTo reports whether a tunnel that is not intercepted may go to o's port,
// and names the ports that it may go to.
func (t Terms) TunnelsTo(o rules.Origin) (ok bool, ports string) {
	all := t.Site.Ports
	if len(all) == 0 {
		all = defaultPorts
	}
	var names []string
	for _, port := range all {
		names = append(names, strconv.Itoa(int(port)))
	}
	return slices.Contains(all, o.Port), strings.Join(names, ", ")
}
