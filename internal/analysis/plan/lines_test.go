package plan

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"heed/internal/tools/testkit/must"
)

// gzipped returns text as a gzip file.
func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.Get(io.WriteString(w, text))(t)
	must.OK(t, w.Close())
	return b.String()
}

func TestReadList(t *testing.T) {
	t.Parallel()
	text := "\ufeffhttp://a.test/1\r\n\n# http://a.test/no\n  http://a.test/2  \n{\"url\": \"http://a.test/3\", \"n\": 1}\n" +
		"{\"url\": 7}\n{\"ur\": \"x\"}\n{\nh:\nhttp://a.test/" + strings.Repeat("x", 2*MaxURL) + "\n{\"url\":\"\"}\nhttp://a.test/4"
	want := []string{"http://a.test/1", "http://a.test/2", "http://a.test/3", "h:", "http://a.test/4"}
	for name, in := range map[string]io.Reader{
		"as it is": strings.NewReader(text), "gzip": strings.NewReader(gzipped(t, text)), "octet by octet": iotest.OneByteReader(strings.NewReader(text)),
	} {
		var got []string
		var problems Problems
		err := ReadList(t.Context(), in, "list", func(url string) error {
			got = append(got, url)
			if url == "h:" {
				return fmt.Errorf("%q is not a URL: no scheme", url)
			}
			return nil
		}, &problems)
		must.True(t, err == nil && slices.Equal(got, want), "%s: %q, %v", name, got, err)
		var said []string
		for _, p := range problems.List() {
			said = append(said, fmt.Sprint(p.Count, p.Places, p.String()))
		}
		if want := []string{
			"3 [list:6 list:7 list:11]the JSON object has no member url that is a text", "1 [list:8]the line is not a JSON object",
			`1 [list:9]"h:" is not a URL: no scheme`, "1 [list:10]it is longer than 64 KiB",
		}; !slices.Equal(said, want) {
			t.Errorf("%s: %q", name, said)
		}
	}
}

func TestReadList_Ends(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is broken")
	take := func(string) error { return nil }
	if err := ReadList(t.Context(), io.MultiReader(strings.NewReader("http://a.test/\n"), iotest.ErrReader(broken)), "list", take, &Problems{}); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	whole := gzipped(t, strings.Repeat("http://a.test/\n", 1000))
	if err := ReadList(t.Context(), strings.NewReader(whole[:len(whole)-9]), "list", take, &Problems{}); err == nil {
		t.Error("half a gzip file is whole")
	}
	ctx, stop := context.WithCancel(t.Context())
	n := 0
	err := ReadList(ctx, strings.NewReader(strings.Repeat("http://a.test/\n", 100)), "list", func(string) error {
		if n++; n == 10 {
			stop()
		}
		return nil
	}, &Problems{})
	must.True(t, err == nil && n == 10, "%d lines were read, %v", n, err)
}

func TestProblems_AreBounded(t *testing.T) {
	t.Parallel()
	var p Problems
	for i := range 1000 {
		p.Add(fmt.Sprint("p", i), "", fmt.Sprint(strings.Repeat("x", 1000*(i%2)), "reason ", i))
	}
	n := int64(0)
	for _, o := range p.List() {
		n += o.Count
		must.True(t, len(o.Places) <= maxPlaces && len(o.Reason) <= maxReason+3,
			"%d places, a reason of %d octets", len(o.Places), len(o.Reason))
	}
	must.True(t, len(p.List()) == maxReasons+1 && n == 1000, "%d reasons for %d problems", len(p.List()), n)
}

// sitemap returns what is read from text.
func sitemap(text string) (pages, children []string, cut bool, err error) {
	_, cut, err = ReadSitemap(strings.NewReader(text), MaxSitemap, func(url string) { pages = append(pages, url) }, func(url string) { children = append(children, url) })
	return pages, children, cut, err
}

// wide is ASCII in UTF-16, little-endian.
func wide(text string) string {
	return strings.Join(strings.SplitAfter(text, ""), "\x00") + "\x00"
}

func TestReadSitemap(t *testing.T) {
	t.Parallel()
	const head = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	long := strings.Repeat("x", MaxURL+1)
	for _, c := range []struct{ name, text, pages, children, err string }{
		{"a sitemap", head + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc> http://h.test/a?b&amp;c </loc><lastmod>2026-01-01</lastmod></url>
			<url><loc><![CDATA[http://h.test/d]]></loc></url></urlset>`, "http://h.test/a?b&c http://h.test/d", "", ""},
		{"an extension", `<urlset><url><loc>http://h.test/</loc><image:image><image:loc>http://h.test/i</image:loc></image:image></url></urlset>`, "http://h.test/", "", ""},
		{"an index", head + `<sitemapindex><sitemap><loc>http://h.test/1.xml</loc></sitemap><url><loc>http://h.test/no</loc></url></sitemapindex>`, "", "http://h.test/1.xml", ""},
		{"text", "\ufeff\nhttp://h.test/a\r\nhttp://h.test/b", "http://h.test/a http://h.test/b", "", ""},
		{"Latin-1", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><urlset><url><loc>http://h.test/caf\xe9</loc></url></urlset>", "http://h.test/café", "", ""},
		{"an entry without a URL", `<urlset><url><loc></loc></url><url><loc>` + long + `</loc></url></urlset>`, " ", "", ""},
		{"HTML", "<!doctype html><html><body></body></html>", "", "", "it is no sitemap, index of sitemaps, RSS 2.0 or Atom feed"},
		{"an entity", `<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>http://h.test/&x;</loc></url></urlset>`, "", "", "not XML from line 1"},
		{"half", `<urlset><url><loc>http://h.test/a</loc></url><url><loc>http://h.te`, "http://h.test/a", "", "not XML from line 1"},
		{"crossed", "<urlset>\n<url></urlset>", "", "", "an element ends that is not open"},
		{"many declarations", strings.Repeat(`<?xml version="1.0" encoding="latin1"?>`, 1<<17) + "<urlset>", "", "", "declares its character encoding more than once"},
		{"many attributes", `<urlset ` + strings.Repeat(`a="" `, 1<<18) + `></urlset>`, "", "", "longer than 1 MiB"},
		{"long text", `<?xml version="1.0" encoding="latin1"?><urlset>` + strings.Repeat("a", 2<<20) + `</urlset>`, "", "", "longer than 1 MiB"},
		{"deep", strings.Repeat("<urlset>", 100), "", "", "nested too deeply"},
		{"nothing", "", "", "", ""},
		{"RSS", `<rss version="2.0" xmlns:atom="x"><channel><link>http://h.test/</link><atom:link href="http://h.test/self"/><item><title>A &amp; B</title><link>http://h.test/a?b&amp;c</link><atom:link href="x">no</atom:link></item><item><link>/d</link></item></channel></rss>`, "http://h.test/a?b&c /d", "", ""},
		{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://h.test/"/><entry><link rel="alternate" href="http://h.test/a"/><link rel="enclosure" href="http://h.test/no"/></entry><entry><link href="http://h.test/b&amp;c"/></entry></feed>`, "http://h.test/a http://h.test/b&c", "", ""},
		{"a bare ampersand", `<urlset><url><loc>http://h.test/?x=1&y=2</loc></url><url><loc>http://h.test/b</loc></url></urlset>`, "http://h.test/?x=1&y=2 http://h.test/b", "", ""},
		{"UTF-16", "\xff\xfe" + wide(`<?xml version="1.0" encoding="UTF-16"?><urlset><url><loc>http://h.test/a</loc></url></urlset>`), "http://h.test/a", "", ""},
		{"UTF-16, text", "\xff\xfe" + wide("http://h.test/a\r\nhttp://h.test/b\r\n"), "http://h.test/a http://h.test/b", "", ""},
		{"two", `<urlset></urlset><urlset><url><loc>http://h.test/a</loc></url></urlset>`, "http://h.test/a", "", ""},
	} {
		for _, text := range []string{c.text, gzipped(t, c.text)} {
			pages, children, cut, err := sitemap(text)
			if got := strings.Join(pages, " "); got != c.pages || strings.Join(children, " ") != c.children || cut {
				t.Errorf("%s: the pages are %.300q, the children %q", c.name, got, children)
			}
			must.True(t, (err == nil) == (c.err == "") && (err == nil || strings.Contains(err.Error(), c.err)),
				"%s: the error is %v", c.name, err)
		}
	}
}

// A small file that is large when it is unpacked is read as far as the bound.
func TestReadSitemap_IsBounded(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	line := "http://h.test/" + strings.Repeat("x", 60_000) + "\n"
	entry := "<url><loc>" + strings.TrimSpace(line) + "</loc></url>"
	for _, c := range []struct{ begin, each string }{{"", line}, {"<urlset>", entry}} {
		pages := 0
		_, cut, err := ReadSitemap(strings.NewReader(gzipped(t, c.begin+strings.Repeat(c.each, 10*most/len(c.each)))), most, func(string) { pages++ }, nil)
		n := most / len(c.each)
		must.True(t, cut && err == nil && pages >= n-1 && pages <= n, "%.10q: %d pages, cut %v, %v", c.each, pages, cut, err)
	}
	whole := strings.Repeat("http://h.test/\n", most/15)
	_, cut, err := ReadSitemap(strings.NewReader(whole), len(whole), func(string) {}, nil)
	must.True(t, !cut && err == nil, "a sitemap of the longest length is cut: %v, %v", cut, err)
}

// No line makes a page that cannot be kept in the file of those that wait, or judged.
func FuzzParseLine(f *testing.F) {
	for _, line := range []string{"http://h.test/", "# no", `{"url":"http://h.test/"}`, `{"url":"http://h.test/#\n"}`, "{", `{"url":["x"]}`, "http://[::1", "\ufeff"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		url, err := ParseLine([]byte(strings.TrimSpace(line)))
		if err != nil || url == "" {
			return
		}
		p, got := making(t.Context(), Options{Agents: []string{"b"}, Open: func() Judge { return &judge{} }})
		added := p.Add(url) == nil
		if totals, left, err := p.Finish(); err != nil || left != 0 || (totals[0].Counts.Sum() == 1) != added || len(url) > MaxURL && added {
			t.Errorf("%q: %+v, %d left, %v", line, totals, left, err)
		}
		if added && len(got.sites) != 1 {
			t.Errorf("%q: the sites are %v", line, got.sites)
		}
	})
}

// No sitemap makes the reader panic, hang, or return a URL that is too long.
func FuzzReadSitemap(f *testing.F) {
	for _, text := range []string{"<urlset><url><loc>http://h.test/</loc></url></urlset>", "<sitemapindex><sitemap><loc>x</loc></sitemap></sitemapindex>", "http://h.test/\n\n", "<?xml encoding='latin1'?><urlset>", "<a:urlset>", "\x1f\x8b"} {
		f.Add(text)
		f.Add(gzipped(f, text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		pages, children, _, _ := sitemap(text)
		for _, url := range slices.Concat(pages, children) {
			must.True(t, len(url) <= MaxURL, "a URL has %d octets", len(url))
		}
	})
}
