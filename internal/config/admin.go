package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"heed/internal/config/access"
)

// AdminConfig holds [admin]: the listener for operators, with metrics and health.
type AdminConfig struct {
	Listen  string   `toml:"listen"`  // host:port, or "unix:" and a path; empty: there is no such listener
	Token   string   `toml:"token"`   // a reference to the token (see resolveSecret); empty: none
	Users   string   `toml:"users"`   // htpasswd file; empty: none
	Hosts   []string `toml:"hosts"`   // further names under which the listener may be requested, in lower case
	Actions bool     `toml:"actions"` // requests may change the running heed
	Pprof   bool     `toml:"pprof"`   // profiles of the process are served
}

// unixPrefix begins the address of a listener on a Unix socket.
const unixPrefix = "unix:"

// Network returns the network and the address of Listen, as net.Listen takes them.
func (c *AdminConfig) Network() (network, address string) {
	if path, ok := strings.CutPrefix(c.Listen, unixPrefix); ok {
		return "unix", path
	}
	return "tcp", c.Listen
}

// Exposed reports whether other machines can connect to the listener.
func (c *AdminConfig) Exposed() bool {
	network, address := c.Network()
	return address != "" && network == "tcp" && !loopbackOnly(address)
}

// check reports the problems of the settings to d. file is the settings file.
func (c *AdminConfig) check(d *decoder, file string) {
	network, address := c.Network()
	switch {
	case network == "unix" && address == "":
		d.problem("admin.listen", `admin.listen = "unix:" names no socket; write "unix:/run/heed/admin.sock"`)
	case network == "unix":
		c.Listen = unixPrefix + beside(file, address)
	case address != "":
		d.note("admin.listen", checkListen(address))
	}
	d.note("admin.token", checkAdminToken(c.Token))
	for i, name := range c.Hosts {
		if !validHost(name) {
			d.problem(element("admin.hosts", i), `admin.hosts: %q is not the name of a host; write it without scheme and port, such as "heed.example.org"`, name)
			continue
		}
		c.Hosts[i] = strings.ToLower(name)
	}
	if d.isWrong("admin.listen", "admin.token", "admin.users") || c.Token != "" || c.Users != "" {
		return
	}
	if c.Exposed() {
		d.problem("admin.listen", `admin.listen = %q can be reached from other machines, and nothing restricts who may use it; add token = "file:PATH", or users = "FILE" for passwords, or write a loopback address such as "127.0.0.1:3129"`, c.Listen)
	}
	if c.Actions {
		d.problem("admin.actions", `admin.actions = true needs token = "file:PATH" or users = "FILE" beside it, also on a loopback address, since any local program can connect to it`)
	}
}

// checkAdminToken returns an error unless the value is empty or a reference. The settings never
// contain the token itself.
func checkAdminToken(value string) error {
	if value != "" && !isReference(value) {
		return errors.New(`the token is not written into the settings; write it into a file that others cannot read, and "file:PATH" here, or "env:NAME" for a variable`)
	}
	return checkReference(value)
}

// validHost reports whether name is a DNS name or an IP address without brackets.
func validHost(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	ok := name != "" && len(name) <= 253
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		ok = ok && (letter || strings.ContainsRune("-._", r))
	}
	return ok
}

// minToken is the least length of a token, in characters. One of that length cannot be
// found by trying.
const minToken = 16

// AdminAccess reads the token and the users of [admin], with which requests authenticate to the
// admin listener; empty and nil: without. The error is about a file or a variable that they name
// and contains no secret.
func (c *Config) AdminAccess(environ []string, now func() time.Time) (token string, users *access.Gate, err error) {
	if token, err = c.adminToken(environ); err != nil {
		return "", nil, fmt.Errorf("admin.token: %w", err)
	}
	if users, err = c.adminUsers(now); err != nil {
		return "", nil, fmt.Errorf("admin.users: %w", err)
	}
	return token, users, nil
}

// adminToken reads the token; empty without one, and without the listener.
func (c *Config) adminToken(environ []string) (string, error) {
	if c.Admin.Listen == "" {
		return "", nil
	}
	token, err := resolveSecret(c.Admin.Token, environ)
	if err == nil && token != "" && len(token) < minToken {
		return "", fmt.Errorf("the token is shorter than %d characters; make one with: openssl rand -hex 32", minToken)
	}
	return token, err
}

// adminUsers reads the users; nil without any, and without the listener.
func (c *Config) adminUsers(now func() time.Time) (*access.Gate, error) {
	if c.Admin.Listen == "" || c.Admin.Users == "" {
		return nil, nil
	}
	return access.Open(c.Admin.Users, now)
}

// notices returns what is printed at every start.
func (c *AdminConfig) notices() (all []string) {
	if c.Exposed() {
		all = append(all, fmt.Sprintf("the admin listener %s is plain HTTP on an address that other machines can reach: tokens, passwords and the record cross the network unencrypted. Put a server with TLS in front of it, or listen on 127.0.0.1", c.Listen))
	}
	if c.Pprof && c.Listen != "" {
		all = append(all, "the admin listener serves profiles of the process (admin.pprof), which can contain parts of requests")
	}
	return all
}
