package command_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/output/manual"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A site behind Debian's Squid with the lines of the manual sees each page once, and heed
// judges every request for it.
func TestASiteBehindACacheSeesEachPageOnce(t *testing.T) {
	t.Parallel()
	cache(t, "http", testkit.Program(t, "squid"), "")
}

// The same over https, which the Squid in .build/squid decrypts: with HEED_TEST_FULL=1.
func TestASiteBehindACacheSeesEachPageOnce_HTTPS(t *testing.T) {
	t.Parallel()
	if !testkit.Full {
		t.Skip("Squid with OpenSSL is not installed for the short form")
	}
	folder := filepath.Join(testkit.Root(t), ".build", "squid", "usr")
	cache(t, "https", filepath.Join(folder, "sbin", "squid"), filepath.Join(folder, "lib", "squid", "security_file_certgen"))
}

// cache visits a site twice under two names, through a heed before the program.
func cache(t *testing.T, scheme, program, certgen string) {
	t.Helper()
	o := testkit.NewOrigin(t, testkit.Site{
		Name: "site.test", Robots: "User-agent: *\nDisallow: /private\n\nUser-agent: barred\nDisallow: /page.txt\n",
		Files:  map[string]string{"/page.txt": "a page", "/private.txt": "no page"},
		Config: "add_header Cache-Control max-age=3600;",
	})
	files := map[string]string{"site-ca.pem": testkit.Read(t, o.CA.File)}
	settings := strings.ReplaceAll(testkit.ManualLines(t, "caching", "# heed.toml: "+scheme), "http://127.0.0.1:3127", "http://{{Addr}}")
	if scheme == "https" {
		dir := t.TempDir()
		topic, _ := manual.Lookup("caching")
		_, command, _ := strings.Cut(topic.Text, "    openssl req ")
		command, _, _ = strings.Cut(command, "    /usr/lib/squid/")
		made := exec.Command("sh", "-c", "openssl req "+command)
		made.Dir = dir
		out, err := made.CombinedOutput()
		must.Need(t, err == nil, "%v\n%s", err, out)
		for _, name := range []string{"bump.pem", "bump-key.pem"} {
			files[name] = testkit.Read(t, filepath.Join(dir, name))
		}
		settings = strings.ReplaceAll(settings, "/etc/squid/", dir+"/")
	}
	squid := testkit.NewCache(t, program, files, []string{"site.test"}, func(dir string) string {
		conf := testkit.ManualLines(t, "caching", "# squid.conf: http")
		if scheme == "https" {
			_, others, _ := strings.Cut(conf, "\n")
			certs := filepath.Join(dir, "certs")
			if _, err := os.Stat(certs); err != nil {
				out, err := exec.Command(certgen, "-c", "-s", certs, "-M", "16MB").CombinedOutput()
				must.Need(t, err == nil, "%v\n%s", err, out)
			}
			conf = testkit.ManualLines(t, "caching", "# squid.conf: https") + others + "tls_outgoing_options cafile=" + dir + "/site-ca.pem\n"
		}
		// The site of the test is on this machine.
		conf = strings.Replace(conf, "http_access deny to_localhost\n", "", 1)
		return strings.NewReplacer("127.0.0.1:3127", "{{Addr}}", "/etc/squid/", dir+"/", "/var/spool/squid/", dir+"/",
			"/usr/lib/squid/security_file_certgen", certgen).Replace(conf)
	})
	h := testkit.Start(t, testkit.Options{Config: testkit.AnyPort + strings.ReplaceAll(settings, "{{Addr}}", squid.Addr)})
	site := scheme + "://" + strings.Replace(o.Addr("site.test", scheme), "127.0.0.1", "site.test", 1)
	c := trusting(t, h)
	get := func(agent, path string) (status int, age string) {
		t.Helper()
		req := must.Get(http.NewRequest(http.MethodGet, site+path, nil))(t)
		req.Header.Set("User-Agent", agent)
		resp := must.Get(c.Do(req))(t)
		resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Age")
	}
	for i, agent := range []string{"one/1.0", "two/1.0", "one/1.0"} {
		status, age := get(agent, "/page.txt")
		must.True(t, status == http.StatusOK && (age != "") == (i > 0), "%s gets status %d, Age %q", agent, status, age)
	}
	// What is in the cache is no page for whom the site bars from it.
	for _, refused := range []string{"barred/1.0 /page.txt", "one/1.0 /private.txt"} {
		agent, path, _ := strings.Cut(refused, " ")
		status, _ := get(agent, path)
		must.True(t, status == http.StatusForbidden, "%s is answered with %d", refused, status)
	}
	seen := fmt.Sprint(len(o.HitsOf("site.test", "/page.txt")), len(o.HitsOf("site.test", "/robots.txt")), len(o.HitsOf("site.test", "/private.txt")))
	must.True(t, seen == "1 1 0",
		"the site saw %s requests for the page, robots.txt and the refused page, want 1 1 0\n%s", seen, squid.Log())
}
