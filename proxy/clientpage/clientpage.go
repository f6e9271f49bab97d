// Package clientpage makes the pages of a proxy for its clients: what it is, how to use it
// and how to trust it. It does not depend on a request.
package clientpage

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Facts are what the pages contain of a proxy.
type Facts struct {
	Addr    string // host:port at which the client reaches it
	CACert  []byte // PEM, the certificate that signs first; empty: none
	Contact string // of the operator; empty: none
}

// AddrOf returns the address at which a client has reached the proxy: the Host field of its
// request, which a mapped port or a name of the proxy can be in, and otherwise listener,
// the address that its connection came to.
func AddrOf(host, listener string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "80"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || !validName(name) {
		return listener
	}
	return net.JoinHostPort(strings.ToLower(name), port)
}

// validName reports whether name is a DNS name or an IP address, so that it can be written
// into a script.
func validName(name string) bool {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Zone() == ""
	}
	const octets = "abcdefghijklmnopqrstuvwxyz0123456789-._"
	return name != "" && len(name) <= 253 && strings.Trim(strings.ToLower(name), octets) == ""
}

// PAC returns a proxy auto-configuration file that sends every request to the proxy.
// Browsers that cannot reach it reach nothing, since no other way is in it.
func (f *Facts) PAC() []byte {
	return fmt.Appendf(nil, "function FindProxyForURL(url, host) {\n  return %q;\n}\n", "PROXY "+f.Addr)
}

// DER returns the first certificate of CACert in binary form; nil when there is none.
func (f *Facts) DER() []byte {
	block, _ := pem.Decode(f.CACert)
	if block == nil {
		return nil
	}
	return block.Bytes
}

// Fingerprints returns the SHA-256 of each certificate of CACert, as browsers and openssl
// write it.
func (f *Facts) Fingerprints() (all []string) {
	for block, rest := pem.Decode(f.CACert); block != nil; block, rest = pem.Decode(rest) {
		sum := sha256.Sum256(block.Bytes)
		all = append(all, strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":"))
	}
	return all
}

// Text returns the page as plain text.
func (f *Facts) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n%s\n", title, intro)
	if f.Contact != "" {
		fmt.Fprintf(&b, "\nContact: %s\n", f.Contact)
	}
	for _, s := range f.sections() {
		fmt.Fprintf(&b, "\n%s\n\n", s.Title)
		if s.Intro != "" {
			fmt.Fprintf(&b, "%s\n\n", s.Intro)
		}
		width := 0
		for _, l := range s.Lines {
			width = max(width, len(l.Of))
		}
		for _, l := range s.Lines {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, l.Of, l.Do)
		}
	}
	return b.Bytes()
}
