package command

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"

	"heed/internal/terms"
	"heed/proxy"
)

// HostUpstream is the part of [[host]] that says how the hosts are reached.
type HostUpstream struct {
	Upstream    string `toml:"upstream"`     // directWord; a URL, or where that stands; empty: as elsewhere
	UpstreamTLS string `toml:"upstream_tls"` // unverifiedWord, or pinPrefix and 64 hexadecimal digits; empty: verified
	CAFile      string `toml:"ca_file"`      // PEM file of further roots; empty: none
	ClientCert  string `toml:"client_cert"`  // PEM file, shown to the hosts; empty: none
	ClientKey   string `toml:"client_key"`   // set exactly when ClientCert is
}

// Words of [[host]].
const (
	directWord     = "direct"
	unverifiedWord = "unverified"
	pinPrefix      = "sha256:"
)

// checkHostUpstream notes what cannot be meant in one [[host]]'s part. reason is the
// host's.
func (c *Config) checkHostUpstream(d *decoder, h *HostUpstream, reason string) {
	switch {
	case h.Upstream == "env":
		d.problem("host.upstream", `host.upstream = "env" is for [upstream] alone; write a proxy's URL, or "direct"`)
	case h.Upstream != "" && h.Upstream != directWord:
		d.note("host.upstream", checkProxyURL(h.Upstream, `"direct"`))
	}
	if _, err := siteCert(h.UpstreamTLS); err != nil {
		d.note("host.upstream_tls", err)
	}
	if h.UpstreamTLS != "" && reason == "" {
		d.problem("host.upstream_tls", `host.upstream_tls needs a reason beside it, which every start will tell: reason = "a test server with a certificate of its own"`)
	}
	if h.UpstreamTLS != "" && h.CAFile != "" {
		d.problem("host.ca_file", "host.ca_file says whom to trust, and upstream_tls that nobody is asked; leave one of them out")
	}
	if h.ClientCert != "" && h.ClientKey == "" {
		d.problem("host.client_cert", "host.client_cert needs client_key beside it: the key that the certificate belongs to")
	}
	if h.ClientKey != "" && h.ClientCert == "" {
		d.problem("host.client_key", "host.client_key needs client_cert beside it: the certificate that the key belongs to")
	}
	h.Upstream = referenceBeside(c.File, h.Upstream)
	for _, path := range []*string{&h.CAFile, &h.ClientCert, &h.ClientKey} {
		*path = beside(c.File, *path)
	}
}

var errSiteCert = errors.New(`write "unverified", or "sha256:" and the 64 hexadecimal digits of the SHA-256 of the site's certificate or of its public key`)

// siteCert returns what upstream_tls says; nil when it says nothing.
func siteCert(text string) (*proxy.SiteCert, error) {
	switch text {
	case "":
		return nil, nil
	case unverifiedWord:
		return &proxy.SiteCert{Any: true}, nil
	}
	digits, ok := strings.CutPrefix(text, pinPrefix)
	sum, err := hex.DecodeString(strings.ReplaceAll(digits, ":", "")) // openssl writes colons
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%q says of no certificate that it is accepted; %w", text, errSiteCert)
	}
	return &proxy.SiteCert{SHA256: [sha256.Size]byte(sum)}, nil
}

// hostWay is the way of some hosts, with all that tells it from others.
type hostWay struct {
	way    proxy.HostWay // but for RootCAs
	caFile string        // beside those of all sites; empty: none

	Match    []string
	Upstream string // as HostUpstream has it, but revealed
	TLS      string
	CA       []byte // what is in caFile
	Cert     []byte // the certificate shown
}

// hostWays returns the ways of those [[host]] that have one of their own. It
// reads the files that they name.
func (c *Config) hostWays(environ []string) ([]hostWay, error) {
	var out []hostWay
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.HostUpstream == (HostUpstream{}) {
			continue
		}
		w, err := h.way(environ)
		if err != nil {
			return nil, fmt.Errorf("the [[host]] of %s: %w", strings.Join(h.Match, ", "), err)
		}
		out = append(out, w)
	}
	return out, nil
}

func (h *HostConfig) way(environ []string) (w hostWay, err error) {
	w = hostWay{Match: h.Match, TLS: h.UpstreamTLS, caFile: h.CAFile}
	for _, text := range h.Match {
		p, err := terms.ParseHostPattern(text)
		if err != nil {
			return w, fmt.Errorf("match: %w", err)
		}
		w.way.Match = append(w.way.Match, p)
	}
	if w.Upstream, err = revealedUpstream(h.Upstream, environ); err != nil {
		return w, fmt.Errorf("upstream: %w", err)
	}
	if w.way.Proxy, err = hostProxy(w.Upstream); err != nil {
		return w, fmt.Errorf("upstream: %w", err)
	}
	if w.way.Site, err = siteCert(h.UpstreamTLS); err != nil {
		return w, fmt.Errorf("upstream_tls: %w", err)
	}
	if h.CAFile != "" {
		if w.CA, err = readCerts(h.CAFile); err != nil {
			return w, fmt.Errorf("ca_file: %w", err)
		}
	}
	if h.ClientCert == "" {
		return w, nil
	}
	if w.way.Certificate, err = readClientCert(h.ClientCert, h.ClientKey); err != nil {
		return w, err
	}
	w.Cert = w.way.Certificate.Certificate[0]
	return w, nil
}

// revealedUpstream is revealed for the URL of a proxy, or the words that stand
// in place of one.
func revealedUpstream(value string, environ []string) (string, error) {
	secret, err := revealed(value, environ)
	if err != nil || secret == value {
		return secret, err
	}
	if secret == "env" || isReference(secret) || checkUpstream(secret) != nil {
		return "", fmt.Errorf(`what stands at %s is not a proxy's URL; write one there, such as "http://user:password@proxy.example:3128"`, value)
	}
	return secret, nil
}

func hostProxy(upstream string) (*proxy.HostProxy, error) {
	switch upstream {
	case "":
		return nil, nil
	case directWord:
		return &proxy.HostProxy{}, nil
	}
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, fmt.Errorf("%q is not a proxy's URL", redactURL(upstream))
	}
	return &proxy.HostProxy{URL: u}, nil
}

// readClientCert reads a certificate for sites to see, and its key, which nobody
// but its owner may read.
func readClientCert(certFile, keyFile string) (*tls.Certificate, error) {
	info, err := os.Stat(keyFile)
	if err != nil {
		return nil, fmt.Errorf("client_key: the key cannot be read: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("client_key: %s can be read or changed by others (mode %#o); take that away with: chmod 600 %s", keyFile, mode, keyFile)
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("client_cert %s and client_key %s cannot be used: %w", certFile, keyFile, err)
	}
	return &cert, nil
}

// upstreamNotices says what an operator should know at every start of how hosts
// are reached.
func (c *Config) upstreamNotices() []string {
	var out []string
	for i := range c.Hosts {
		h := &c.Hosts[i]
		names := strings.Join(h.Match, ", ")
		switch h.Upstream {
		case "":
		case directWord:
			out = append(out, fmt.Sprintf("%s is reached directly", names))
		default:
			out = append(out, fmt.Sprintf("%s is reached through %s", names, redactURL(h.Upstream)))
		}
		switch h.UpstreamTLS {
		case "":
		case unverifiedWord:
			out = append(out, fmt.Sprintf("the certificate of %s is NOT VERIFIED: anybody between could read and change what is sent (%s)", names, h.Reason))
		default:
			out = append(out, fmt.Sprintf("%s is known by the hash of its certificate alone, whatever name, date and authority it has (%s)", names, h.Reason))
		}
	}
	return out
}
