package plan

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html/charset"
)

// Bounds of a sitemap (sitemaps.org/protocol.html).
const (
	MaxSitemap = 50 << 20 // octets, unpacked
	maxNesting = 32
	maxToken   = 1 << 20 // octets of a tag, a text or a comment
)

// The errors of a sitemap that is not read to its end.
var (
	ErrNesting = errors.New("the sitemap is nested too deeply")
	ErrNoMap   = errors.New("it is no sitemap, index of sitemaps, RSS 2.0 or Atom feed")
	errToken   = errors.New("a tag, a text or a comment is longer than 1 MiB")
	errCharset = errors.New("it declares its character encoding more than once")
)

// ReadSitemap reads a sitemap or an index of sitemaps, in XML, as an RSS 2.0 or Atom feed, or as
// text with one URL a line (sitemaps.org), which may be a gzip file and in UTF-16. It calls page with the URL of each page, and
// child with that of each sitemap in an index. What is beyond most octets, such as MaxSitemap,
// is not read: cut is set. With an error, what came before it was read. read is the number of
// octets, unpacked.
func ReadSitemap(in io.Reader, most int, page, child func(url string)) (read int, cut bool, err error) {
	text, err := unpacked(in)
	if err != nil {
		return 0, false, err
	}
	rest := &io.LimitedReader{R: text, N: int64(most) + 1} // the last octet is one too many
	b := bufio.NewReaderSize(rest, 64<<10)
	if bom, _ := b.Peek(3); string(bom) == "\ufeff" {
		_, _ = b.Discard(3)
	}
	for {
		if head, _ := b.Peek(1); len(head) == 0 || !strings.ContainsRune(" \t\r\n", rune(head[0])) {
			break
		}
		_, _ = b.Discard(1)
	}
	if head, _ := b.Peek(1); len(head) == 1 && head[0] == '<' {
		err = readXML(b, page, child)
	} else {
		err = readText(b, rest, page)
	}
	if cut = rest.N == 0; cut {
		err = nil // half an element is at its end
	}
	return most + 1 - int(rest.N), cut, err
}

// readText reads a sitemap that is a list of URLs. The last line of one that is cut is not
// whole.
func readText(b *bufio.Reader, rest *io.LimitedReader, page func(url string)) error {
	for {
		line, long, err := readLine(b)
		switch {
		case err == io.EOF && rest.N == 0:
			return nil
		case long:
			page("") // which is counted
		case len(line) > 0:
			page(string(line))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the sitemap is damaged: %w", err)
		}
	}
}

// The elements whose text is the URL of a page or a sitemap; Atom has it in an attribute. Those of
// extensions, such as <image:loc>, are in other elements.
const (
	pageElement  = "urlset/url/loc"
	childElement = "sitemapindex/sitemap/loc"
	itemElement  = "rss/channel/item/link"
	entryElement = "feed/entry/link"
)

// roots are the outermost elements of those.
var roots = []string{"urlset", "sitemapindex", "rss", "feed"}

// readXML reads the URLs of a sitemap in XML or of a feed. An ampersand that begins no entity of
// XML is itself, as in a URL that was not escaped; a file that declares entities is an error where
// one is used.
func readXML(b *bufio.Reader, page, child func(url string)) error {
	in := &tokens{in: b}
	d := xml.NewDecoder(in)
	d.CharsetReader, d.Strict = in.charset, false
	var open []string // the names of the elements that are open
	var loc *strings.Builder
	place := ""
	for {
		in.left = maxToken
		token, err := d.RawToken()
		if err == io.EOF && len(open) == 0 {
			return nil
		}
		if err != nil {
			line, _ := d.InputPos()
			return fmt.Errorf("the sitemap is not XML from line %d on: %w", line, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(open) == 0 && !slices.Contains(roots, t.Name.Local) {
				return ErrNoMap
			}
			if len(open) == maxNesting {
				return ErrNesting
			}
			open = append(open, t.Name.Local)
			switch place = strings.Join(open, "/"); {
			case place == entryElement:
				if url, ok := alternate(t.Attr); ok {
					page(bounded(url))
				}
			case place == pageElement, place == childElement, place == itemElement && t.Name.Space == "":
				loc = new(strings.Builder)
			}
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != t.Name.Local {
				line, _ := d.InputPos()
				return fmt.Errorf("the sitemap is not XML from line %d on: an element ends that is not open", line)
			}
			if loc != nil && strings.Join(open, "/") == place {
				use := page
				if place == childElement {
					use = child
				}
				use(bounded(strings.TrimSpace(loc.String())))
				loc = nil
			}
			open = open[:len(open)-1]
		case xml.CharData:
			if loc != nil && loc.Len() <= MaxURL {
				loc.Write(t[:min(len(t), MaxURL+1)])
			}
		case xml.Directive:
			d.Strict = d.Strict || strings.Contains(string(t), "ENTITY")
		}
	}
}

// tokens reads what an xml.Decoder reads, which keeps each token in memory, and the readers of
// all character encodings that were declared. It is an io.ByteReader, which a Decoder does not
// read ahead.
type tokens struct {
	in       *bufio.Reader
	left     int // octets of this token that may be read
	declared bool
}

// Read implements io.Reader.
func (t *tokens) Read(p []byte) (int, error) {
	if t.left <= 0 {
		return 0, errToken
	}
	n, err := t.in.Read(p[:min(len(p), t.left)])
	t.left -= n
	return n, err
}

// ReadByte implements io.ByteReader.
func (t *tokens) ReadByte() (byte, error) {
	if t.left <= 0 {
		return 0, errToken
	}
	t.left--
	return t.in.ReadByte()
}

// charset is an xml.Decoder.CharsetReader for one declaration.
func (t *tokens) charset(label string, in io.Reader) (io.Reader, error) {
	if t.declared {
		return nil, errCharset
	}
	t.declared = true
	if strings.HasPrefix(strings.ToLower(label), "utf-16") {
		return in, nil // it was made UTF-8 before
	}
	return charset.NewReaderLabel(label, in)
}

// bounded returns a URL, or an empty one in place of one that is too long.
func bounded(url string) string {
	if len(url) > MaxURL {
		return ""
	}
	return url
}

// alternate returns the URL of a link of an Atom entry, if it leads to its page (RFC 4287
// §4.2.7.2).
func alternate(attributes []xml.Attr) (url string, ok bool) {
	ok = true
	for _, a := range attributes {
		switch a.Name.Local {
		case "href":
			url = strings.TrimSpace(a.Value)
		case "rel":
			ok = a.Value == "alternate" || a.Value == ""
		}
	}
	return url, ok
}
