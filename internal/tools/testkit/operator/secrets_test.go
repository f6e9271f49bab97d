package operator

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
)

// planted are the places of secrets in requests of a client; %s is the secret.
var planted = []string{
	"/page?token=%s", "/page?access_token=%s&x=1", "/page?api_key=%s", "/page?x-api-k%%65y=%s", "/page?a=1;password=%s", "/page;jsessionid=%s/x", "/page/sid=%s",
	"/page?code=%s&state=1", "/page?token:%s", "/page?q={%%22token%%22:%%22%s%%22}", `/page?q={"token":"%s"}`, "/page?q=%%7B%%22password%%22%%3A%%22%s%%22%%7D",
	"/page?next=http%%3A%%2F%%2Fother.test%%2F%%3Fsig%%3D%s", "/page?next=http://u:%s@other.test/", "/private?token=%s", "/private?client_secret=%s", "/page?user[password]=%s",
	"/page?X-Amz-Signature=%s", "/page?oauth_signature=%s", "/page?jwt=%s#x", "/page?a={b:{auth:%s}}", "/page?filter=session:%s", "/page?otp=%s", "/private/%%2f?pwd=%s", "/page?SAMLResponse=%s",
}

// Secrets of requests, of the pages that they name and of redirects are in nothing that
// heed writes, shows or counts.
func TestHeed_SecretsAreNowhere(t *testing.T) {
	t.Parallel()
	o := testkit.NewOrigin(t,
		testkit.Site{Name: "site.test", Robots: "User-agent: *\nDisallow: /private\n", Files: map[string]string{"/page": "x"}},
		testkit.Site{Name: "moved.test", Redirects: map[string]string{"/robots.txt": "http://site.test/robots.txt?token=5ecret-robots", "/page": "http://site.test/?key=5ecret-location"}},
		testkit.Site{Name: "broken.test", Redirects: map[string]string{"/robots.txt": "http://nowhere.test/robots.txt?sig=5ecret-broken"}},
	)
	h := start(t, o, testkit.FreeAddr(t), "")
	send := func(target, referer string) {
		c := testkit.Dial(t, h.Addr)
		c.Send("GET " + target + " HTTP/1.1\r\nHost: " + strings.Split(target, "/")[2] + "\r\nUser-Agent: Bot/1.0\r\nReferer: " + referer + "\r\nSec-Fetch-Dest: image\r\nConnection: close\r\n\r\n")
		c.Answer(http.MethodGet)
	}
	for i, path := range planted {
		send("http://site.test"+fmt.Sprintf(path, fmt.Sprint("5ecret-", i)), "http://site.test/")
	}
	for _, target := range []string{"http://site.test/page", "http://moved.test/page", "http://broken.test/page"} {
		send(target, "http://site.test/from?token=5ecret-referer")
	}
	n := 0
	testkit.Until(t, "the record has all", func() bool { n = h.rows(); return n >= len(planted)+3 })
	h.AwaitURL("http://broken.test/page")

	look := func(where, text string) {
		t.Helper()
		if at := strings.Index(text, "5ecret"); at >= 0 {
			t.Errorf("%s: ...%q...", where, text[max(0, at-80):min(len(text), at+20)])
		}
	}
	look("the log", h.Stderr())
	for _, page := range append(h.pages(), "/metrics") {
		_, text := h.read(page)
		look(page, text)
	}
	for _, command := range []string{"status --json", "cache list", "cache show moved.test", "cache show broken.test", "audit list", "audit report", "audit export --jsonl", "audit verify", "why http://moved.test/page"} {
		out, _ := h.command(strings.Fields(command)...)
		look(command, out)
	}
	h.Signal(os.Interrupt)
	h.Exit()
	_ = filepath.WalkDir(h.State, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			look(path, string(text))
			return err
		}
		return err
	})
}

// pages returns the paths that the dashboard links to from its first page, and from those.
func (h *heed) pages() (all []string) {
	h.t.Helper()
	seen := map[string]bool{"/": true}
	for queue := []string{"/"}; len(queue) > 0 && len(all) < 60; queue = queue[1:] {
		all = append(all, queue[0])
		_, text := h.read(queue[0])
		for _, part := range strings.Split(text, `href="`)[1:] {
			link, _, _ := strings.Cut(part, `"`)
			if link = strings.ReplaceAll(link, "&amp;", "&"); strings.HasPrefix(link, "/") && !seen[link] && !strings.HasPrefix(link, "/manual") {
				seen[link] = true
				queue = append(queue, link)
			}
		}
	}
	return all
}
