package bypass

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// canaryToken fills the canaries: nothing else that a server sends holds it.
const canaryToken = "CANARY-OF-HEED\n"

// canarySize is a canary's length, which no other file has, so that an answer
// without a body gives it away too.
const canarySize = 273 * len(canaryToken)

// pageToken is what an allowed page says.
const pageToken = "every client may read this"

// robots disallows every canary, each by another kind of rule.
const robots = `User-agent: *
Disallow: /private/
Disallow: /deep/*/canary
Disallow: /end/canary.html$
Disallow: /*.pdf$
Disallow: /caf%C3%A9/
Disallow: /a&b=c/
Disallow: /odd%5Cname/
Disallow: /st%2Ar/
Disallow: /pre/can
Disallow: /*?view=secret
Disallow: /holes/
Allow: /holes/open/
Disallow: /p%61th/%7Ejoe
`

// page is a file of the site, and the request that it is asked for with.
type page struct {
	path  string // as it lies on the disk
	index bool   // it is the index.html of path
	query string // part of what the rule is about; empty: none
	// exact: the rule ends in "$", so that another query is another address.
	exact bool
	open  bool // allowed
}

var pages = []page{
	{path: "/private/canary.html"},
	{path: "/private/", index: true},
	{path: "/deep/er/canary.html"},
	{path: "/end/canary.html", exact: true},
	{path: "/files/canary.pdf", exact: true},
	{path: "/café/canary.html"},
	{path: "/a&b=c/canary.html"},
	{path: `/odd\name/canary.html`},
	{path: "/st*r/canary.html"},
	{path: "/pre/canary.html"},
	{path: "/list/canary.html", query: "?view=secret"},
	{path: "/holes/canary.html"},
	{path: "/path/~joe/canary.html"},
	{path: "/open/page.html", open: true},
	{path: "/holes/open/page.html", open: true},
}

// writeSite makes a folder with the site's files that every user may read.
func writeSite(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.Chmod(filepath.Dir(dir), 0o755))
	files := map[string]string{"/robots.txt": robots}
	for _, p := range pages {
		content := strings.Repeat(canaryToken, canarySize/len(canaryToken))
		if p.open {
			content = pageToken
		}
		path := p.path
		if p.index {
			path += "index.html"
		}
		files[path] = content
	}
	for path, content := range files {
		file := dir + path
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.OK(t, os.WriteFile(file, []byte(content), 0o644))
	}
	return dir
}
