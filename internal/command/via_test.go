package command_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// compression returns what nginx's packaged configuration sets of compression; what
// Debian's does where there is none.
func compression(t *testing.T) string {
	t.Helper()
	const debian = "gzip on;"
	version := must.Get(exec.Command(testkit.Program(t, "nginx"), "-V").CombinedOutput())(t)
	path := regexp.MustCompile(`--conf-path=(\S+)`).FindSubmatch(version)
	if path == nil {
		return debian
	}
	packaged, err := os.ReadFile(string(path[1]))
	if err != nil {
		return debian
	}
	found := regexp.MustCompile(`(?m)^\s*gzip.*;`).FindAllString(string(packaged), -1)
	if found == nil {
		return debian
	}
	return strings.Join(found, "\n")
}

// nginx as it is packaged compresses what is requested without Via only, so that the
// octets that a site sends depend on `via`.
func TestHeed_NginxCompressesForRequestsWithoutVia(t *testing.T) {
	page := strings.Repeat("<p>one of many lines of a page", 6000)
	site := testkit.Site{Name: "with.test", Files: map[string]string{"/page.html": page}, Config: compression(t)}
	other := site
	other.Name = "without.test"
	o := testkit.NewOrigin(t, site, other)
	h := testkit.Start(t, testkit.Options{Config: o.Config("") + "\n[[host]]\nmatch = [\"without.test\"]\nvia = false\n"})
	size := func(address string) int {
		t.Helper()
		r := must.Get(http.NewRequest(http.MethodGet, address, nil))(t)
		r.Header.Set("Accept-Encoding", "gzip") // else net/http would undo it
		resp := must.Get(trusting(t, h).Do(r))(t)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must.Need(t, err == nil && resp.StatusCode == http.StatusOK, "%v %v", resp.Status, err)
		return len(body)
	}
	for _, scheme := range []string{"http", "https"} {
		with, without := size(scheme+"://with.test/page.html"), size(scheme+"://without.test/page.html")
		t.Logf("%s: %d octets with Via, %d without", scheme, with, without)
		must.True(t, with == len(page) && without*20 <= with,
			"%s: %d octets with Via, %d without, of a page of %d", scheme, with, without, len(page))
	}
	for name, via := range map[string]bool{"with.test": true, "without.test": false} {
		for _, hit := range o.HitsOf(name, "/page.html") {
			must.Equal(t, hit.Via != "", via, "%s saw %+v", name, hit)
		}
	}
}
