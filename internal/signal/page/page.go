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

	"heed/internal/coding"
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
	// MaxQuote is the length of the longest text of an element that is kept for people.
	MaxQuote = 400
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
	Line    int    // from 1
	Text    string // the tag as the site wrote it, white space joined, at most MaxQuote octets
}

// Why is the reason for which a head was not read, or not to its end. The list is closed
// and its identifiers are stable; the empty one means that it was read.
type Why string

// The reasons.
const (
	Whole      Why = ""
	NoBody     Why = "no-body"    // there is no content: an answer to HEAD, 204, or nothing was sent
	NoPage     Why = "not-a-page" // not 2xx, or not HTML
	Untyped    Why = "untyped"    // the answer has no media type: clients guess whether it is HTML
	Partial    Why = "partial"    // 206: a part of a page
	Unmodified Why = "unmodified" // 304: the client has the page
	Coding     Why = "coding"     // a content coding that is unknown, or that could not be undone
	TooLong    Why = "too-long"   // the head is longer than MaxBytes, or has too many elements
	Unwanted   Why = "unwanted"   // the settings have no page read
	Unfinished Why = "unfinished" // the body ended before the length it announced, or was not waited for
	NoMarkup   Why = "no-markup"  // no tag was found: it may be in another encoding than declared
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
	kinds := mediaTypes(h)
	switch {
	case method == http.MethodHead || status == http.StatusNoContent || status == http.StatusResetContent:
		return NoBody
	case status == http.StatusPartialContent:
		return Partial
	case status == http.StatusNotModified:
		return Unmodified
	case status < 200 || status > 299:
		return NoPage
	case len(kinds) == 0:
		return Untyped
	case !slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(types, kind) }):
		return NoPage
	case !coding.Known(coding.Name(h.Values("Content-Encoding"))):
		return Coding
	}
	return Whole
}

// mediaTypes returns the media types of an answer, without parameters. There is one, unless
// the header is wrong: then clients disagree on which one counts.
func mediaTypes(h http.Header) (all []string) {
	for _, line := range h["Content-Type"] {
		for member := range strings.SplitSeq(line, ",") { // a quoted comma gives a type more that is none
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
