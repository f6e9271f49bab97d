package plan

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
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
	ErrNoMap   = errors.New("it is neither a sitemap nor an index of sitemaps")
	errToken   = errors.New("a tag, a text or a comment is longer than 1 MiB")
	errCharset = errors.New("it declares its character encoding more than once")
)

// ReadSitemap reads a sitemap or an index of sitemaps, in XML or as text with one URL a line
// (sitemaps.org), which may be a gzip file. It calls page with the URL of each page, and
// child with that of each sitemap in an index. What is beyond most octets, such as MaxSitemap,
// is not read: cut is set. With an error, what came before it was read.
func ReadSitemap(in io.Reader, most int, page, child func(url string)) (cut bool, err error) {
	text, err := unpacked(in)
	if err != nil {
		return false, err
	}
	rest := &io.LimitedReader{R: text, N: int64(most) + 1} // the last octet is one too many
	b := bufio.NewReaderSize(rest, 64<<10)
	if bom, _ := b.Peek(3); string(bom) == "\ufeff" {
		_, _ = b.Discard(3)
	}
	for {
		head, _ := b.Peek(1)
		if len(head) == 0 || !strings.ContainsRune(" \t\r\n", rune(head[0])) {
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
	return cut, err
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

// readXML reads the <loc> elements of <url> and <sitemap> elements. Those of extensions, such
// as <image:loc>, are in other elements. Entities beyond those of XML are not expanded.
func readXML(b *bufio.Reader, page, child func(url string)) error {
	in := &tokens{in: b}
	d := xml.NewDecoder(in)
	d.CharsetReader = in.charset
	var open []string // the names of the elements that are open
	var loc *strings.Builder
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
			if len(open) == 0 && t.Name.Local != "urlset" && t.Name.Local != "sitemapindex" {
				return ErrNoMap
			}
			if len(open) == maxNesting {
				return ErrNesting
			}
			if open = append(open, t.Name.Local); t.Name.Local == "loc" && len(open) == 3 {
				loc = new(strings.Builder)
			}
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != t.Name.Local {
				line, _ := d.InputPos()
				return fmt.Errorf("the sitemap is not XML from line %d on: an element ends that is not open", line)
			}
			if loc != nil && len(open) == 3 {
				locEnds(open, strings.TrimSpace(loc.String()), page, child)
				loc = nil
			}
			open = open[:len(open)-1]
		case xml.CharData:
			if loc != nil && loc.Len() <= MaxURL {
				loc.Write(t[:min(len(t), MaxURL+1)])
			}
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
	return charset.NewReaderLabel(label, in)
}

// locEnds passes on the URL of an entry.
func locEnds(open []string, url string, page, child func(url string)) {
	if len(url) > MaxURL {
		url = ""
	}
	switch {
	case open[0] == "urlset" && open[1] == "url":
		page(url)
	case open[0] == "sitemapindex" && open[1] == "sitemap":
		child(url)
	}
}
