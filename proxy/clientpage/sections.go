package clientpage

import (
	"bytes"
	_ "embed" // the lists, and page.html
	"html/template"
	"strings"
)

const (
	title = "heed: a forward proxy that keeps robots.txt"
	intro = `This is a proxy, not a site. Programs that use it obey the robots.txt of every
site that they request: a page that it disallows is answered 403 by the proxy, and
the answer gives the reason. To judge a page, the proxy reads https as well.`
)

// Section is a part of the page.
type Section struct {
	Title string
	Intro string // empty: none
	Lines []Line
}

// Line is one row of a section.
type Line struct {
	Of   string // a platform, a program or a file
	Do   string // a command, or what to do
	Link string // the path of a file of the proxy; empty: none
}

// sections returns the parts of the page, the same for text and HTML.
func (f *Facts) sections() []Section {
	url := "http://" + f.Addr
	files := []Line{
		{"certificate (PEM)", url + "/ca.pem", "/ca.pem"},
		{"certificate (DER)", url + "/ca.der", "/ca.der"},
		{"with usual roots", url + "/bundle.pem", "/bundle.pem"},
	}
	for _, print := range f.Fingerprints() {
		files = append(files, Line{Of: "SHA-256", Do: print})
	}
	return []Section{
		{Title: "Use it", Lines: lines(strings.ReplaceAll(useLines, "URL", url))},
		{Title: "Files", Intro: `For https, a client has to trust the certificate authority of this proxy. Compare
the SHA-256 with the one that its operator gives you another way
(heed ca path prints where the certificate is).`, Lines: files},
		{Title: "Trust it on a platform", Lines: lines(strings.ReplaceAll(platformLines, "URL", url))},
		{Title: "Trust it in a program", Intro: "FILE is where you saved ca.pem, and BUNDLE where you saved bundle.pem.", Lines: lines(programLines)},
		{Title: "Programs that pin certificates", Intro: `A program that accepts only the certificate of its site cannot be intercepted: its
hosts are named in proxy.toml with https = "host-only".`},
	}
}

// useLines are rows of platform and command, separated by a bar.
//
//go:embed use.list
var useLines string

//go:embed platforms.list
var platformLines string

//go:embed programs.list
var programLines string

// lines returns the rows of a list.
func lines(table string) (all []Line) {
	for row := range strings.Lines(table) {
		of, do, _ := strings.Cut(strings.TrimSuffix(row, "\n"), " | ")
		all = append(all, Line{Of: of, Do: do})
	}
	return all
}

//go:embed page.html
var pageText string

// page is the HTML form. It has no script, and its style is in it.
var page = template.Must(template.New("page").Parse(pageText))

// ContentSecurityPolicy is the policy of the HTML page: nothing is loaded, and nothing
// runs.
const ContentSecurityPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// HTML returns the page for browsers.
func (f *Facts) HTML() ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, map[string]any{"Title": title, "Intro": intro, "Contact": f.Contact, "Sections": f.sections()})
	return b.Bytes(), err
}
