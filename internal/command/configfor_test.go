package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/console"
	"heed/internal/passport"
	"heed/internal/tools/testkit"
)

// `heed config show --for` prints the settings that apply to a client, and the entry that
// each comes from.
func TestConfigShowsWhatHoldsForAClient(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "User-agent: curl\nDisallow: /private\n\nUser-agent: *\nDisallow: /old\n")
	}))
	defer site.Close()
	path := filepath.Join(t.TempDir(), "proxy.toml")
	testkit.Write(t, filepath.Join(filepath.Dir(path), "own.txt"), "User-agent: *\nDisallow: /private\n")
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
upstream = "http://someone:secret@127.0.0.1:1"
[[host]]
match = ["www.example.org"]
refuse = ["/api/admin"]
reason = "asked by mail"
allow = ["/other/"]
[[host]]
match = ["registry.test"]
crawl = false
reason = "a registry"
[[host]]
match = ["own.test"]
robots_file = "own.txt"
reason = "as agreed"
[[host]]
match = ["own.test"]
allow = ["/private/open"]
reason = "letter 15"
[[host]]
match = ["own.test"]
allow = ["/private/"]
reason = "letter 16"
clients = ["people"]
[[host]]
match = ["closed.test"]
https = "refuse"
[upstream]
resolve = { "site.test:80" = "`+site.Listener.Addr().String()+`", "gone.test:80" = "127.0.0.1:1", "www.example.org:443" = "127.0.0.1:1" }
`)
	for _, c := range []struct {
		who, url string
		want     []string
	}{
		{"curl/8", "http://site.test/private", []string{"verdict     refuse: a rule of robots.txt [rule]: Disallow: /private (line 2, group curl)\n"}},
		{"curl/8", "http://site.test/old", []string{"verdict     allow: "}},
		{"198.51.100.1", "http://site.test/old", []string{"verdict     refuse: a rule of robots.txt [rule]: Disallow: /old (line 5, group *), for a User-Agent that no group is for\n"}},
		{"curl/8", "http://gone.test/", []string{"verdict     refuse: the site was not reached or gave no valid answer [origin-unreachable] (", "connection refused)\n"}},
		{"Mozilla/5.0", "http://own.test/", []string{"verdict     allow: no rule applies [no-rule]\n            unless the site states otherwise of its purpose: heed check --purpose search\n"}},
		{"curl/8", "https://closed.test/", []string{"verdict     refuse: the operator lets no https through\n"}},
		{"curl/8", "http://169.254.169.254/", []string{"verdict     refuse: "}},
		{"curl/8", "http://127.0.0.1:3128/", []string{"verdict     refuse: "}},
		{"curl/8", "http://own.test/private/open/a", []string{"verdict     allow: an exception of the operator [override]: Allow: /private/open (letter 15)\n"}},
		{"curl/8", "http://own.test/private/a", []string{"verdict     refuse: a rule of robots.txt [rule]: Disallow: /private (line 2, group *)\n"}},
		{"Mozilla/5.0 Chrome/130", "https://www.example.org/api/admin/x", []string{
			"client      shop, by its User-Agent: the first [[client]] that fits",
			"judged as   ShopBot (agent)\n            and as what its own User-Agent names",
			"mode        observe, as a [[host]] says",
			"https       intercept, as [https] says",
			"rules       https://www.example.org/robots.txt, read as the profile standard has it",
			"exception   allow /api/ (letter 14), for shop, ENDED on 2020-02-01T00:00:00Z\n",
			"exception   refuse /api/admin (asked by mail) <- counts here",
			"purpose     search: what the site does not allow for it is refused",
			"reached     through http://...@127.0.0.1:1, as a [[host]] says\n",
			"verdict     would-refuse: an exception of the operator [override]: Disallow: /api/admin (asked by mail)\n",
		}},
		{"192.0.2.7", "https://example.net/", []string{
			"client      people, by its address", "mode        exempt, as its [[client]] says",
			"https       tunnel, since the client is exempt", "rules       none count: an exempt client: people, not a robot [exempt]", "reached     directly",
			"verdict     allow: an exempt client: people, not a robot [exempt]\n",
		}},
		{"curl/8", "https://registry.test/simple/", []string{
			"client      no [[client]] fits curl/8", "judged as   curl (from its User-Agent)",
			"rules       none count: a service that programs call, not a site they crawl [not-a-crawl] (a registry)", "verdict     allow: a service that programs call, not a site they crawl [not-a-crawl] (a registry)\n", "mode        enforce, by default",
		}},
		{"people", "https://example.net/", []string{"client      people, by its name"}},
	} {
		got := heed(t, "", "config", "show", "--config", path, "--for", c.who, c.url)
		for _, want := range c.want {
			if !strings.Contains(got.out, want) {
				t.Errorf("%s at %s lacks %q:\n%s%s", c.who, c.url, want, got.out, got.errors)
			}
		}
		if last := strings.LastIndex(strings.TrimSuffix(got.out, "\n"), "\n"); !strings.HasPrefix(got.out[last+1:], "verdict ") && c.who != "Mozilla/5.0" {
			t.Errorf("%s at %s does not end with the verdict:\n%s%s", c.who, c.url, got.out, got.errors)
		}
		for _, other := range []string{"/other/", "letter 16"} {
			if strings.Contains(got.out, other) {
				t.Errorf("%s at %s: an exception that does not match is listed:\n%s", c.who, c.url, got.out)
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

// `heed config show --for` prints whether a request is signed, and why it is not.
func TestConfigShowsTheSignatureOfAClient(t *testing.T) {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	dir := t.TempDir()
	key, err := passport.NewKey(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "news.key"), key.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	at := site.Listener.Addr().String()
	path := testkit.Write(t, filepath.Join(dir, "proxy.toml"), `
[upstream.resolve]
"a.test:443" = "`+at+`"
"a.test:80" = "`+at+`"
"old.test:80" = "`+at+`"
"shy.test:443" = "`+at+`"
[[client]]
name = "news"
from = ["192.0.2.7"]
sign = { key = "file:news.key", agent = "https://bots.example/news.json" }
[[host]]
match = ["old.test"]
sign_form = "string"
sign_http = true
[[host]]
match = ["shy.test"]
https = "tunnel"
`)
	for url, want := range map[string]string{
		"https://a.test/":    "as https://bots.example/news.json with the key " + key.Thumbprint,
		"http://old.test/":   "as https://bots.example/news.json with the key " + key.Thumbprint + ", in the older form (sign_form)",
		"http://a.test/":     "none: requests over http are signed only with sign_http",
		"https://shy.test/x": "none: https to this host is not intercepted",
	} {
		if got := heed(t, "", "config", "show", "--config", path, "--for", "news", url); !strings.Contains(got.out, "\nsignature   "+want+"\n") {
			t.Errorf("%s: %s%s", url, got.out, got.errors)
		}
	}
	check := heed(t, "", "config", "check", "--config", path)
	check.is(t, 0, path+": well\n", "heed: client \"news\" is not signed at shy.test: heed does not see the requests in tunnels\n")
}
