package page

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/text/encoding/charmap"

	"heed/internal/base/safetext"
)

// reader collects the elements of one head.
type reader struct {
	head   *Head
	wanted []string // names of META elements; nil: all
	latin  bool     // the text is in windows-1252 and was not decoded, since markup is ASCII
	xml    bool     // the page is XHTML
	sniff  bool     // the media type does not say that it is a page
	line   int      // of the token
	tag    []byte   // the start tag as it was sent, or its beginning
	tags   int      // so far

	template int  // templates that are open
	noscript bool // one is open
	licence  bool // the text that follows is that of the last element, an embedded licence
}

// The errors of heads that are not read to their end.
var (
	errMany     = errors.New("too many elements")
	errEntities = errors.New("entities are declared")
)

// inHead are the tags that do not end a head.
var inHead = []string{
	"html", "head", "meta", "link", "title", "base", "basefont", "bgsound", "script", "style",
	"noscript", "noframes", "template",
}

// elements reads tags until the head ends. nil is the end of the head, io.EOF that of
// the text.
func (r *reader) elements(text io.Reader) error {
	z := html.NewTokenizer(text)
	z.SetMaxBuf(MaxBytes + 1)
	z.AllowCDATA(r.xml)
	for {
		kind := z.Next()
		raw := z.Raw()
		ended := false
		switch kind {
		case html.ErrorToken:
			return z.Err()
		case html.TextToken:
			if r.licence {
				r.head.Elements[len(r.head.Elements)-1].Content += r.decoded(raw)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			ended = r.startTag(z, raw, r.xml && kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			ended = r.endTag(z)
		case html.DoctypeToken:
			if r.xml && bytes.IndexByte(raw, '[') >= 0 {
				return errEntities
			}
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

// startTag reads a start tag and reports whether the head has ended before it. An empty
// element has no content (XML 1.0 §3.1); there is none in HTML.
func (r *reader) startTag(z *html.Tokenizer, raw []byte, empty bool) (ended bool) {
	r.tags++
	name := r.tagName(raw[1:])
	if empty {
		z.NextIsNotRawText()
	}
	switch {
	case name == "template":
		if !empty {
			r.template++
		}
	case r.template > 0:
	case name == "noscript":
		r.noscript = !empty
		z.NextIsNotRawText()
	case name == "meta", name == "link", name == "script":
		if r.mayMatter(name, raw) {
			r.tag = append(r.tag[:0], raw[:min(len(raw), 2*safetext.MaxExcerpt)]...) // reading attributes changes it
			if _, more := z.TagName(); more {
				a := attributesOf(z)
				r.element(name, &a)
				r.licence = r.licence && !empty
			}
		}
	case name == "" && r.xml:
		text := localName(raw[1:])
		return slices.ContainsFunc(bodies, func(body string) bool { return nameIs(text, body) })
	case name == "" && !r.noscript:
		return true
	}
	return false
}

// bodies are the tags that end the head of an XHTML page. No other one does: an XML parser
// does not close an element for another one.
var bodies = []string{"body", "frameset"}

// localName returns text, which begins with the name of a tag, without the prefix of that
// name (Namespaces in XML §4).
func localName(text []byte) []byte {
	if colon := bytes.IndexByte(text[:nameSize(text)], ':'); colon >= 0 {
		return text[colon+1:]
	}
	return text
}

// nameSize returns the length of the name of a tag (WHATWG HTML §13.2.5.8).
func nameSize(text []byte) int {
	if end := bytes.IndexAny(text, " \n\r\t\f/>"); end >= 0 {
		return end
	}
	return len(text)
}

// nameIs reports whether text begins with a tag of that name.
func nameIs(text []byte, name string) bool {
	return len(name) == nameSize(text) && equalFold(text, name)
}

// tagName returns the name of the tag whose text after the angle bracket is given, if it is
// one of inHead; else the empty string.
func (r *reader) tagName(text []byte) string {
	if r.xml {
		text = localName(text)
	}
	size := nameSize(text)
	for _, name := range inHead {
		if len(name) == size && equalFold(text, name) {
			return name
		}
	}
	return ""
}

// mayMatter reports whether a tag can be one of an element that is kept, by the words in it:
// most are not, and reading attributes is most of the cost of a tag: a head of 40 META and
// 40 LINK elements takes 145 us instead of 200. A character reference can hide a word, but
// not the name of an attribute.
func (r *reader) mayMatter(name string, raw []byte) bool {
	switch {
	case bytes.IndexByte(raw, '&') >= 0:
		return true
	case name != "meta":
		return containsFold(raw, "rsl")
	case !slices.ContainsFunc(nameAttributes, func(name string) bool { return containsFold(raw, name) }):
		return false
	}
	return r.wanted == nil || slices.ContainsFunc(r.wanted, func(wanted string) bool { return containsFold(raw, wanted) })
}

// containsFold reports whether text contains word, which is in lower case, in any case. It
// is true for a word that is not ASCII.
func containsFold(text []byte, word string) bool {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return true
		}
	}
	for i := range max(0, len(text)-len(word)+1) {
		if equalFold(text[i:], word) {
			return true
		}
	}
	return false
}

// equalFold reports whether text begins with word, which is ASCII in lower case, in any
// case. text is not shorter.
func equalFold(text []byte, word string) bool {
	for i := range len(word) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// endTag reads an end tag and reports whether it ends the head.
func (r *reader) endTag(z *html.Tokenizer) (ended bool) {
	name, _ := z.TagName()
	r.tags++
	if r.xml {
		name = localName(name)
	}
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

// nameAttributes are the attributes that have the name of a META element.
var nameAttributes = []string{"name", "http-equiv", "property", "itemprop"}

// attributeNames are the attributes that matter, those with a name first.
var attributeNames = [...]string{"name", "http-equiv", "property", "content", "value", "rel", "type", "href"}

// synonyms are attributes that are read as others: of two that mean the same the first counts.
var synonyms = map[string]string{"itemprop": "property", "contents": "value"}

// attributes are those of a tag, in the order of attributeNames; nil for one that is missing.
// They are valid until the next token.
type attributes [len(attributeNames)][]byte

func (a *attributes) get(name string) []byte { return a[slices.Index(attributeNames[:], name)] }

// attributesOf reads the attributes of a tag; of two of one name the first counts.
func attributesOf(z *html.Tokenizer) (a attributes) {
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		name := string(key)
		if i := slices.Index(attributeNames[:], cmp.Or(synonyms[name], name)); i >= 0 && a[i] == nil {
			if value == nil {
				value = []byte{}
			}
			a[i] = value
		}
	}
	return a
}

// element keeps an element if it may state how the page may be used.
func (r *reader) element(tag string, a *attributes) {
	e := Element{Line: r.line}
	switch tag {
	case "meta":
		if !r.meta(&e, a) {
			return
		}
	case "link":
		e.Kind, e.Content = Link, r.decoded(bytes.TrimSpace(a.get("href")))
		relations := strings.Fields(strings.ToLower(string(a.get("rel"))))
		if e.Content == "" || !isLicence(a.get("type")) || !slices.Contains(relations, "license") {
			return
		}
	case "script":
		if e.Kind = Licence; !isLicence(a.get("type")) {
			return
		}
		r.licence = true
	}
	e.Text = safetext.Excerpt(r.decoded(r.tag))
	r.head.Elements = append(r.head.Elements, e)
}

// meta reads a META element and reports whether it is wanted. Slips that hide it from an HTML
// parser are forgiven: quotation marks that are none of HTML, several names, an attribute of
// another name.
func (r *reader) meta(e *Element, a *attributes) bool {
	var name []byte
	for _, attribute := range []string{"name", "http-equiv", "property"} {
		if len(name) == 0 {
			name = bytes.TrimSpace(a.get(attribute))
		}
	}
	e.Name = strings.ToLower(r.decoded(name))
	if r.wanted != nil && !slices.Contains(r.wanted, e.Name) {
		e.Name = r.oneOf(e.Name)
	}
	content := a.get("content")
	if content == nil {
		content = a.get("value")
	}
	e.Content = r.decoded(content)
	e.Broken = content == nil && r.wanted != nil && containsFold(r.tag, "index")
	return e.Name != "" && (content != nil || e.Broken)
}

// oneOf returns the first wanted name among the words of a name; empty when there is none.
func (r *reader) oneOf(name string) string {
	for word := range strings.FieldsFuncSeq(name, func(c rune) bool {
		return unicode.IsSpace(c) || strings.ContainsRune(",;|\"'`=", c) || unicode.In(c, unicode.Pi, unicode.Pf, unicode.Cf) || c == '\u201e'
	}) {
		if word = strings.Trim(word, ":"); slices.Contains(r.wanted, word) {
			return word
		}
	}
	return ""
}

func isLicence(mediaType []byte) bool {
	mediaType, _, _ = bytes.Cut(mediaType, []byte(";"))
	return strings.EqualFold(string(bytes.TrimSpace(mediaType)), "application/rsl+xml")
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
