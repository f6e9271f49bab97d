package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestReloadedFiles_AreThoseThatSettingsName(t *testing.T) {
	c := &Config{}
	must.Same(t, c.ReloadedFiles(), nil, "without any")
	c.Access.Users, c.Upstream.CAFile, c.Upstream.Proxy = "users", "roots", "file:proxy"
	var one, other HostConfig
	one.Upstream, one.CAFile, one.ClientCert, one.ClientKey, one.RobotsFile = "http://p.test:1", "own", "cert", "key", "robots"
	other.Upstream, other.CAFile = "file:other", "own"
	c.Hosts = []HostConfig{one, other}
	want := "[{access.users users} {upstream.ca_file roots} {upstream.proxy proxy} {host.robots_file robots} {host.ca_file own} " +
		"{host.client_cert cert} {host.client_key key} {host.upstream other}]"
	must.Equal(t, fmt.Sprint(c.ReloadedFiles()), want)
}

// Where heed writes, a directory is no file: config check says what the start would.
func TestCheckFiles_ADirectoryIsNoFile(t *testing.T) {
	for _, f := range (&Config{}).ownFiles() {
		table, key, _ := strings.Cut(f.key, ".")
		c := &Config{}
		err := c.decode("proxy.toml", fmt.Appendf(nil, "[%s]\n%s = \".\"\n", table, key))
		must.Fail(t, errors.Join(err, c.FileMistakes(nil)), f.key+` = "." is a directory; name a file in it`)
	}
}
