// Package wall recognises the challenges of bot walls: answers that are sent in place of the
// one that was requested, until the client proves that it is a browser with a person. They
// show neither the page nor the robots.txt of the site, nor whether there is one. The package is
// pure, and one classifier for the answers to all requests.
//
// A challenge is shown by a header field that says so (Field), or by an HTML page (Page) that
// sets a cookie and reloads, submits itself, or loads a challenge path of a known vendor, and
// has nothing to read. An external script with a root element is an application, and a page
// with text and links is a page, whatever a wall has added to it.
package wall

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"heed/internal/base/memo"
)

// fields are the header fields in which walls say that an answer is a challenge, with the values
// that do, and the vendors.
var fields = []struct {
	name   string
	values []string
	vendor string
}{
	{"Cf-Mitigated", []string{"challenge"}, "Cloudflare"},
	{"X-Amzn-Waf-Action", []string{"challenge", "captcha"}, "AWS WAF"},
	{"X-Vercel-Mitigated", []string{"challenge"}, "Vercel"},
}

// Field returns the vendor whose field in a header says that the answer is a challenge; empty
// when none does. DataDome has a field in every answer of its sites: it counts in a refusal
// that is a page.
func Field(status int, h http.Header) string {
	for _, f := range fields {
		if value := strings.ToLower(strings.TrimSpace(h.Get(f.name))); slices.Contains(f.values, value) {
			return f.vendor
		}
	}
	if status >= 400 && h.Get("X-Datadome") != "" && IsHTML(h, nil) {
		return "DataDome"
	}
	return ""
}

// IsHTML reports whether an answer is an HTML page, by its media type or its first bytes.
func IsHTML(h http.Header, body []byte) bool {
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(h.Get("Content-Type"))), "text/html") {
		return true
	}
	start := bytes.ToLower(bytes.TrimLeft(body[:min(len(body), 64)], "\ufeff \t\r\n"))
	return bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}

// group is the line that begins a group of robots.txt.
var group = memo.Expression(`(?im)^[ \t]*user-?agent[ \t]*:`)

// RobotsTxt classifies the answer to a request for a robots.txt. A text with rules is none,
// whatever its fields say.
func RobotsTxt(status int, h http.Header, body []byte) (kind Kind, vendor string) {
	page := IsHTML(h, body)
	if status < 300 && !page && group().Match(body) {
		return None, ""
	}
	if vendor := Field(status, h); vendor != "" {
		return Challenge, vendor
	}
	if !page {
		return None, ""
	}
	return Page(body)
}

// Kind is what a page is.
type Kind uint8

// The kinds.
const (
	None      Kind = iota // no challenge
	Doubtful              // it has nothing to read and a script of its own: it may be one
	Challenge             // a challenge
)

// MaxBytes is how much of a page is read. Challenges are short.
const MaxBytes = 64 << 10

// marks occur in the challenges of vendors and not in pages that are only served through them.
var marks = []struct{ mark, vendor string }{
	{"_cf_chl_opt", "Cloudflare"}, {"/cdn-cgi/challenge-platform/h/", "Cloudflare"}, {"/cdn-cgi/l/chk_", "Cloudflare"},
	{"gokuProps", "AWS WAF"}, {"awsWafCaptcha", "AWS WAF"},
	{"Incapsula incident ID", "Imperva"},
	{"captcha-delivery.com/", "DataDome"},
	{"px-captcha", "HUMAN"},
	{"/_sec/cp_challenge/", "Akamai"}, {"bm-verify=", "Akamai"}, {"sec-if-cpt-container", "Akamai"},
	{"anubis_challenge", "Anubis"}, {"/.within.website/x/cmd/anubis/", "Anubis"},
	{"sucuri_cloudproxy_js", "Sucuri"},
	{"/.well-known/ddos-guard/", "DDoS-Guard"},
	{"/.well-known/sgcaptcha/", "SiteGround"},
	{"/_fs-ch-", "Fastly"},
	{`document.cookie="__test=`, "testcookie"},
	{"/.well-known/vercel/security/", "Vercel"},
	{"gammaspectra.live/git/go-away/", "go-away"},
}

// empty are marks of vendors that are also added to ordinary pages: they count in a page that
// has nothing to read.
var empty = []struct{ mark, vendor string }{
	{"/_Incapsula_Resource", "Imperva"}, {"/cdn-cgi/challenge-platform/", "Cloudflare"}, {"/TSPD/", "F5"}, {"bobcmn", "F5"}, {"token.awswaf.com/", "AWS WAF"},
	{"challenges.cloudflare.com/turnstile/", "Turnstile"}, {"hcaptcha.com/", "hCaptcha"}, {"/recaptcha/", "reCAPTCHA"}, {"AwsWafIntegration", "AWS WAF"}, {"_pxAppId", "HUMAN"}, {"KPSDK", "Kasada"},
}

// bundles begin the paths of scripts that the tools of applications make: Next.js, SvelteKit.
var bundles = [][]byte{[]byte(`"/_next/static/`), []byte(`"/_app/immutable/`)}

// Page classifies an HTML page; vendor is the wall where it is known, else "an unknown wall",
// and empty for None.
func Page(body []byte) (kind Kind, vendor string) {
	body = body[:min(len(body), MaxBytes)]
	for _, m := range marks {
		if bytes.Contains(body, []byte(m.mark)) {
			return Challenge, m.vendor
		}
	}
	body = bytes.ReplaceAll(body, []byte("/cdn-cgi/challenge-platform/scripts/jsd/"), nil) // in any page
	p := read(body)
	if p.password || p.links >= 10 || p.text >= 2000 {
		return None, ""
	}
	const unknown = "an unknown wall"
	app := p.external > 0 && p.roots > 0 || slices.ContainsFunc(bundles, func(b []byte) bool { return bytes.Contains(body, b) })
	short := p.links < 3 && p.text < 600
	if short && !app {
		for _, m := range empty {
			if bytes.Contains(body, []byte(m.mark)) {
				return Challenge, m.vendor
			}
		}
	}
	switch {
	case !app && (p.cookies && (p.reloads || p.goes) || p.sends && p.selfForm || short && p.reloads):
		return Challenge, unknown
	case app && (p.reloads || p.sends && p.selfForm), short && !app && (p.scripted || p.demands):
		return Doubtful, unknown
	}
	return None, ""
}

// page is what matters of an HTML page.
type page struct {
	text     int  // letters that are shown
	links    int  // to other pages
	roots    int  // elements with an id, which a script may fill
	external int  // scripts with a source
	password bool // a form to log in

	scripted bool // an inline script that runs
	cookies  bool // it sets a cookie
	goes     bool // it goes to another page
	reloads  bool // it, or a refresh, requests the page again
	sends    bool // it submits a form
	selfForm bool // a form to the page itself
	demands  bool // it asks for JavaScript or cookies
}

// Scripts that request the page again: a reload, or a location that is made of itself; that
// set a cookie; that go somewhere; that submit a form; and texts that ask for scripts.
var (
	reload  = memo.Expression(`location\s*\.\s*reload\s*\(|(?:^|[;{}(),\n]|window\.|document\.|self\.|top\.)\s*location(?:\.href)?\s*=\s*(?:window\.|document\.|self\.)?(?:location|document\.URL)|location\s*\.\s*(?:replace|assign)\s*\(\s*(?:window\.|document\.|self\.)?(?:location|document\.URL)`)
	cookie  = memo.Expression(`document\s*\.\s*cookie\s*=[^=]|document\s*\[\s*['"]cookie['"]\s*\]\s*=[^=]|cookieStore\s*\.\s*set\s*\(`)
	going   = memo.Expression(`location(?:\s*\.\s*href)?\s*=[^=]|location\s*\.\s*(?:replace|assign)\s*\(`)
	sending = memo.Expression(`\.\s*(?:requestSubmit|submit)\s*\(`)
	demand  = memo.Expression(`(?i)enable (?:javascript|cookies|js\b)|javascript (?:and cookies|is required|is disabled)|checking your browser|verif(?:y|ying) (?:that )?you are (?:a )?human|not a robot`)
)

// read reads a page.
func read(body []byte) *page {
	p := &page{}
	z := html.NewTokenizer(bytes.NewReader(body))
	var until, inside atom.Atom // the element whose text is not shown, and as what it is read
	for {
		switch z.Next() {
		case html.ErrorToken:
			return p
		case html.StartTagToken:
			t := z.Token()
			if as := p.element(&t); as != 0 {
				until, inside = t.DataAtom, as
			}
		case html.SelfClosingTagToken:
			t := z.Token()
			p.element(&t)
		case html.EndTagToken:
			if t := z.Token(); t.DataAtom == until {
				until, inside = 0, 0
			}
		case html.TextToken:
			p.words(z.Text(), inside)
		}
	}
}

// element reads a start tag, and returns as what the text in it is read: a script that runs,
// nothing (as a style), or text that is not shown; 0 for text that is.
func (p *page) element(t *html.Token) (as atom.Atom) {
	a := attributes(t)
	switch t.DataAtom {
	case atom.Script:
		kind := strings.ToLower(a["type"])
		switch {
		case a["src"] != "":
			p.external++
		case kind == "" || strings.Contains(kind, "javascript") || kind == "module":
			return atom.Script
		}
		return atom.Style
	case atom.Style:
		return atom.Style
	case atom.Title, atom.Noscript, atom.Template:
		return atom.Title
	case atom.A:
		if href := a["href"]; href != "" && href[0] != '#' {
			p.links++
		}
	case atom.Input:
		p.password = p.password || strings.EqualFold(a["type"], "password")
	case atom.Form:
		action := a["action"]
		p.selfForm = p.selfForm || action == "" || strings.HasPrefix(action, "?") || strings.Contains(action, "robots.txt")
		return 0
	case atom.Meta:
		p.refresh(a)
	}
	if a["id"] != "" {
		p.roots++
	}
	return 0
}

// refresh reads a META element that may request the page again.
func (p *page) refresh(a map[string]string) {
	if !strings.EqualFold(a["http-equiv"], "refresh") {
		return
	}
	_, target, has := strings.Cut(a["content"], "=")
	target = strings.Trim(target, " '\"")
	p.reloads = p.reloads || !has || target == "" || strings.HasPrefix(target, "?") || strings.Contains(target, "robots.txt")
}

// words reads text in an element, as element has returned it.
func (p *page) words(text []byte, inside atom.Atom) {
	switch text = bytes.TrimSpace(text); {
	case len(text) == 0, inside == atom.Style:
		return
	case inside == atom.Script:
		p.scripted = true
		p.reloads = p.reloads || reload().Match(text)
		p.cookies = p.cookies || cookie().Match(text)
		p.goes = p.goes || going().Match(text)
		p.sends = p.sends || sending().Match(text)
		return
	case inside == 0:
		p.text += len(bytes.Join(bytes.Fields(text), nil))
	}
	p.demands = p.demands || demand().Match(text)
}

func attributes(t *html.Token) map[string]string {
	a := make(map[string]string, len(t.Attr))
	for _, one := range t.Attr {
		if _, twice := a[one.Key]; !twice {
			a[one.Key] = strings.TrimSpace(one.Val)
		}
	}
	return a
}
