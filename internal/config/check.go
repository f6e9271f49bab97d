package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/rules"
)

// check reports every invalid value to d and brings the others into canonical form:
// absolute paths, hosts in lower case.
func (c *Config) check(d *decoder) {
	d.checkAddresses("listen", c.Listen)
	c.checkListeners(d)
	d.note("profile", CheckProfile(c.Profile))
	d.note("contact", CheckContact(c.Contact))
	d.note("name", CheckName(c.Name))
	d.oneOf("https.mode", c.HTTPS.Mode, acl.HTTPSNames...)
	d.oneOfOrNone("https.pinned", c.HTTPS.Pinned, acl.HTTPSNames[1:]...)
	d.pair("https.ca_cert", c.HTTPS.CACert, "https.ca_key", c.HTTPS.CAKey)
	if c.Cache.MaxBytes < minCacheSize {
		d.problem("cache.max_bytes", "cache.max_bytes = %q is too small for one large robots.txt; write %q or more", c.Cache.MaxBytes, ByteSize(minCacheSize))
	}
	if c.Cache.File != "" && c.Cache.File == c.Audit.File {
		d.problem("cache.file", "cache.file and audit.file are both %q: name two files", c.Cache.File)
	}
	if c.Cache.File != "" && filepath.Ext(c.Cache.File) != ".db" {
		d.problem("cache.file", "cache.file = %q does not end in .db; rename it (heed moves a damaged file out of the way)", c.Cache.File)
	}
	d.note("fleet.url", checkFleet(c.Fleet.URL))
	d.pair("fleet.cert", c.Fleet.Cert, "fleet.key", c.Fleet.Key)
	c.Pacing.check(d)
	c.Access.check(d)
	d.checkLimits(&c.Limits)
	d.note("upstream.proxy", checkUpstream(c.Upstream.Proxy))
	c.Upstream.Resolve = d.resolve(c.Upstream.Resolve)
	if c.Pacing.ByAddress && c.Upstream.Proxy != "" {
		d.problem("pacing.min_delay_per", `pacing.min_delay_per = "address" needs the addresses of sites, and with upstream.proxy only their names are known; write "site"`)
	}
	if c.Upstream.ResponseHeaderTimeout == 0 {
		d.problem("upstream.response_header_timeout", `upstream.response_header_timeout must be more than 0; the default is "10m"`)
	}
	d.peers("proxy_protocol", "load balancers", c.ProxyProtocol)
	c.checkClients(d)
	c.checkHosts(d)
	c.Audit.check(d)
	d.oneOfOrNone("signals.page", c.Signals.Page, PageClients, PageAll, PageOff) // empty: the settings are of a record from before there was one
	checkSign(d, "robots.sign", &c.Robots.Sign)
	c.Admin.check(d, c.File)
	d.oneOf("log.format", c.Log.Format, "auto", "text", "json")
	d.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	c.filesBeside()
}

// minCacheSize is the least value of cache.max_bytes.
const minCacheSize = 8 << 20

// note reports err, unless it is nil, as the problem of the key path.
func (d *decoder) note(path string, err error) {
	if err != nil {
		d.problem(path, "%s: %v", path, err)
	}
}

// oneOf reports a value that is not among valid, and returns whether it is.
func (d *decoder) oneOf(path, value string, valid ...string) (known bool) {
	if slices.Contains(valid, value) {
		return true
	}
	hint := "write one of " + strings.Join(valid, ", ")
	if near := console.Nearest(value, valid); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	if value == "" {
		d.problem(path, "%s has no value; %s", path, hint)
	} else {
		d.problem(path, "%s = %q is not known; %s", path, value, hint)
	}
	return false
}

// oneOfOrNone is oneOf for a value that may be empty.
func (d *decoder) oneOfOrNone(path, value string, valid ...string) {
	if value != "" {
		d.oneOf(path, value, valid...)
	}
}

// pair reports a certificate without its key, or a key without its certificate.
func (d *decoder) pair(certPath, cert, keyPath, key string) {
	switch {
	case d.isWrong(certPath, keyPath):
	case cert != "" && key == "":
		d.problem(certPath, "%s needs %s beside it: the key that the certificate belongs to", certPath, keyPath)
	case key != "" && cert == "":
		d.problem(keyPath, "%s needs %s beside it: the certificate that the key belongs to", keyPath, certPath)
	}
}

// resolve returns the table with its hosts in canonical form.
func (d *decoder) resolve(table map[string]string) map[string]string {
	out := make(map[string]string, len(table))
	byLine := func(a, b string) int {
		return cmp.Or(cmp.Compare(d.lines["upstream.resolve."+a], d.lines["upstream.resolve."+b]), strings.Compare(a, b))
	}
	for _, from := range slices.SortedFunc(maps.Keys(table), byLine) {
		to, path := table[from], "upstream.resolve."+from
		host, port, err := net.SplitHostPort(from)
		origin, bad := rules.ParseOrigin("http", from)
		if err != nil || port == "" || host == "" || bad != nil {
			d.problem(path, `upstream.resolve: %q is not a host and port; write "site.test:443"`, from)
			continue
		}
		if _, err := netip.ParseAddrPort(to); err != nil {
			d.problem(path, `upstream.resolve: %q is not an address and port; write "127.0.0.1:8443"`, to)
			continue
		}
		if _, twice := out[origin.HostPort()]; twice {
			d.problem(path, "upstream.resolve: %q is listed twice, in different spellings", origin.HostPort())
		}
		out[origin.HostPort()] = to
	}
	return out
}

// beside returns path as an absolute path, relative to the directory of file, which
// names it. It does not depend on the working directory. An empty path stays empty.
func beside(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// checkListen returns an error unless addr is an address and a port.
func checkListen(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf(`%q is not an address and port; write "127.0.0.1:3128"`, addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no port from 0 to 65535; write %q", addr, net.JoinHostPort(host, "3128"))
	}
	if _, err := netip.ParseAddr(host); host != "localhost" && err != nil {
		return fmt.Errorf("%q does not begin with an address of this machine; write %q, or %q for all of them",
			addr, net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("0.0.0.0", port))
	}
	return nil
}

// CheckProfile returns an error unless name is the name of a profile.
func CheckProfile(name string) error {
	if _, ok := rules.ParseProfile(name); !ok || name == "" {
		return fmt.Errorf("%q is no profile; write standard, strict, google or rep1994", name)
	}
	return nil
}

var errContact = errors.New(`write a URL such as "https://example.org/bot" or a mail address such as "bot@example.org"`)

// CheckContact returns an error unless contact is an http or https URL, a mail address,
// or empty for none.
func CheckContact(contact string) error {
	if contact == "" {
		return nil
	}
	if strings.ContainsFunc(contact, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("()\\\"", r) }) {
		return fmt.Errorf("%q contains characters that a header field cannot carry; %w", contact, errContact)
	}
	if u, err := url.Parse(contact); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	if a, err := mail.ParseAddress(strings.TrimPrefix(contact, "mailto:")); err == nil && a.Name == "" {
		return nil
	}
	return fmt.Errorf("%q is neither a URL nor a mail address; %w", contact, errContact)
}

// CheckName returns an error unless name is a token (RFC 9110 §5.6.2) of at most 64
// characters, as a pseudonym in Via must be. Empty means a random one.
func CheckName(name string) error {
	const marks = "!#$%&'*+-.^_`|~"
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune(marks, r) {
			return fmt.Errorf("%q contains %q; use only letters, digits, dots and hyphens", name, r)
		}
	}
	if len(name) > 64 {
		return fmt.Errorf("%.20q... is longer than 64 characters; use a short one", name)
	}
	return nil
}

// checkUpstream returns an error unless proxy is "", "env", the URL of a proxy or a
// reference to one.
func checkUpstream(proxy string) error {
	if proxy == "" || proxy == "env" {
		return nil
	}
	return checkProxyURL(proxy, `"env"`)
}

// checkProxyURL is checkUpstream for a URL or a reference. The error names word as the
// alternative.
func checkProxyURL(proxy, word string) error {
	if isReference(proxy) {
		return checkReference(proxy)
	}
	u, err := url.Parse(proxy)
	switch {
	case err != nil, u.Host == "" || u.Hostname() == "":
		return fmt.Errorf(`%q is not a proxy's URL; write "http://proxy.example:3128", or %s`, RedactURL(proxy), word)
	case !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		return fmt.Errorf("proxies are reached by http, https or socks5, not by %q", u.Scheme)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q has more than scheme, host and port; leave the rest out", RedactURL(proxy))
	}
	return nil
}

// RedactURL returns s, which may be a URL, without user and password.
func RedactURL(s string) string {
	if isReference(s) {
		return s
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		scheme, _, ok := strings.Cut(s, "://")
		if !ok || len(scheme) > i {
			return "..." + s[i:]
		}
		return scheme + "://..." + s[i:]
	}
	return s
}
