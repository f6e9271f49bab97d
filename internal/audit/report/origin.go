package report

import (
	"net"
	"strconv"
	"strings"
)

// origin is a site.
type origin struct {
	scheme, host string
	port         int
}

// noSite stands for requests of which no host was learnt.
var noSite = origin{}

// String writes the origin as an address, the default port left out.
func (o origin) String() string {
	switch {
	case o == noSite:
		return "(no site)"
	case o.scheme == "http" && o.port == 80, o.scheme == "https" && o.port == 443:
		host := o.host
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return o.scheme + "://" + host
	}
	return o.scheme + "://" + net.JoinHostPort(o.host, strconv.Itoa(o.port))
}
