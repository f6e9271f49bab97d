package config

import "strings"

// File is a file that a setting names.
type File struct {
	Key  string // of the setting: "access.users"
	Path string
}

// ReloadedFiles returns the files that every reload reads again, whether or not the
// settings have changed, each once for its key.
func (c *Config) ReloadedFiles() []File {
	var all []File
	seen := map[File]bool{}
	add := func(key, path string) {
		if f := (File{key, path}); path != "" && !seen[f] {
			seen[f] = true
			all = append(all, f)
		}
	}
	reference := func(key, value string) {
		if path, ok := strings.CutPrefix(value, filePrefix); ok {
			add(key, path)
		}
	}
	add("access.users", c.Access.Users)
	reference("admin.token", c.Admin.Token)
	add("admin.users", c.Admin.Users)
	reference("fleet.url", c.Fleet.URL)
	add("fleet.ca_file", c.Fleet.CAFile)
	add("fleet.cert", c.Fleet.Cert)
	add("fleet.key", c.Fleet.Key)
	add("upstream.ca_file", c.Upstream.CAFile)
	reference("upstream.proxy", c.Upstream.Proxy)
	for i := range c.Clients {
		if s := c.Clients[i].Sign; s != nil {
			reference("client.sign", s.Key)
		}
	}
	if s := c.Robots.Sign; s != nil {
		reference("robots.sign", s.Key)
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		add("host.robots_file", h.RobotsFile)
		add("host.ca_file", h.CAFile)
		add("host.client_cert", h.ClientCert)
		add("host.client_key", h.ClientKey)
		reference("host.upstream", h.Upstream)
	}
	return all
}
