package config

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"heed/internal/base/ownfile"
	"heed/internal/pace/fleet"
	"heed/proxy/upstream"
)

// HostUpstream holds the keys of [[host]] that change how the hosts are reached.
type HostUpstream struct {
	Upstream    string `toml:"upstream"`                      // Direct, a URL or a reference to one; empty: upstream.proxy
	UpstreamTLS string `toml:"upstream_tls"`                  // unverifiedWord, or pinPrefix and 64 hexadecimal digits; empty: verified
	OldTLS      bool   `toml:"old_tls"`                       // TLS 1.0 and 1.1, RSA key exchange and CBC are accepted
	Renegotiate bool   `toml:"renegotiate" json:",omitempty"` // one renegotiation of TLS 1.2 is allowed
	CAFile      string `toml:"ca_file"`                       // PEM file of further roots; empty: none
	ClientCert  string `toml:"client_cert"`                   // PEM file of the client certificate; empty: none
	ClientKey   string `toml:"client_key"`                    // set exactly when ClientCert is
	Via         *bool  `toml:"via"`                           // requests name heed in Via; nil: as UpstreamConfig.Via

	SignForm string `toml:"sign_form" json:",omitempty"` // a key of signForms; empty: dictionary
	SignHTTP bool   `toml:"sign_http" json:",omitempty"` // requests over http are signed too
}

// Values of [[host]].
const (
	Direct         = "direct"
	unverifiedWord = "unverified"
	pinPrefix      = "sha256:"
)

// checkHostUpstream reports the problems of one [[host]]'s upstream keys to d. reason is
// the reason of that [[host]].
func (c *Config) checkHostUpstream(d *decoder, h *HostUpstream, reason string) {
	switch {
	case h.Upstream == "env":
		d.problem("host.upstream", `host.upstream = "env" is valid in [upstream] only; write a proxy's URL, or "direct"`)
	case h.Upstream != "" && h.Upstream != Direct:
		d.note("host.upstream", checkProxyURL(h.Upstream, `"direct"`))
	}
	d.note("host.upstream_tls", errorOf(siteCert(h.UpstreamTLS)))
	if h.UpstreamTLS != "" && reason == "" && !d.isWrong("host.reason") {
		d.problem("host.upstream_tls", `host.upstream_tls needs a reason beside it, which every start prints: reason = "a test server with a self-signed certificate"`)
	}
	if h.OldTLS && reason == "" && !d.isWrong("host.reason") {
		d.problem("host.old_tls", `host.old_tls needs a reason beside it, which every start prints: reason = "an archive that is not updated any more"`)
	}
	if h.UpstreamTLS != "" && h.CAFile != "" {
		d.problem("host.ca_file", "host.ca_file and upstream_tls contradict each other; remove one of them")
	}
	d.pair("host.client_cert", h.ClientCert, "host.client_key", h.ClientKey)
	d.oneOfOrNone("host.sign_form", h.SignForm, slices.Sorted(maps.Keys(signForms))...)
}

var errSiteCert = errors.New(`write "unverified", or "sha256:" and the 64 hexadecimal digits of the SHA-256 of the site's certificate or of its public key`)

// siteCert parses upstream_tls; nil for an empty text.
func siteCert(text string) (*upstream.SiteCert, error) {
	switch text {
	case "":
		return nil, nil
	case unverifiedWord:
		return &upstream.SiteCert{Any: true}, nil
	}
	digits, ok := strings.CutPrefix(text, pinPrefix)
	sum, err := hex.DecodeString(strings.ReplaceAll(digits, ":", "")) // openssl writes colons
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%q is not a valid upstream_tls value; %w", text, errSiteCert)
	}
	return &upstream.SiteCert{SHA256: [sha256.Size]byte(sum)}, nil
}

// HostRoute is the route of the hosts of one [[host]]. Its fields identify it: they are
// part of the hash in route.Pool.Identity.
type HostRoute struct {
	Route  upstream.HostRoute // without RootCAs
	CAFile string             // further roots; empty: none

	Match    []string
	Upstream string // as in HostUpstream, with references resolved
	TLS      string
	OldTLS   bool   `json:",omitempty"`
	Again    bool   `json:",omitempty"` // Renegotiate
	CA       []byte // content of CAFile
	Cert     []byte // the client certificate, DER
}

// HostRoutes returns the routes of every [[host]] that sets a key of HostUpstream other
// than via, sign_form and sign_http. It reads the files that they name; environ resolves env: references.
func (c *Config) HostRoutes(environ []string) ([]HostRoute, error) {
	var out []HostRoute
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.HostUpstream == (HostUpstream{Via: h.Via, SignForm: h.SignForm, SignHTTP: h.SignHTTP}) {
			continue
		}
		w, err := h.route(environ)
		if err != nil {
			return nil, fmt.Errorf("the [[host]] of %s: %w", strings.Join(h.Match, ", "), err)
		}
		out = append(out, w)
	}
	return out, nil
}

func (h *HostConfig) route(environ []string) (w HostRoute, err error) {
	w = HostRoute{Match: h.Match, TLS: h.UpstreamTLS, OldTLS: h.OldTLS, Again: h.Renegotiate, CAFile: h.CAFile}
	w.Route.OldTLS, w.Route.Renegotiate, w.Route.Match = h.OldTLS, h.Renegotiate, h.patterns()
	if w.Upstream, err = ResolveUpstream(h.Upstream, environ); err != nil {
		return w, fmt.Errorf("upstream: %w", err)
	}
	w.Route.Proxy = hostProxy(w.Upstream)
	w.Route.Site = checked(siteCert(h.UpstreamTLS))
	if h.CAFile != "" {
		if w.CA, err = ReadCerts(h.CAFile); err != nil {
			return w, fmt.Errorf("ca_file: %w", err)
		}
	}
	if w.Route.Certificate, err = h.certificate(); w.Route.Certificate != nil {
		w.Cert = w.Route.Certificate.Certificate[0]
	}
	return w, err
}

// certificate reads what heed shows the hosts; nil when there is none.
func (h *HostUpstream) certificate() (*tls.Certificate, error) {
	return readKeyPair("client_cert", h.ClientCert, "client_key", h.ClientKey)
}

// ResolveUpstream returns value or, if it is a reference, the proxy URL that it refers to.
// The error is about a reference that cannot be resolved or is not to a proxy URL.
func ResolveUpstream(value string, environ []string) (string, error) {
	secret, err := resolveSecret(value, environ)
	if err != nil || secret == value {
		return secret, err
	}
	if secret == "env" || isReference(secret) || checkUpstream(secret) != nil {
		return "", fmt.Errorf(`the value of %s is not a proxy's URL; write one, such as "http://user:password@proxy.example:3128"`, value)
	}
	return secret, nil
}

func hostProxy(text string) *upstream.HostProxy {
	switch text {
	case "":
		return nil
	case Direct:
		return &upstream.HostProxy{}
	}
	return &upstream.HostProxy{URL: checked(url.Parse(text))}
}

// readKeyPair reads a certificate and its key, which settings with these names name; nil when
// one of them names none. A key file that other users can read is an error.
func readKeyPair(certName, certFile, keyName, keyFile string) (*tls.Certificate, error) {
	if certFile == "" || keyFile == "" {
		return nil, nil
	}
	chain, err := ownfile.Read(certFile, MaxCAFile)
	if err != nil {
		return nil, fmt.Errorf("%s: the certificate cannot be read: %w", certName, err)
	}
	key, err := ownfile.Read(keyFile, maxSecret)
	if err != nil {
		err = fmt.Errorf("the key cannot be read: %w", err)
	} else {
		err = key.Check(ownfile.Key, "the key")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyName, err)
	}
	cert, err := tls.X509KeyPair(chain.Data, key.Data)
	if err != nil {
		return nil, fmt.Errorf("%s %s and %s %s cannot be used: %w", certName, certFile, keyName, keyFile, err)
	}
	return &cert, nil
}

// upstreamNotices returns the remarks on how hosts are reached that every start prints.
func (c *Config) upstreamNotices() []string {
	var out []string
	for i := range c.Hosts {
		h := &c.Hosts[i]
		names := strings.Join(h.Match, ", ")
		switch h.Upstream {
		case "":
		case Direct:
			out = append(out, fmt.Sprintf("%s is reached directly", names))
		default:
			out = append(out, fmt.Sprintf("%s is reached through %s", names, RedactURL(h.Upstream)))
		}
		switch h.UpstreamTLS {
		case "":
		case unverifiedWord:
			out = append(out, fmt.Sprintf("the certificate of %s is NOT VERIFIED: an attacker on the path can read and change what is sent (%s)", names, h.Reason))
		default:
			out = append(out, fmt.Sprintf("%s is verified by the hash of its certificate only, not by name, date or authority (%s)", names, h.Reason))
		}
		if h.OldTLS {
			out = append(out, fmt.Sprintf("%s may be reached with TLS 1.0 and 1.1, RSA key exchange and CBC, which can be broken (%s)", names, h.Reason))
		}
		if h.Renegotiate {
			out = append(out, fmt.Sprintf("%s may renegotiate TLS once, and is reached with TLS 1.2 at most, over HTTP/1", names))
		}
	}
	return out
}

// FleetURL returns the URL of the fleet store with references resolved; empty when there
// is none.
func FleetURL(cfg *Config, environ []string) (string, error) {
	url, err := resolveFleet(cfg.Fleet.URL, environ)
	if err != nil {
		return "", fmt.Errorf("fleet.url: %w", err)
	}
	return url, nil
}

// resolveFleet returns value, the URL of a store, or what it refers to.
func resolveFleet(value string, environ []string) (string, error) {
	url, err := resolveSecret(value, environ)
	if err == nil && url != "" {
		err = fleet.CheckURL(url)
	}
	return url, err
}

// Certificate returns what heed shows the store; nil when there is none.
func (f *FleetConfig) Certificate() (*tls.Certificate, error) {
	return readKeyPair("cert", f.Cert, "key", f.Key)
}

// checkFleet returns an error unless url is "", the URL of a store or a reference to one.
func checkFleet(url string) error {
	if url == "" {
		return nil
	}
	if isReference(url) {
		return checkReference(url)
	}
	return fleet.CheckURL(url)
}

// redactFleet returns the URL of a store without passwords.
func redactFleet(url string) string {
	if isReference(url) {
		return url
	}
	url, query, more := strings.Cut(url, "?")
	url = RedactURL(url)
	if !more {
		return url
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		if strings.HasPrefix(p, "sentinel_password=") {
			parameters[i] = "sentinel_password=..."
		}
	}
	return url + "?" + strings.Join(parameters, "&")
}
