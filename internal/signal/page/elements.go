package page

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/text/encoding/charmap"
)

// reader collects the elements of one head.
type reader struct {
	head   *Head
	wanted []string // names of META elements; nil: all
	latin  bool     // the text is in windows-1252 and was not decoded, since markup is ASCII
	line   int      // of the token
	tags   int      // so far

	template int  // templates that are open
	noscript bool // one is open
	licence  bool // the text that follows is that of the last element, an embedded licence
}

// errMany is the error for a head of more than maxElements elements.
var errMany = errors.New("too many elements")

// inHead are the tags that do not end a head.
var inHead = []string{
	"html", "head", "meta", "link", "title", "base", "basefont", "bgsound", "script", "style",
	"noscript", "noframes", "template",
}

// elements reads tags until the head ends. nil is the end of the head, io.EOF that of
// the text.
func (r *reader) elements(text io.Reader, contentType string) error {
	z := html.NewTokenizer(text)
	z.SetMaxBuf(MaxBytes + 1)
	z.AllowCDATA(strings.Contains(strings.ToLower(contentType), "xhtml"))
	for {
		kind := z.Next()
		raw := z.Raw()
		ended := false
		switch kind {
		case html.ErrorToken:
			return z.Err()
		case html.TextToken:
			r.text(z)
		case html.StartTagToken, html.SelfClosingTagToken:
			ended = r.startTag(z, raw)
		case html.EndTagToken:
			ended = r.endTag(z)
		}
		r.line += bytes.Count(raw, []byte("\n"))
		switch {
		case ended:
			return nil
		case len(r.head.Elements) > maxElements:
			return errMany
		}
	}
}

// startTag reads a start tag and reports whether the head has ended before it.
func (r *reader) startTag(z *html.Tokenizer, raw []byte) (ended bool) {
	quoted := ""
	if len(raw) > 5 && (raw[1]|0x20 == 'm' || raw[1]|0x20 == 'l' || raw[1]|0x20 == 's') {
		quoted = r.decoded(raw[:min(len(raw), 2*MaxQuote)]) // reading attributes changes it
	}
	octets, more := z.TagName()
	name := string(octets)
	r.tags++
	switch {
	case name == "template":
		r.template++
	case r.template > 0:
	case name == "noscript":
		r.noscript = true
		z.NextIsNotRawText()
	case name == "meta" && more, name == "link" && more, name == "script" && more:
		r.element(name, attributes(z), quoted)
	case !r.noscript && !slices.Contains(inHead, name):
		return true
	}
	return false
}

// endTag reads an end tag and reports whether it ends the head.
func (r *reader) endTag(z *html.Tokenizer) (ended bool) {
	name, _ := z.TagName()
	r.tags++
	switch string(name) {
	case "template":
		r.template = max(0, r.template-1)
	case "noscript":
		r.noscript = false
	case "script":
		r.licence = false
	case "head", "body", "html":
		return r.template == 0
	}
	return false
}

// text keeps the text of an embedded licence.
func (r *reader) text(z *html.Tokenizer) {
	if r.licence {
		r.head.Elements[len(r.head.Elements)-1].Content += r.decoded(z.Raw())
	}
}

// attributes returns the attributes of a tag; of two of one name the first.
func attributes(z *html.Tokenizer) map[string]string {
	all := make(map[string]string, 4)
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		if _, known := all[string(key)]; !known && len(all) < maxAttributes {
			all[string(key)] = string(value)
		}
	}
	return all
}

// maxAttributes is the number of attributes of one tag that are looked at.
const maxAttributes = 100

// element keeps an element if it may state how the page may be used.
func (r *reader) element(tag string, attr map[string]string, text string) {
	e := Element{Line: r.line, Text: quote(text)}
	switch tag {
	case "meta":
		e.Name = strings.ToLower(strings.TrimSpace(attr["name"]))
		if e.Name == "" {
			e.Name = strings.ToLower(strings.TrimSpace(attr["http-equiv"]))
		}
		content, has := attr["content"]
		if !has || e.Name == "" || r.wanted != nil && !slices.Contains(r.wanted, e.Name) {
			return
		}
		e.Content = r.decoded([]byte(content))
	case "link":
		e.Kind, e.Content = Link, r.decoded([]byte(strings.TrimSpace(attr["href"])))
		relations := strings.Fields(strings.ToLower(attr["rel"]))
		if !slices.Contains(relations, "license") || !isLicence(attr["type"]) || e.Content == "" {
			return
		}
	case "script":
		if e.Kind = Licence; !isLicence(attr["type"]) {
			return
		}
		r.licence = true
	}
	r.head.Elements = append(r.head.Elements, e)
}

func isLicence(mediaType string) bool {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), "application/rsl+xml")
}

// decoded returns text in UTF-8.
func (r *reader) decoded(text []byte) string {
	if r.latin && !utf8.Valid(text) {
		if s, err := charmap.Windows1252.NewDecoder().Bytes(text); err == nil {
			return string(s)
		}
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// quote returns s with its white space joined, at most MaxQuote octets of it.
func quote(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= MaxQuote {
		return s
	}
	size := MaxQuote
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:size]
}
