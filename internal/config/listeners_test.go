package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A listener for redirected connections that other machines can reach needs to know its
// clients: passwords cannot be asked for.
func TestHeed_AListenerForRedirectedConnectionsNeedsItsClients(t *testing.T) {
	open := "[[listener]]\naddress = \":3129\"\nmode = \"transparent\"\n"
	for text, ok := range map[string]bool{
		open: false,
		"[access]\nusers = \"passwords\"\n" + open:                                         false,
		"[access]\nclients = [\"192.0.2.0/24\"]\n" + open:                                  true,
		strings.Replace(open, `":3129"`, `"127.0.0.1:3129"`, 1):                            true,
		strings.Replace(open, `":3129"`, `"[::1]:3129"`, 1):                                true,
		strings.Replace(open, "transparent", "tproxy", 1):                                  false,
		"listen = \"127.0.0.1:3129\"\nproxy_protocol = [\"127.0.0.1\"]":                    false,
		strings.Replace(open, `":3129"`, `"[::1]:3129"`, 1) + "proxy_protocol = [\"::1\"]": false,
	} {
		err := settings(t, text).CheckExposure()
		must.Equal(t, err == nil, ok, "%s: %v", text, err)
		if err != nil && (!strings.Contains(err.Error(), ":3129") || strings.Contains(text, "proxy_protocol") != strings.Contains(err.Error(), "load balancer")) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// Of a tproxy listener, a [[client]] names the address as the settings have it: its
	// connections have the addresses of sites.
	client := "[[client]]\nname = \"bot\"\nlistener = \"%s\"\n"
	tproxy := "[access]\nclients = [\"192.0.2.0/24\"]\n" + strings.Replace(open, "transparent", "tproxy", 1)
	for listener, notice := range map[string]string{":3129": "", "[::]:3129": "", "192.0.2.1:3129": `listener = "[::]:3129"`, "192.0.2.1:4000": "does not listen"} {
		got := strings.Join(settings(t, tproxy+fmt.Sprintf(client, listener)).clientNotices(), "\n")
		must.True(t, (notice != "" || !strings.Contains(got, "never matches")) && strings.Contains(got, notice),
			"%s: %q", listener, got)
	}
	_, err := Load(testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), open+fmt.Sprintf(client, ":3129")), testkit.BuiltIn(t))
	must.True(t, err != nil, "a redirect rule's listener is named by an address that no client connects to")
	c := settings(t, open)
	must.True(t, !c.loopbackOnly() && c.Listeners[0].Address == "[::]:3129", "%+v", c.Listeners)
	must.Equal(t, c.JoinHash(), settings(t, "").JoinHash(), "a run with other listeners does not join")
	if err := c.ServeAt("127.0.0.1:4000", nil); err != nil || c.Listeners[0].Address != "[::]:3129" || c.Listen.First() != "127.0.0.1:4000" {
		t.Errorf("--listen changes listen alone: %v, %+v", err, c.Listeners)
	}
	got := settings(t, strings.Replace(open, "[[listener]]", "[[listener]]\nother = \"tunnel\"", 1)).Unjudged()
	must.True(t, len(got) > 0 && strings.Contains(got[len(got)-1], "not judged"), "%q", got)
}
