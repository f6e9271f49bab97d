package config

import (
	"os"
	"strings"
	"time"

	"heed/internal/config/access"
)

// File is a file that a setting names.
type File struct {
	Key  string // of the setting: "access.users"
	Path string
}

// namedFile is a setting that may name a file.
type namedFile struct {
	scope, key string // as of decoder
	value      *string
	prefix     string                  // of a value that names a file; empty: each is a path
	check      func(path string) error // returns why the file cannot be used; nil: none does

	// resolve returns why a reference cannot be resolved; nil: the value is none.
	resolve func(environ []string) error
}

// namedFiles returns the settings of the files that every reload reads again.
func (c *Config) namedFiles() []namedFile {
	all := []namedFile{
		{key: "access.users", value: &c.Access.Users, check: checkUsers},
		{key: "admin.token", value: &c.Admin.Token, prefix: filePrefix, resolve: func(e []string) error { return errorOf(c.adminToken(e)) }},
		{key: "admin.users", value: &c.Admin.Users, check: func(string) error { return errorOf(c.adminUsers(time.Now)) }},
		{key: "fleet.url", value: &c.Fleet.URL, prefix: filePrefix, resolve: func(e []string) error { return errorOf(resolveFleet(c.Fleet.URL, e)) }},
		{key: "fleet.ca_file", value: &c.Fleet.CAFile, check: checkCerts},
		{key: "fleet.cert", value: &c.Fleet.Cert, check: func(string) error { return errorOf(c.Fleet.Certificate()) }},
		{key: "fleet.key", value: &c.Fleet.Key},
		{key: "upstream.ca_file", value: &c.Upstream.CAFile, check: checkCerts},
		{key: "upstream.proxy", value: &c.Upstream.Proxy, prefix: filePrefix, resolve: func(e []string) error { return errorOf(ResolveUpstream(c.Upstream.Proxy, e)) }},
	}
	sign := func(scope, key string, s *SignConfig) {
		if s != nil {
			all = append(all, namedFile{scope: scope, key: key, value: &s.Key, prefix: filePrefix, check: checkKey})
		}
	}
	for i := range c.Clients {
		sign(entry(i), "client.sign", c.Clients[i].Sign)
	}
	sign("", "robots.sign", c.Robots.Sign)
	for i := range c.Hosts {
		h, scope := &c.Hosts[i], entry(i)
		all = append(all,
			namedFile{scope, "host.robots_file", &h.RobotsFile, "", func(string) error { return errorOf(h.robots(c.RulesProfile())) }, nil},
			namedFile{scope, "host.ca_file", &h.CAFile, "", checkCerts, nil},
			namedFile{scope, "host.client_cert", &h.ClientCert, "", func(string) error { return errorOf(h.certificate()) }, nil},
			namedFile{scope, "host.client_key", &h.ClientKey, "", nil, nil},
			namedFile{scope, "host.upstream", &h.Upstream, filePrefix, nil, func(e []string) error { return errorOf(ResolveUpstream(h.Upstream, e)) }})
	}
	return all
}

// ownFiles returns the settings of the files that heed makes if there are none.
func (c *Config) ownFiles() []namedFile {
	return []namedFile{
		{key: "https.ca_cert", value: &c.HTTPS.CACert},
		{key: "https.ca_key", value: &c.HTTPS.CAKey},
		{key: "cache.file", value: &c.Cache.File},
		{key: "audit.file", value: &c.Audit.File},
	}
}

// path returns the path of the file; empty when the setting names none.
func (f *namedFile) path() string {
	if path, is := strings.CutPrefix(*f.value, f.prefix); is {
		return path
	}
	return ""
}

func checkUsers(path string) error { return errorOf(access.Open(path, time.Now)) }

func checkCerts(path string) error { return errorOf(ReadCerts(path)) }

func checkKey(path string) error { return errorOf(ReadKey(path)) }

// errorOf returns the error of a function that reads a file.
func errorOf[T any](_ T, err error) error { return err }

// ReloadedFiles returns the files that every reload reads again, whether or not the
// settings have changed, each once for its key.
func (c *Config) ReloadedFiles() (all []File) {
	seen := map[File]bool{}
	for _, named := range c.namedFiles() {
		if f := (File{named.key, named.path()}); f.Path != "" && !seen[f] {
			seen[f] = true
			all = append(all, f)
		}
	}
	return all
}

// filesBeside makes the paths of files absolute: they are relative to the directory of File.
func (c *Config) filesBeside() {
	for _, f := range c.namedFiles() {
		if path := f.path(); path != "" {
			*f.value = f.prefix + beside(c.File, path)
		}
	}
	for _, f := range c.ownFiles() {
		*f.value = beside(c.File, *f.value)
	}
}

// checkFiles reports the files that cannot be used to d.
func (c *Config) checkFiles(d *decoder) {
	defer func() { d.scope = "" }()
	for _, f := range c.namedFiles() {
		if d.scope = f.scope; f.check != nil && f.path() != "" {
			d.note(f.key, f.check(f.path()))
		}
	}
	d.scope = ""
	for _, f := range c.ownFiles() {
		if info, err := os.Stat(*f.value); err == nil && info.IsDir() {
			d.problem(f.key, "%s = %q is a directory; name a file in it", f.key, *f.value)
		}
	}
}

// checkReferences reports the references that cannot be resolved to d.
func (c *Config) checkReferences(d *decoder, environ []string) {
	defer func() { d.scope = "" }()
	for _, f := range c.namedFiles() {
		if d.scope = f.scope; f.resolve != nil && isReference(*f.value) {
			d.note(f.key, f.resolve(environ))
		}
	}
}
