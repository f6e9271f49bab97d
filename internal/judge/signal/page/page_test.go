package page_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"heed/internal/base/coding"
	"heed/internal/base/safetext"
	"heed/internal/judge/signal/page"
	"heed/internal/tools/testkit/must"
)

// codings compress a body, by the name in Content-Encoding.
var codings = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 4) },
	"zstd":    func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
}

func encode(t testing.TB, name string, body []byte) []byte {
	t.Helper()
	open := codings[name]
	if open == nil {
		return body
	}
	var b bytes.Buffer
	w := open(&b)
	must.Get(w.Write(body))(t)
	must.OK(t, w.Close())
	return b.Bytes()
}

func header(contentType, contentEncoding string) http.Header {
	h := http.Header{"Content-Type": {contentType}}
	if contentEncoding != "" {
		h.Set("Content-Encoding", contentEncoding)
	}
	return h
}

// scan reads a body in pieces of some bytes.
func scan(h http.Header, body []byte, piece int) page.Head {
	s := page.NewScanner(h, nil)
	for piece := range slices.Chunk(body, piece) {
		if _, err := s.Write(piece); err != nil {
			panic(err)
		}
		if s.Done() {
			break
		}
	}
	return s.Finish(true)
}

// list puts the elements of a head into words.
func list(h page.Head) string {
	var all []string
	for _, e := range h.Elements {
		all = append(all, strings.TrimPrefix(fmt.Sprintf("%s=%s", e.Name, e.Content), "="))
	}
	return strings.Join(all, " | ")
}

func TestOnlyElementsOfTheHeadCount(t *testing.T) {
	t.Parallel()
	const noindex = `<meta name="robots" content="noindex">`
	for name, c := range map[string]struct{ page, want string }{
		"in the head":                 {"<html><head>" + noindex + "</head>", "robots=noindex"},
		"without tags around it":      {noindex + "<p>text", "robots=noindex"},
		"in upper case":               {"<HTML><HEAD><META NAME=\"ROBOTS\" CONTENT=\"NOINDEX\"></HEAD>", "robots=NOINDEX"},
		"without quotes":              {"<head><meta name=robots content=noindex></head>", "robots=noindex"},
		"in single quotes":            {"<head><meta content='noindex' name='robots' /></head>", "robots=noindex"},
		"with entities":               {"<head><meta name=\"&#114;obots\" content=\"no&#105;ndex\"></head>", "robots=noindex"},
		"over several lines":          {"<head><meta\n name = \"robots\"\n content =\n\"noindex\"></head>", "robots=noindex"},
		"the first of two attributes": {"<head><meta name=robots name=x content=noindex content=all></head>", "robots=noindex"},
		"after a stray text":          {"<head>\ufeff oops " + noindex + "</head>", "robots=noindex"},
		"after an unclosed title":     {"<head><title>A</title>" + noindex, "robots=noindex"},
		"in a noscript of the head":   {"<head><noscript>" + noindex + "<img src=x></noscript><meta name=x content=y></head>", "robots=noindex | x=y"},
		"as http-equiv":               {`<head><meta http-equiv="Content-Usage" content="train-ai=n"></head>`, "content-usage=train-ai=n"},
		"in a comment":                {"<head><!-- " + noindex + " --></head>", ""},
		"in a conditional comment":    {"<head><!--[if IE]>" + noindex + "<![endif]--></head>", ""},
		"in a script":                 {"<head><script>document.write('" + noindex + "')</script></head>", ""},
		"in a style":                  {"<head><style>" + noindex + "</style></head>", ""},
		"in a title":                  {"<head><title>" + noindex + "</title></head>", ""},
		"in a template":               {"<head><template>" + noindex + "</template></head>", ""},
		"in a template in another":    {"<head><template><template></template>" + noindex + "</template></head>", ""},
		"in the body":                 {"<head></head><body>" + noindex, ""},
		"in a noscript of the body":   {"<head></head><body><noscript>" + noindex + "</noscript>", ""},
		"after the head":              {"<head></head>" + noindex + "<body>", ""},
		"after a paragraph":           {"<head><p>" + noindex + "</head>", ""},
		"in a textarea":               {"<head><textarea>" + noindex + "</textarea></head>", ""},
		"without content":             {"<head><meta name=robots></head>", ""},
		"without a name":              {"<head><meta content=noindex></head>", ""},
		"unclosed":                    {"<head><meta name=robots content=\"noindex", ""},
	} {
		h := scan(header("text/html", ""), []byte(c.page), 7)
		got := list(h)
		must.True(t, got == c.want && h.Why == page.Whole, "%s: %q (%s), want %q", name, got, h.Why, c.want)
	}
}

// XHTML is XML: an empty element has no content, names have prefixes, and nothing but its end
// or a body ends a head.
func TestXHTML_IsReadAsXML(t *testing.T) {
	t.Parallel()
	const noindex = `<meta name="robots" content="noindex"/>`
	for name, c := range map[string]struct {
		page, want string
		why        page.Why
	}{
		"an empty script":      {`<html xmlns="http://www.w3.org/1999/xhtml"><head><script src="a.js"/>` + noindex + "</head>", "robots=noindex", ""},
		"an empty style":       {"<html><head><style/>" + noindex + "</head>", "robots=noindex", ""},
		"an empty title":       {"<html><head><title />" + noindex + "</head>", "robots=noindex", ""},
		"an empty template":    {"<html><head><template/>" + noindex + "</head>", "robots=noindex", ""},
		"an empty noscript":    {"<html><head><noscript/>" + noindex + "</head>", "robots=noindex", ""},
		"an empty textarea":    {"<html><head><x/><textarea/>" + noindex + "</head>", "robots=noindex", ""},
		"an empty licence":     {`<html><head><script type="application/rsl+xml"/>text` + noindex + "</head>", " | robots=noindex", ""},
		"a template":           {"<html><head><template>" + noindex + "</template></head>", "", ""},
		"a script":             {"<html><head><script>//<![CDATA[\n'" + noindex + "'\n//]]></script></head>", "", ""},
		"prefixes":             {`<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:head><h:script/><h:meta name="robots" content="noindex"/></h:head>`, "robots=noindex", ""},
		"prefixes of a body":   {"<h:html><h:head/><h:body>" + noindex, "", ""},
		"metadata in the head": {"<html><head><rdf:RDF><cc:Work/></rdf:RDF>" + noindex + "</head>", "robots=noindex", ""},
		"a section of text":    {"<html><head><title><![CDATA[x]]></title><![CDATA[ > ]]>" + noindex + "</head>", "robots=noindex", ""},
		"the body":             {"<html><head></head><body>" + noindex, "", ""},
		"a frameset":           {"<html><head><title/><frameset>" + noindex, "", ""},
		"an encoding":          {"<?xml version='1.0' encoding='ISO-2022-JP'?>\n<html><head><title>\x1b$B<\x22\x1b(B</title>" + noindex + "</head>", "robots=noindex", ""},
		"entities of its own":  {`<!DOCTYPE html [<!ENTITY m '` + strings.ReplaceAll(noindex, "<", "&#60;") + `'>]><html><head>&m;</head>`, "", page.Entities},
		"a common doctype":     {`<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "xhtml11.dtd"><html><head>` + noindex + "</head>", "robots=noindex", ""},
	} {
		for _, kind := range []string{"application/xhtml+xml", "Application/XHTML+XML;charset=utf-8"} {
			if name == "an encoding" && strings.Contains(kind, "charset") {
				continue
			}
			h := scan(header(kind, ""), []byte(c.page), 7)
			got := list(h)
			must.True(t, got == c.want && h.Why == c.why, "%s, %s: %q (%s), want %q (%s)", kind, name, got, h.Why, c.want, c.why)
		}
	}
	h := scan(header("text/html", ""), []byte("<head><script src=a.js/>"+noindex+"</head>"), 7)
	must.Equal(t, list(h), "", "in HTML a script has content")
}

func TestLicencesOfAHead(t *testing.T) {
	t.Parallel()
	const text = `<head>
<link rel="stylesheet license" type="application/rsl+xml" href="/license.xml">
<link rel="license" href="https://creativecommons.example/by/4.0/">
<link rel="license" type="application/rsl+xml">
<script type="application/rsl+xml"><rsl><content url="/"/></rsl></script>
<script type="application/ld+json">{"license": "x"}</script>
</head>`
	h := scan(header("text/html", ""), []byte(text), 11)
	must.Equal(t, list(h), `/license.xml | <rsl><content url="/"/></rsl>`)
	must.True(t, h.Elements[0].Kind == page.Link && h.Elements[0].Line == 2 && h.Elements[1].Kind == page.Licence && h.Elements[1].Line == 5,
		"%+v", h.Elements)
}

func TestWhatIsNoPage(t *testing.T) {
	t.Parallel()
	html := header("text/html; charset=utf-8", "")
	for _, c := range []struct {
		method string
		status int
		header http.Header
		want   page.Why
	}{
		{"GET", 200, html, page.Whole},
		{"POST", 200, html, page.Whole},
		{"GET", 200, header("TEXT/HTML", "GZIP"), page.Whole},
		{"GET", 200, header("text/html;;", "br"), page.Whole},
		{"GET", 200, header("application/xhtml+xml", "identity"), page.Whole},
		{"HEAD", 200, html, page.NoBody},
		{"GET", 204, html, page.NoBody},
		{"GET", 206, html, page.Partial},
		{"GET", 206, http.Header{"Content-Type": {"text/html"}, "Content-Range": {"bytes 5-9/99"}}, page.Partial},
		{"GET", 206, http.Header{"Content-Type": {"text/html"}, "Content-Range": {"Bytes 0-9/99"}}, page.Whole},
		{"GET", 206, header("multipart/byteranges; boundary=x", ""), page.Partial},
		{"GET", 206, header("image/png", ""), page.NoPage},
		{"GET", 304, html, page.Unmodified},
		{"GET", 404, html, page.NoPage},
		{"GET", 302, html, page.NoPage},
		{"GET", 200, header("application/pdf", ""), page.NoPage},
		{"GET", 200, http.Header{}, page.Whole},
		{"GET", 200, header("", ""), page.Whole},
		{"GET", 404, http.Header{}, page.NoPage},
		{"GET", 200, header(`text/plain; x="text/html"`, ""), page.NoPage},
		{"GET", 200, header("text/plain, text/html", ""), page.Whole},
		{"GET", 200, http.Header{"Content-Type": {"image/png", "text/html"}}, page.Whole},
		{"GET", 200, header("text/html charset=utf-8", ""), page.Whole},
		{"GET", 200, header("text/html(utf-8)", ""), page.Whole},
		{"GET", 200, header("text/html5", ""), page.NoPage},
		{"GET", 200, header("html", ""), page.Whole},
		{"GET", 200, header("*/*", ""), page.Whole},
		{"GET", 200, header("unknown/unknown", ""), page.Whole},
		{"GET", 200, header("text/ html", ""), page.Whole},
		{"GET", 200, header("; charset=utf-8", ""), page.Whole},
		{"GET", 200, header("application/xml", ""), page.Whole},
		{"GET", 200, header("application/rss+xml", ""), page.NoPage},
		{"GET", 200, header(`application/json; profile="a, b"`, ""), page.NoPage},
		{"GET", 200, header("text/html", "compress"), page.Coding},
		{"GET", 200, header("text/html", "utf-8"), page.Whole},
		{"GET", 200, header("text/html", "none"), page.Whole},
		{"GET", 200, header("text/html", "bzip2"), page.Coding},
		{"GET", 200, header("text/html", "gzip, br"), page.Coding},
	} {
		must.Equal(t, page.Readable(c.method, c.status, c.header), c.want, "%s %d %v", c.method, c.status, c.header)
	}
}

// Where the media type is missing, wrong or that of any XML, the beginning of the content says
// whether it is a page, as it does for browsers; no octet is waited for that is not needed.
func TestHeed_APageWithoutItsTypeIsRead(t *testing.T) {
	t.Parallel()
	const meta = `<head><meta name="robots" content="noindex"/></head>`
	for _, kind := range []string{"", "html", "*/*", "unknown/unknown", "text/ html", "; charset=utf-8", "application/xml", "text"} {
		for _, begin := range []string{"<!DOCTYPE html><html>", "<html>", "\n <!-- x --><HTML lang=en>", "", "\xEF\xBB\xBF<html>", "<?xml version='1.0'?>\n<html xmlns='http://www.w3.org/1999/xhtml'>"} {
			h := scan(header(kind, ""), []byte(begin+meta), 7)
			must.True(t, list(h) == "robots=noindex" && h.Why == page.Whole, "%q, %q: %q (%s)", kind, begin, list(h), h.Why)
		}
		for _, other := range []string{"{\"a\": \"<html>\"}", "<rss><channel>", "<person><name>", "\x89PNG\r\n", "data: x\n\n", "<?xml version='1.0'?><feed/>"} {
			if h := scan(header(kind, ""), []byte(other+meta), 7); h.Why != page.Untyped || len(h.Elements) > 0 {
				t.Errorf("%q, %q: %q (%s)", kind, other, list(h), h.Why)
			}
		}
		s := page.NewScanner(header(kind, ""), nil)
		_, _ = s.Write([]byte("d"))
		must.True(t, s.Done(), "%q: more is waited for", kind)
		s.Finish(true)
	}
}

// A Content-Encoding that names no coding changes nothing; a body that is no text has a coding
// that cannot be known.
func TestHeed_ANameOfNoCodingHidesNoHead(t *testing.T) {
	t.Parallel()
	body := []byte(`<head><meta name="robots" content="noindex"></head>`)
	for _, name := range []string{"utf-8", "none", "binary", "ISO-8859-1", "foo", "gzip-off", "utf-8, identity"} {
		h := scan(header("text/html", name), body, 7)
		must.True(t, list(h) == "robots=noindex" && h.Why == page.Whole, "%s: %q (%s)", name, list(h), h.Why)
		if h := scan(header("text/html", name), encode(t, "gzip", body), 7); h.Why != page.Coding {
			t.Errorf("%s of gzip: %q (%s)", name, list(h), h.Why)
		}
	}
}

// The head is known before the body has ended, and without waiting for octets that it
// does not have.
func TestTheHeadIsKnownAsSoonAsItEnds(t *testing.T) {
	t.Parallel()
	for name := range codings {
		var b bytes.Buffer
		w := codings[name](&b)
		_, _ = io.WriteString(w, `<head><meta name="robots" content="noindex"></head>`)
		if f, ok := w.(interface{ Flush() error }); ok {
			must.OK(t, f.Flush())
		}
		s := page.NewScanner(header("text/html", name), nil)
		_, _ = s.Write(b.Bytes())
		must.True(t, s.Done(), "%s: not done after </head>", name)
		must.Equal(t, list(s.Finish(false)), "robots=noindex", name)
	}
	s := page.NewScanner(header("text/html", ""), nil)
	_, _ = io.WriteString(s, `<head><meta name="robots" content="noindex">`)
	must.True(t, !s.Done(), "done before </head>")
	_, _ = io.WriteString(s, `</he`)
	_, _ = io.WriteString(s, `ad><body>`)
	must.True(t, s.Done(), "not done after </head> in two pieces")
	h := s.Finish(false)
	must.True(t, h.Why == page.Whole, "%+v", h)
}

// A body that ends too early, or is not waited for, is unfinished: what was found counts.
func TestUnfinishedPages(t *testing.T) {
	t.Parallel()
	s := page.NewScanner(header("text/html", ""), nil)
	_, _ = io.WriteString(s, `<head><meta name="robots" content="noindex">`+strings.Repeat(" ", 2000))
	h := s.Finish(false)
	must.True(t, h.Why == page.Unfinished && list(h) == "robots=noindex", "%+v", h)
	h = page.NewScanner(header("text/html", "gzip"), nil).Finish(false)
	must.True(t, h.Why == page.Unfinished, "nothing was written: %+v", h)
	for _, name := range []string{"", "gzip", "deflate", "br", "zstd"} {
		h := page.NewScanner(header("text/html", name), nil).Finish(true)
		must.True(t, h.Why == page.NoBody, "%q of nothing: %+v", name, h)
	}
	for name := range codings {
		sent := encode(t, name, []byte("<head>"+strings.Repeat("<meta name=a content=b>", 300)))
		must.Equal(t, scan(header("text/html", name), sent[:len(sent)-5], 100).Why, page.Coding, "%s, cut off", name)
		must.Equal(t, scan(header("text/html", name), []byte("<head><meta name=robots content=noindex></head>"), 5).Why, page.Coding, "%s that is not", name)
	}
}

// A head of the same meaning in many character encodings.
func TestCharacterEncodings(t *testing.T) {
	t.Parallel()
	const body = `<html><head>%s<title>%s</title><meta name="robots" content="noindex"><meta name="author" content="%s"></head><body>`
	for _, c := range []struct {
		encoding encoding.Encoding
		header   string
		element  string
		author   string
		charset  string
	}{
		{encoding.Nop, "text/html; charset=utf-8", "", "José", "utf-8"},
		{encoding.Nop, "text/html", `<meta charset="utf-8">`, "José", "utf-8"},
		{encoding.Nop, "text/html", "", "Ζωή", "utf-8"},
		{encoding.Nop, "text/html; charset=klingon", `<meta charset=utf-8>`, "Ζωή", "utf-8"},
		{charmap.Windows1252, "text/html; charset=iso-8859-1", "", "José", "windows-1252"},
		{charmap.Windows1252, "text/html", "", "José", "windows-1252"},
		{charmap.Windows1251, "text/html", `<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=windows-1251">`, "Иван", "windows-1251"},
		{charmap.KOI8R, "text/html; charset=KOI8-R", "", "Иван", "koi8-r"},
		{charmap.ISO8859_2, "text/html; charset=iso-8859-2", "", "Łukasz", "iso-8859-2"},
		{japanese.ShiftJIS, "text/html; charset=Shift_JIS", "", "太郎", "shift_jis"},
		{japanese.EUCJP, "text/html", `<meta charset="euc-jp">`, "太郎", "euc-jp"},
		{japanese.ISO2022JP, "text/html; charset=iso-2022-jp", "", "太郎", "iso-2022-jp"},
		{korean.EUCKR, "text/html; charset=euc-kr", "", "민수", "euc-kr"},
		{simplifiedchinese.GBK, "text/html; charset=gb2312", "", "小明", "gbk"},
		{simplifiedchinese.GB18030, "text/html; charset=gb18030", "", "小明", "gb18030"},
		{unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "text/html", "", "Ζωή", "utf-16le"},
		{unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "text/html; charset=utf-8", "", "Ζωή", "utf-16be"},
		{unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "text/html; charset=utf-16le", "", "Ζωή", "utf-16le"},
		{unicode.UTF8BOM, "text/html; charset=iso-8859-1", "", "José", "utf-8"},
	} {
		text := must.Get(c.encoding.NewEncoder().String(fmt.Sprintf(body, c.element, c.author, c.author)))(t)
		for _, piece := range []int{1, 3, 1 << 20} {
			h := scan(header(c.header, ""), []byte(text), piece)
			if got := list(h); !strings.Contains(got, "robots=noindex") || !strings.Contains(got, "author="+c.author) || h.Charset != c.charset || h.Why != page.Whole {
				t.Errorf("%s %s, %d octets at a time: %q in %s (%s)", c.header, c.charset, piece, got, h.Charset, h.Why)
			}
		}
	}
}

// A page in another encoding than it declares is read as declared; where that gives no
// tag at all, the page counts as unread.
func TestWrongCharacterEncodings(t *testing.T) {
	t.Parallel()
	text := `<html><head><meta name="robots" content="noindex"></head>` + strings.Repeat("x", 100)
	for declared, want := range map[string]page.Why{
		"text/html; charset=utf-16":      page.NoMarkup,
		"text/html; charset=iso-2022-kr": page.NoMarkup, // which no client decodes
		"text/html; charset=shift_jis":   page.Whole,
		"text/html; charset=gb18030":     page.Whole,
	} {
		h := scan(header(declared, ""), []byte(text), 50)
		must.True(t, h.Why == want && (want != page.Whole || list(h) == "robots=noindex"), "%s: %+v", declared, h)
	}
}

// Input that is made to hurt: every case ends, with bounded memory, and what could not
// be read is not taken for a page without statements.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	big := 10 << 20
	for name, c := range map[string]struct {
		contentType, coding string
		body                []byte
		want                page.Why
	}{
		"an attribute of 10 MB":     {"text/html", "", []byte(`<head><meta name="robots" content="` + strings.Repeat("a", big)), page.TooLong},
		"a comment of 10 MB":        {"text/html", "", []byte("<head><!--" + strings.Repeat("-", big)), page.TooLong},
		"a title of 10 MB":          {"text/html", "", []byte("<head><title>" + strings.Repeat("<", big)), page.TooLong},
		"a script of 10 MB":         {"text/html", "", []byte("<head><script><!--<script>" + strings.Repeat("x", big)), page.TooLong},
		"10 MB of tags":             {"text/html", "", bytes.Repeat([]byte("<"), big), page.TooLong},
		"nested templates":          {"text/html", "", bytes.Repeat([]byte("<template>"), big/10), page.TooLong},
		"very many elements":        {"text/html", "", []byte("<head>" + strings.Repeat("<meta name=a content=b>", 5000)), page.TooLong},
		"very many attributes":      {"text/html", "", []byte("<head><meta " + strings.Repeat("a=b ", big/4)), page.TooLong},
		"NULs":                      {"text/html", "", make([]byte, big), page.TooLong},
		"a gzip bomb":               {"text/html", "gzip", encode(t, "gzip", make([]byte, 16<<20)), page.TooLong},
		"a brotli bomb":             {"text/html", "br", encode(t, "br", make([]byte, 16<<20)), page.TooLong},
		"a zstd bomb":               {"text/html", "zstd", encode(t, "zstd", make([]byte, 16<<20)), page.TooLong},
		"a deflate of empty blocks": {"text/html", "deflate", emptyBlocks(t, big), page.Coding},
		"a gzip of empty members":   {"text/html", "gzip", bytes.Repeat(encode(t, "gzip", nil), big/20), page.Coding},
		"a gzip without end":        {"text/html", "gzip", append([]byte("\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x00"), bytes.Repeat([]byte("a"), big)...), page.Coding},
		"zstd frames to skip":       {"text/html", "zstd", bytes.Repeat([]byte("\x50\x2a\x4d\x18\x00\x00\x00\x00"), big/8), page.Coding},
	} {
		h := scan(header(c.contentType, c.coding), c.body, 32<<10)
		must.True(t, h.Why == c.want && h.Read <= page.MaxBytes,
			"%s: %q after %d octets, want %q", name, h.Why, h.Read, c.want)
		must.True(t, len(h.Elements) <= 1001, "%s: %d elements", name, len(h.Elements))
	}
}

// emptyBlocks returns a deflate stream without content.
func emptyBlocks(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := must.Get(flate.NewWriter(&b, 1))(t)
	for b.Len() < size/100 {
		must.OK(t, w.Flush())
	}
	return bytes.Repeat(b.Bytes(), 100)
}

// A Scanner is used for each page of a crawl: none may be left behind.
func TestScannersLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 1000 {
		s := page.NewScanner(header("text/html", []string{"", "gzip", "br", "zstd", "deflate"}[i%5]), nil)
		if i%2 == 0 {
			_, _ = s.Write([]byte("<head>\x1f\x8b\x08\x00"))
		}
		s.Finish(i%3 == 0)
		_, _ = s.Write([]byte("late"))
	}
	after := runtime.NumGoroutine()
	must.True(t, after <= before+5, "%d goroutines before, %d after", before, after)
}

func FuzzScanner(f *testing.F) {
	f.Add("text/html", "", []byte(`<head><meta name="robots" content="noindex"><link rel=license type=application/rsl+xml href=/l></head>`), uint16(3))
	f.Add("text/html; charset=utf-16le", "gzip", []byte("\xff\xfe<\x00h\x00"), uint16(1))
	f.Add("application/xhtml+xml", "zstd", []byte("<head><![CDATA[<meta>]]><script type=application/rsl+xml><rsl/></script>"), uint16(100))
	f.Add("text/html", "br", []byte("<template><noscript><meta name=a content=b>"), uint16(7))
	f.Fuzz(func(t *testing.T, contentType, name string, body []byte, piece uint16) {
		h := header(contentType, name)
		if page.Readable("GET", 200, h) == page.Whole && len(body)%2 == 0 {
			body = encode(t, coding.Name([]string{name}), body)
		}
		at := int(piece)%512 + 1
		one, other := scan(h, body, at), scan(h, body, 1<<20)
		must.True(t, one.Why != page.Fault, "the reader failed")
		must.True(t, fmt.Sprint(one.Elements, one.Why) == fmt.Sprint(other.Elements, other.Why) || one.Charset != other.Charset,
			"read in pieces of %d: %+v\nas a whole: %+v", at, one, other)
		for _, e := range one.Elements {
			must.True(t, len(e.Text) <= safetext.MaxExcerpt && e.Line >= 1, "%+v", e)
		}
	})
}

// The memory for a page is bounded, whatever is sent: the windows of the codings are most
// of it. Not parallel, since it counts what is allocated.
func TestHostilePagesTakeLittleMemory(t *testing.T) {
	zeros := make([]byte, 16<<20)
	for name, body := range map[string][]byte{
		"":        []byte(`<head><meta name="robots" content="` + strings.Repeat("a", 10<<20)),
		"gzip":    encode(t, "gzip", zeros),
		"deflate": encode(t, "deflate", zeros),
		"br":      encode(t, "br", zeros),
		"zstd":    encode(t, "zstd", zeros),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h := scan(header("text/html", name), body, 32<<10)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 20<<20 || h.Why != page.TooLong {
			t.Errorf("%q: %d KiB were allocated for %d octets (%s)", name, took>>10, h.Read, h.Why)
		}
	}
}
