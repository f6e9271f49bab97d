package page

import (
	"bufio"
	"bytes"
	"slices"

	"golang.org/x/net/html"
)

// skipper is the text of a head for a html.Tokenizer, without the META and LINK tags that
// cannot be elements, and without text between tags: a tokenizer reads every attribute,
// which is most of the cost of a head, and most tags do not matter. It leaves out only what
// is surely one whole tag, and only where the tokenizer expects one.
type skipper struct {
	in     *bufio.Reader
	reader *reader
	free   bool // the tokenizer is between two tags, outside raw text
	least  int  // octets that the next Read of the same token returns
}

// between notes that the tokenizer has returned a token, of which the tag name is given if
// it is a start tag. It has read no further than that token if nothing is buffered.
func (s *skipper) between(z *html.Tokenizer, kind html.TokenType, name string) {
	switch kind {
	case html.EndTagToken, html.CommentToken, html.DoctypeToken:
		s.free = true
	case html.StartTagToken, html.SelfClosingTagToken:
		s.free = slices.Contains(notRaw, name)
	default:
		s.free = false
	}
	s.free = s.free && len(z.Buffered()) == 0
	s.least = 0
}

// notRaw are tags of a head after which the next tag begins a token.
var notRaw = []string{"html", "head", "meta", "link", "base"}

// Read implements io.Reader. It returns the text up to the next angle bracket, so that the
// tokenizer does not read ahead. A tokenizer copies its token with each Read: for a long
// one each Read returns twice as much as the one before.
func (s *skipper) Read(p []byte) (int, error) {
	for {
		if _, err := s.in.Peek(1); err != nil {
			return 0, err
		}
		if !s.free || !s.skip() {
			break
		}
	}
	s.free = false
	next, _ := s.in.Peek(min(s.in.Buffered(), len(p)))
	from := min(s.least, len(next))
	if end := bytes.IndexByte(next[from:], '>'); end >= 0 {
		next = next[:from+end+1]
	}
	n := copy(p, next)
	s.least = 2 * n
	_, _ = s.in.Discard(n)
	return n, nil
}

// skip leaves out the text before the next tag, and that tag if it cannot be an element. It
// reports whether it left out anything.
func (s *skipper) skip() bool {
	next, _ := s.in.Peek(s.in.Buffered())
	size := bytes.IndexByte(next, '<')
	if size < 0 {
		size = len(next)
	}
	if tag := wholeTag(next[size:]); tag != nil {
		name := s.reader.tagName(tag[1:])
		if (name == "meta" || name == "link") && !s.reader.mayMatter(name, tag) {
			s.reader.tags++
			size += len(tag)
		}
	}
	s.reader.line += bytes.Count(next[:size], []byte("\n"))
	_, _ = s.in.Discard(size)
	return size > 0
}

// wholeTag returns the start tag at the beginning of text; nil when that is none, is not
// complete, or may be longer than it seems. A tag ends with the first right angle bracket
// outside a quoted value. There is none in a value if the last quotation mark before it
// does not follow an equals sign: such a mark begins no value (WHATWG HTML §13.2.5.35 to
// §13.2.5.39).
func wholeTag(text []byte) []byte {
	end := bytes.IndexByte(text, '>')
	if end < 0 {
		return nil
	}
	tag := text[:end+1]
	if bytes.IndexByte(tag, '\'') >= 0 {
		return nil
	}
	if mark := bytes.LastIndexByte(tag, '"'); mark >= 0 {
		if before := bytes.TrimRight(tag[:mark], " \n\r\t\f"); before[len(before)-1] == '=' {
			return nil
		}
	}
	return tag
}
