package config

import (
	"fmt"
	"testing"
)

func TestReloadedFiles_AreThoseThatSettingsName(t *testing.T) {
	c := &Config{}
	if got := c.ReloadedFiles(); len(got) > 0 {
		t.Errorf("without any: %v", got)
	}
	c.Access.Users, c.Upstream.CAFile, c.Upstream.Proxy = "users", "roots", "file:proxy"
	var one, other HostConfig
	one.Upstream, one.CAFile, one.ClientCert, one.ClientKey, one.RobotsFile = "http://p.test:1", "own", "cert", "key", "robots"
	other.Upstream, other.CAFile = "file:other", "own"
	c.Hosts = []HostConfig{one, other}
	want := "[{access.users users} {upstream.ca_file roots} {upstream.proxy proxy} {host.robots_file robots} {host.ca_file own} " +
		"{host.client_cert cert} {host.client_key key} {host.upstream other}]"
	if got := fmt.Sprint(c.ReloadedFiles()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
