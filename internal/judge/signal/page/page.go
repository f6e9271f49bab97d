// Package page reads the head of an HTML page while the page passes: its META and LINK
// elements and the licences embedded in it. It undoes the content coding and the character
// encoding in a copy, reads at most MaxBytes decoded octets, and never fails: what it
// could not read is reported.
//
// A Scanner takes the octets of a body as they come, and reports as soon as the head is
// read. It reads tags, not documents, so that nothing has to be kept:
//
//   - The head ends with </head>, with <body>, and with any other tag that an HTML parser
//     does not accept in a head. Elements after that do not count. Text does not end it.
//   - Comments, scripts, styles, titles and templates are skipped.
//   - Elements in a <noscript> of the head count, since clients of a proxy seldom run
//     scripts; other tags in it do not end the head.
//   - Of two attributes of one name the first counts.
//   - The character encoding is that of the byte order mark, of the Content-Type, or of a
//     META within the first 1024 octets, in this order, as in HTML.
package page

import (
	"net/http"
	"slices"
	"strings"

	"heed/internal/base/coding"
	"heed/internal/base/memo"
	"heed/internal/base/structured"
)

// The bounds of reading.
const (
	// MaxBytes is how much of a page is read, decoded.
	MaxBytes = 256 << 10
	// maxSent is how much is taken of a body in a content coding: a coding of empty
	// blocks has no end.
	maxSent = 2 * MaxBytes
	// maxElements is the number of elements that are kept.
	maxElements = 1000
)

// Kind is the kind of an Element.
type Kind uint8

// The kinds.
const (
	Meta    Kind = iota // <meta name= or http-equiv= content=>
	Link                // <link rel="license" type="application/rsl+xml" href=>
	Licence             // <script type="application/rsl+xml">
)

// Element is one element of a head that may state how the page may be used.
type Element struct {
	Kind Kind
	// Name is the name or the http-equiv of a META element, in lower case; empty
	// otherwise.
	Name string
	// Content is the content of a META element, the URL of a link, or the text of an
	// embedded licence.
	Content string
	// Broken is set for a META element of which a part cannot be read, such as one with a
	// quotation mark that is missing.
	Broken bool
	Line   int    // from 1
	Text   string // the tag as the site wrote it, white space joined, at most safetext.MaxExcerpt octets
}

// Why is the reason for which a head was not read, or not to its end. The list is closed
// and its identifiers are stable; the empty one means that it was read.
type Why string

// The reasons.
const (
	Whole      Why = ""
	NoBody     Why = "no-body"    // there is no content: an answer to HEAD, 204, or nothing was sent
	NoPage     Why = "not-a-page" // not 2xx, or not HTML
	Untyped    Why = "untyped"    // the media type is missing, wrong or that of any XML, and the content does not begin as a page does
	Partial    Why = "partial"    // 206: a part of a page in which its head does not end
	Unmodified Why = "unmodified" // 304: the client has the page
	Coding     Why = "coding"     // a content coding that is unknown, or that could not be undone
	TooLong    Why = "too-long"   // the head is longer than MaxBytes, or has too many elements
	Unwanted   Why = "unwanted"   // the settings have no page read
	Unfinished Why = "unfinished" // the body ended before the length it announced, or was not waited for
	NoMarkup   Why = "no-markup"  // no tag was found: it may be in another encoding than declared
	Entities   Why = "entities"   // XHTML with entities of its own, which may contain elements
	Fault      Why = "fault"      // the reader failed
)

// Head is what was read of a page. The zero value is a head that was read and has no
// elements.
type Head struct {
	Elements []Element
	Why      Why    // empty: the head was read to its end
	Charset  string // the character encoding, by its canonical name; empty when nothing was read
	Read     int    // octets, decoded
}

// Readable reports whether a page can be read in the answer to a method with that status
// and header; otherwise it returns the reason.
func Readable(method string, status int, h http.Header) Why {
	switch kind := kindOf(h); {
	case method == http.MethodHead || status == http.StatusNoContent || status == http.StatusResetContent:
		return NoBody
	case status == http.StatusPartialContent && kind == NoPage && !slices.Contains(mediaTypes(h), "multipart/byteranges"):
		return NoPage
	case status == http.StatusPartialContent && !isBeginning(h):
		return Partial
	case status == http.StatusNotModified:
		return Unmodified
	case status < 200 || status > 299:
		return NoPage
	case kind != Whole && !sniffed(h):
		return kind
	case !coding.Known(coding.Name(h.Values("Content-Encoding"))):
		return Coding
	}
	return Whole
}

// isBeginning reports whether a part of a page is its beginning (RFC 9110 §14.4).
func isBeginning(h http.Header) bool {
	unit, part, _ := strings.Cut(strings.TrimSpace(h.Get("Content-Range")), " ")
	return strings.EqualFold(unit, "bytes") && strings.HasPrefix(strings.TrimSpace(part), "0-")
}

// kindOf returns Whole if the media type of an answer is that of a page, and otherwise why it
// is none.
func kindOf(h http.Header) Why {
	kinds := mediaTypes(h)
	switch {
	case slices.ContainsFunc(kinds, isPage):
		return Whole
	case len(kinds) == 0 || slices.ContainsFunc(kinds, isGuessed):
		return Untyped
	}
	return NoPage
}

// sniffed reports whether clients look at the beginning of an answer to learn that it is a page:
// its media type is missing, or wrong.
func sniffed(h http.Header) bool { return kindOf(h) == Untyped }

// beginnings are those of pages whose media type is missing (WHATWG MIME Sniffing §7.1), in
// lower case, and of XHTML.
var beginnings = memo.Expression(`^\x{FEFF}?(?:\s|<!--(?s:.*?)-->|<\?xml[^>]*>)*<(?:!doctype\s+html|html|head|body|script|style|title|meta|link|base|iframe|h1|div|font|table|a|b|br|p)[\s>/]`)

// mediaTypes returns the media types of an answer, in lower case and without parameters.
// There is one, unless the header is wrong: then clients disagree on which one counts.
func mediaTypes(h http.Header) (all []string) {
	for _, line := range h["Content-Type"] {
		for line != "" {
			var member string
			member, line = structured.Cut(line, ',')
			kind, _, _ := strings.Cut(member, ";")
			if kind = strings.ToLower(strings.TrimSpace(kind)); kind != "" {
				all = append(all, kind)
			}
		}
	}
	return all
}

// types are the media types of pages.
var types = []string{"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}

// isPage reports whether clients take a media type for that of a page. Some stop at a space
// or a parenthesis, although there can be none in it.
func isPage(kind string) bool {
	end := strings.IndexAny(kind, " \t(")
	return slices.Contains(types, kind) || end >= 0 && slices.Contains(types, kind[:end])
}

// guessed are media types of which clients guess their meaning (MIME Sniffing §7), and
// those of any XML, which may be XHTML.
var guessed = []string{"unknown/unknown", "application/unknown", "*/*", "text/xml", "application/xml"}

// isGuessed reports whether clients guess the meaning of a media type.
func isGuessed(kind string) bool {
	return slices.Contains(guessed, kind) || !mediaType().MatchString(kind)
}

// mediaType is the syntax of media types (RFC 9110 §8.3.1), in lower case.
var mediaType = memo.Expression("^[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+$")
