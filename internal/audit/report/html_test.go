package report_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"heed/internal/audit/report"
	"heed/internal/tools/testkit/must"
)

// page returns the report as HTML, and its parsed form.
func page(t *testing.T, path string) (string, *html.Node) {
	t.Helper()
	rep, _ := made(t, report.Query{Conduct: true}, path)
	var out bytes.Buffer
	must.OK(t, rep.WriteHTML(&out))
	root := must.Get(html.Parse(bytes.NewReader(out.Bytes())))(t)
	return out.String(), root
}

// seen is the text that a reader of the page sees.
func seen(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "style" {
			b.WriteString(d.Data + " ")
		}
	}
	return b.String()
}

func TestHeed_ThePageSaysWhatTheTextSays(t *testing.T) {
	_, root := page(t, aDay(t))
	contains(t, seen(root),
		"9 requests", "6 allowed, 66.7 %", "1 refused by rule, 11.1 %", "1 rules unavailable, 11.1 %", "1 not judged, 11.1 %", "only observed: 1 request, which would be: 1 refused by rule",
		"Requests over time", "newsbot 192.0.2.7 4 allowed 1 refused by rule 5 4 1 0 0 0 2s 2.7 KiB 1", "https://shop.example 6 allowed 1 refused by rule 7 6 1 0 0 1 2s 3.3 KiB 1",
		"robots.txt line 2 Disallow: /private (group *)", "an exception of the operator: Allow: /private/, because: mail of 3 May",
		"1 asked: 1 rules unavailable", "the site answered 503 nothing is allowed until it can be read", "+Disallow: /cart",
		"newsbot https://shop.example 5 1 x, first", "2 1 1 NewsBot/2.1", "note a crawl for a test", "of 1 the end is not recorded",
	)
}

// A hash of settings is compared with others, so that the page has all of it.
func TestHeed_ThePageHasWholeHashes(t *testing.T) {
	path := aDay(t)
	rep, _ := made(t, report.Query{}, path)
	_, root := page(t, path)
	for _, hash := range rep.Records[0].Configs {
		contains(t, seen(root), hash)
	}
	must.True(t, len(rep.Records[0].Configs) > 0, "the record names no settings")
}

// A page is mailed, archived and printed: it must be whole in itself.
func TestHeed_ThePageNeedsNothingFromElsewhere(t *testing.T) {
	text, root := page(t, aDay(t))
	for d := range root.Descendants() {
		if d.Type != html.ElementNode {
			continue
		}
		switch d.Data {
		case "script", "link", "img", "iframe", "object", "embed", "a", "form", "image":
			t.Errorf("there is a <%s> in it", d.Data)
		}
		for _, a := range d.Attr {
			must.True(t, a.Key != "src" && a.Key != "href" && !strings.HasPrefix(a.Key, "on"),
				"there is a %s=%q in it", a.Key, a.Val)
		}
	}
	for _, word := range []string{"url(http", "@import", "<script"} {
		must.Lack(t, text, word, "there is a %s in it", word)
	}
}

func TestHeed_NothingThatClientsAndSitesWriteIsObeyedByABrowser(t *testing.T) {
	const hostile = "</style></title></svg>\"'><script>alert(1)</script><img src=x onerror=alert(2)>&lt;\x1b[2J\u202e\x00{{.}}"
	r := newRecord(t)
	who := r.once("asker", hostile, hostile, hostile, "enforce", hostile, `["a\"><script>"]`, 0, nil, nil)
	p := r.policy("shop.example", time.Hour, hostile)
	r.policy("shop.example", 0, "User-agent: *\n")
	for i, verdict := range []string{"refuse", "would-refuse", "allow"} {
		r.entry(time.Duration(i)*time.Minute, who, hostile, hostile, r.ground("path", verdict, "override", hostile, 3, hostile, p), 0)
	}
	r.entry(0, who, "away.example", "/", r.ground("path", "refuse", "robots-unreachable", "", 0, nil, r.lost("away.example", hostile)), 0)
	r.entry(0, who, "away.example", "/", r.ground("no", "refuse", hostile, "", 0, nil, nil), 0)
	text, root := page(t, r.file())
	for d := range root.Descendants() {
		if d.Type == html.ElementNode && (d.Data == "script" || d.Data == "img") {
			t.Errorf("a browser finds a <%s>", d.Data)
		}
	}
	if i := strings.IndexAny(text, "\x1b\x00\u202e"); i >= 0 {
		t.Errorf("what cannot be seen is in it: %q", text[max(0, i-40):min(len(text), i+40)])
	}
	must.Contain(t, seen(root), "<script>alert(1)</script>", "what was written is not told")
}

func TestHeed_LongListsAreCutOnThePageAndSayso(t *testing.T) {
	r := newRecord(t)
	who, free := r.asker("192.0.2.7", "newsbot", "x"), r.ground("path", "allow", "no-rule", "", 0, nil, nil)
	for i := range 100 {
		r.entry(time.Duration(i)*time.Minute, who, fmt.Sprintf("www%d.example", i), "/", free, 0)
	}
	_, root := page(t, r.file())
	contains(t, seen(root), "and 70 more: --csv and --json have all.")
}
