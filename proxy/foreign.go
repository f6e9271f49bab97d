package proxy

import (
	"strings"

	"heed/proxy/http1"
)

// foreignProtocols are what people send to a proxy's port by mistake: how it begins, what it
// is, and what to set instead. ADDR is replaced by the address that the client uses.
var foreignProtocols = []struct{ begins, name, advice string }{
	{"\x05", "SOCKS", asSOCKS},
	{"\x04", "SOCKS", asSOCKS},
	{"SSH-", "SSH", "reach SSH servers by CONNECT (ProxyCommand nc -X connect -x ADDR %h %p)"},
	{"PROXY ", proxyProtocol, noProxyProtocol},
	{"\x00\r\nQUIT\n", proxyProtocol, noProxyProtocol}, // after line ends, which are skipped
	{"EHLO ", "SMTP", noService + "mail server"},
	{"HELO ", "SMTP", noService + "mail server"},
	{"\x00\x00\x00\x08\x04\xd2\x16/", "PostgreSQL", noService + "database"},
	{"*", "Redis", noService + "store"},
	{"\x10", "MQTT", noService + "broker"},
	{"\x03\x00\x00", "RDP", noService + "desktop"},
	{"OPTIONS rtsp:", "RTSP", noService + "server"},
	{"\x13BitTorrent", "BitTorrent", "turn off the proxy for peers in the client"},
}

const (
	asSOCKS         = "the client takes heed for a SOCKS proxy; write its address with http:// (curl -x http://ADDR)"
	noService       = "heed forwards HTTP alone; give the client the address of the "
	proxyProtocol   = "the PROXY protocol"
	noProxyProtocol = "a load balancer in front of heed sends it; turn it off there"
)

// foreignText returns what is said of octets that are another protocol's, for which a
// request is refused with fault; addr is where they came to. Empty: they are not known.
func foreignText(octets []byte, fault http1.Kind, addr string) string {
	switch fault {
	case http1.BadMethod, http1.BadRequestLine, http1.BadVersion:
	default:
		return ""
	}
	for _, p := range foreignProtocols {
		if strings.HasPrefix(string(octets), p.begins) {
			return p.name + " came in place of HTTP: " + strings.Replace(p.advice, "ADDR", addr, 1)
		}
	}
	return ""
}
