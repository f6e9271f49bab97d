package command

import (
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/console"
	"heed/internal/testkit"
)

// `heed config show --for` prints the settings that apply to a client, and the entry that
// each comes from.
func TestConfigShowsWhatHoldsForAClient(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.toml")
	testkit.Write(t, path, `
[[client]]
name = "shop"
user_agent = "Mozilla/*"
agent = ["ShopBot"]
purpose = "search"
[[client]]
name = "people"
from = ["192.0.2.0/24"]
mode = "exempt"
[[host]]
match = ["*.example.org"]
mode = "observe"
allow = ["/api/"]
reason = "letter 14"
clients = ["shop"]
licence = "contract 4711"
expires = 2020-01-31
upstream = "http://someone:secret@proxy.test:8080"
[[host]]
match = ["www.example.org"]
refuse = ["/api/admin"]
reason = "asked by mail"
[[host]]
match = ["registry.test"]
crawl = false
reason = "a registry"
`)
	for _, c := range []struct {
		who, url string
		want     []string
	}{
		{"Mozilla/5.0 Chrome/130", "https://www.example.org/api/admin/x", []string{
			"client      shop, by its User-Agent: the first [[client]] that fits",
			"judged as   ShopBot (agent)\n            and as what its own User-Agent names",
			"mode        observe, as a [[host]] says",
			"https       intercept, as [https] says",
			"rules       https://www.example.org/robots.txt, read as the profile standard has it",
			"exception   allow /api/ (letter 14), for shop, ENDED on 2020-02-01T00:00:00Z\n",
			"exception   refuse /api/admin (asked by mail) <- counts here",
			"purpose     search: what the site does not allow for it is refused",
			"reached     through http://", "proxy.test:8080",
		}},
		{"192.0.2.7", "https://example.net/", []string{
			"client      people, by its address", "mode        exempt, as its [[client]] says",
			"https       tunnel, since the client is exempt", "rules       none count: an exempt client: people, not a robot [exempt]", "reached     directly",
		}},
		{"curl/8", "https://registry.test/simple/", []string{
			"client      no [[client]] fits curl/8", "judged as   curl (from its User-Agent)",
			"rules       none count: a service that programs call, not a site they crawl [not-a-crawl] (a registry)", "mode        enforce, by default",
		}},
		{"people", "https://example.net/", []string{"client      people, by its name"}},
	} {
		got := heed(t, "", "config", "show", "--config", path, "--for", c.who, c.url)
		for _, want := range c.want {
			if !strings.Contains(got.out, want) {
				t.Errorf("%s at %s lacks %q:\n%s%s", c.who, c.url, want, got.out, got.errors)
			}
		}
		if strings.Contains(got.out, "secret") {
			t.Errorf("a password is shown:\n%s", got.out)
		}
	}
	if got := heed(t, "", "config", "show", "--for", "people"); got.status != console.ExitUsage || !strings.Contains(got.errors, "--for needs a client and a URL") {
		t.Errorf("%+v", got)
	}
}
