package licence

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/html/charset"

	"heed/internal/base/safetext"
	"heed/rules"
)

// Bounds of a document beside MaxBytes.
const (
	maxDepth    = 32
	maxElements = 10_000 // contents and licences; a document with more is read, and is too complex
	maxDemand   = 120    // octets of a demand
)

// The errors of a document that is not read; those of its XML are wrapped.
var (
	ErrTooLong = errors.New("the licence is longer than 1 MiB")
	ErrDoctype = errors.New("the licence has a document type declaration, which is not read")
	ErrNoRSL   = errors.New("the document is not a licence: it has no <rsl> element")
	ErrNothing = errors.New("the licence has no <content> element")
	ErrNesting = errors.New("the licence is nested too deeply")
)

// Parse reads a document. It returns an error for one that cannot be used at all:
// a licence that is half readable may say the opposite of the whole.
func Parse(body []byte) (*Document, error) {
	if len(body) > MaxBytes {
		return nil, ErrTooLong
	}
	document, label, err := parse(body, "")
	if label == "" {
		return document, err
	}
	e, _ := charset.Lookup(label)
	if e == nil {
		return nil, fmt.Errorf("the licence is in the unknown encoding %.40q", label)
	}
	if body, err = io.ReadAll(io.LimitReader(e.NewDecoder().Reader(bytes.NewReader(body)), MaxBytes+1)); err != nil {
		return nil, fmt.Errorf("the licence cannot be decoded as %.40q: %w", label, err)
	}
	if len(body) > MaxBytes {
		return nil, ErrTooLong
	}
	document, _, err = parse(body, label)
	return document, err
}

// Begins reports whether a text is meant to be a licence, and not a robots.txt: its first
// element is rsl.
func Begins(text string) bool {
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(text[:min(len(text), 4<<10)], "\uFEFF")))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch t := token.(type) {
		case xml.StartElement:
			return t.Name.Local == "rsl"
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				return false
			}
		}
	}
}

// parse reads a document in UTF-8. A document that is declared to be in another encoding
// than known is not read: other is that encoding.
func parse(body []byte, known string) (d *Document, other string, err error) {
	p := parser{body: body, xml: xml.NewDecoder(bytes.NewReader(body)), document: &Document{age: DefaultAge}}
	p.xml.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		if label != known {
			other = label
			return nil, errors.ErrUnsupported
		}
		return in, nil
	}
	err = p.parse()
	switch {
	case err != nil:
		return nil, other, err
	case !p.rooted:
		return nil, "", ErrNoRSL
	case len(p.document.contents) == 0:
		return nil, "", ErrNothing
	}
	p.document.paths = rules.NewPaths(p.paths)
	return p.document, "", nil
}

// parser walks through the elements of a document.
type parser struct {
	body     []byte
	xml      *xml.Decoder
	document *Document
	paths    []string // of the contents
	elements int      // contents and licences
	rooted   bool
	depth    int
	offset   int64 // where the token being read begins
	line     int   // its line

	content *content // the one that is open
	licence *licence
	payment *payment
	begin   int64            // of the open licence
	text    *strings.Builder // of the element that is open, when its text is wanted
}

// payment is what one <payment> asks for.
type payment struct{ kind, amount, currency string }

func (p *parser) parse() error {
	for {
		p.offset = p.xml.InputOffset()
		p.line, _ = p.xml.InputPos()
		token, err := p.xml.Token()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("the licence is not XML: %w", err)
		}
		switch t := token.(type) {
		case xml.Directive:
			return ErrDoctype
		case xml.StartElement:
			if p.depth++; p.depth > maxDepth {
				return ErrNesting
			}
			if p.depth == 1 && t.Name.Local != "rsl" {
				return ErrNoRSL
			}
			t.Name.Local = p.named(t.Name.Local, true)
			p.start(t)
		case xml.EndElement:
			p.depth--
			p.end(p.named(t.Name.Local, false))
		case xml.CharData:
			if p.text != nil {
				p.text.Write(t)
			}
		}
	}
}

func (p *parser) start(e xml.StartElement) {
	switch e.Name.Local {
	case "rsl":
		p.rooted = true
		if days, err := strconv.Atoi(attr(e, "max-age")); err == nil && days > 0 {
			p.document.age = min(time.Duration(min(days, 365))*24*time.Hour, MaxAge)
		}
	case "content", "license":
		if p.elements++; p.elements > maxElements {
			p.document.tooMany, p.content, p.licence = true, nil, nil
			return
		}
		p.open(e)
	case "permits", "prohibits":
		p.text = new(strings.Builder)
		if kind := attr(e, "type"); p.licence != nil && kind != "" && kind != "usage" {
			p.demand("only certain " + kind + "s")
			p.text = nil
		} else if p.licence != nil && e.Name.Local == "permits" {
			p.licence.closed = true
		}
	case "payment":
		p.payment = &payment{kind: attr(e, "type")}
	case "amount":
		p.text = new(strings.Builder)
		if p.payment != nil {
			p.payment.currency = attr(e, "currency")
		}
	case "reporting":
		p.demand(strings.TrimSpace("reporting " + attr(e, "type")))
	}
}

// open opens a content or a licence.
func (p *parser) open(e xml.StartElement) {
	switch {
	case e.Name.Local == "content":
		p.document.contents = append(p.document.contents, p.contentOf(e))
		p.content = &p.document.contents[len(p.document.contents)-1]
	case p.content != nil:
		p.begin, p.licence = p.offset, &licence{line: p.line}
	}
}

func (p *parser) end(name string) {
	switch name {
	case "content":
		p.content = nil
	case "license":
		if p.content != nil && p.licence != nil {
			p.licence.text = safetext.Excerpt(string(p.body[p.begin:p.xml.InputOffset()]))
			p.content.licences = append(p.content.licences, *p.licence)
		}
		p.licence = nil
	case "permits", "prohibits":
		if p.licence != nil && p.text != nil {
			p.usages(name)
		}
		p.text = nil
	case "amount":
		if p.payment != nil && p.text != nil {
			p.payment.amount = strings.TrimSpace(p.text.String())
		}
		p.text = nil
	case "payment":
		if p.payment != nil {
			p.demand(p.payment.demand())
		}
		p.payment = nil
	}
}

// named returns the name of an element. One that is clearly meant for prohibits is returned as
// that; another that may be meant for it or for permits makes the open licence unclear.
func (p *parser) named(name string, begins bool) string {
	if name == "permits" || name == "prohibits" || p.licence == nil {
		return name
	}
	low := strings.ToLower(name)
	meant := ""
	for _, one := range [...]string{"prohibits", "permits"} {
		if len(low) <= len(one)+2 && rules.Distance(low, one) <= 2 {
			meant = one
		}
	}
	if meant == "" {
		return name
	}
	if begins {
		p.slip(OddElement, name, meant)
	}
	if low == "prohibits" || low == "prohibit" {
		return "prohibits"
	}
	p.licence.unclear = true
	return name
}

// slip keeps a slip.
func (p *parser) slip(kind SlipKind, text, instead string) {
	if d := p.document; len(d.slips) < maxSlips {
		d.slips = append(d.slips, Slip{p.line, kind, safetext.Clip(text, maxDemand), instead})
	}
}

// usages adds the usages in the text of the open permits or prohibits to the open licence.
func (p *parser) usages(name string) {
	l := p.licence
	tokens := strings.FieldsFunc(p.text.String(), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if name == "permits" {
		l.permits = p.known(tokens, l.permits, UnknownPermission)
		return
	}
	for i := range tokens {
		tokens[i] = strings.ToLower(tokens[i])
	}
	if len(tokens) == 0 {
		l.unclear = true
		p.slip(UnknownProhibited, "", "")
	}
	l.prohibits = p.known(tokens, l.prohibits, UnknownProhibited)
}

// known returns the usages that tokens and those before mean, each once.
func (p *parser) known(tokens, before []string, unknown SlipKind) []string {
	meant := map[string]bool{}
	for _, t := range tokens {
		today, ok := words[t]
		switch {
		case !ok:
			p.licence.unclear = p.licence.unclear || unknown == UnknownProhibited
			p.slip(unknown, t, "")
			continue
		case today != t:
			p.slip(EarlierWord, t, today)
		}
		meant[today] = true
	}
	all := []string{string(Search), string(AIInput), string(AITrain), string(AIIndex), "ai-all", "all"}
	return slices.DeleteFunc(all, func(t string) bool { return !meant[t] && !slices.Contains(before, t) })
}

// demand adds what the open licence asks for.
func (p *parser) demand(what string) {
	if l := p.licence; l != nil && what != "" {
		all := strings.TrimPrefix(l.demands+", "+safetext.Clip(what, maxDemand), ", ")
		l.demands = safetext.Clip(all, safetext.MaxExcerpt)
	}
}

// demand returns what a payment asks for; empty when it is nothing that money or a
// contract is needed for (RSL §3.7).
func (p *payment) demand() string {
	free := p.kind == "" || p.kind == "free"
	amount, err := strconv.ParseFloat(p.amount, 64)
	switch {
	case p.kind == "attribution" && p.amount == "":
		return ""
	case free && (p.amount == "" || err == nil && amount == 0):
		return ""
	}
	price := strings.TrimSpace(p.amount + " " + p.currency)
	if price != "" {
		price = ", " + price
	}
	return "payment type=" + strconv.Quote(cmp.Or(p.kind, "free")) + price
}

// contentOf reads a <content> element. Its url is a path or an absolute URL; one that is
// missing or is neither is the whole site.
func (p *parser) contentOf(e xml.StartElement) content {
	c := content{server: safetext.Clip(attr(e, "server"), maxDemand), line: p.line}
	c.text = safetext.Excerpt(string(p.body[p.offset:p.xml.InputOffset()]))
	path := attr(e, "url")
	if o, at := Located(path); o != (rules.Origin{}) {
		c.origin, path = o, at
	}
	p.paths = append(p.paths, cmp.Or(path, "/"))
	return c
}

// Located returns the origin of an absolute URL and what follows it; the zero Origin for any
// other text.
func Located(text string) (o rules.Origin, path string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return rules.Origin{}, ""
	}
	if o, err = rules.OriginOf(u); err != nil {
		return rules.Origin{}, ""
	}
	_, rest, _ := strings.Cut(text, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		path = rest[i:]
	}
	return o, path
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}
