package plan

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/encoding/unicode"

	"heed/internal/base/coding"
	"heed/internal/base/safetext"
)

// MaxURL is the longest URL that is read, in bytes.
const MaxURL = 64 << 10

// The reasons of lines and entries that name no page.
var (
	errLong     = errors.New("it is longer than 64 KiB")
	errControl  = errors.New("it contains a control character, such as a tab between columns")
	errNoObject = errors.New("the line is not a JSON object")
	errArray    = errors.New("the line begins a JSON array; write one object or one URL a line")
	errQuoted   = errors.New("the URL is in quotes; write it without them")
	errMarkup   = errors.New("the line is XML or HTML; name a sitemap by its URL, with --sitemap")
	errHeader   = errors.New("the line looks like the head of a CSV file; write the column of URLs alone, since a comma is part of a URL")
	errNotUTF8  = errors.New("the JSON object is not UTF-8, or has half of a surrogate pair; a line that is the URL itself may have any octets")
	errNoMember = errors.New("the JSON object has no member url that is a text")
)

// gzipMagic begins a gzip file (RFC 1952 §2.3.1).
const gzipMagic = "\x1f\x8b"

// unpacked returns the content of in, which may be a gzip file, and of text in UTF-16 with a byte
// order mark the same in UTF-8.
func unpacked(in io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	if head, _ := b.Peek(len(gzipMagic)); string(head) == gzipMagic {
		text, err := coding.NewReader("gzip", b)
		if err != nil {
			return nil, fmt.Errorf("the gzip file is damaged: %w", err)
		}
		b = bufio.NewReaderSize(text, 64<<10)
	}
	if head, _ := b.Peek(2); string(head) == "\xff\xfe" || string(head) == "\xfe\xff" {
		b = bufio.NewReaderSize(unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewDecoder().Reader(b), 64<<10)
	}
	return b, nil
}

// ReadList reads a list of URLs, which may be a gzip file: one a line, or JSON lines with a
// member url. Empty lines, and those that begin with #, are skipped. It calls add for each
// URL; an error of add is the reason why the line names no page. It is counted, and reading
// goes on until ctx ends.
func ReadList(ctx context.Context, in io.Reader, name string, add func(url string) error, problems *Problems) error {
	b, err := unpacked(in)
	if err != nil {
		return err
	}
	for n := int64(1); ; n++ {
		line, long, err := readLine(b)
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if ctx.Err() != nil {
			return nil
		}
		url, wrong := "", error(errLong)
		if !long {
			url, wrong = ParseLine(line)
		}
		if wrong == nil && url != "" {
			wrong = add(url)
		}
		if wrong != nil && n == 1 && bytes.IndexByte(line, ',') > 0 && !bytes.ContainsAny(line, "/:{[") {
			wrong = errHeader
		}
		if wrong != nil {
			problems.Add(place(name, n), url, wrong.Error())
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine reads a line without its end. The slice is valid until the next call. Of a line
// that is long, more than MaxURL octets, nothing is returned.
func readLine(b *bufio.Reader) (line []byte, long bool, err error) {
	line, err = b.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimSpace(line), false, err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = b.ReadSlice('\n')
	}
	return nil, true, err
}

// ParseLine returns the URL of a line of a list; empty when the line has none.
func ParseLine(line []byte) (url string, err error) {
	switch {
	case len(line) == 0 || line[0] == '#':
		return "", nil
	case line[0] == '[':
		return "", errArray
	case line[0] == '"', line[0] == '\'':
		return "", errQuoted
	case line[0] == '<':
		return "", errMarkup
	case line[0] != '{':
		return string(line), nil
	case safetext.LossyJSON(line):
		return "", errNotUTF8
	}
	var o struct {
		URL *string `json:"url"`
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(line, &o); {
	case errors.As(err, &wrong), err == nil && (o.URL == nil || *o.URL == ""):
		return "", errNoMember
	case err != nil:
		return "", errNoObject
	}
	return *o.URL, nil
}

// Problem is a number of lines or entries that name no page, for one reason.
type Problem struct {
	Reason  string   `json:"reason"`
	Count   int64    `json:"count"`
	Places  []string `json:"places"`            // the first of them, such as FILE:LINE
	Example string   `json:"example,omitempty"` // the first text, where the reason speaks of it and does not have it
}

// String returns the reason with its example.
func (p *Problem) String() string {
	switch {
	case p.Example == "":
		return p.Reason
	case p.Count == 1:
		return strconv.Quote(p.Example) + " " + p.Reason
	}
	return p.Reason + "; the first is " + strconv.Quote(p.Example)
}

// Problems counts what could not be used. The zero value is empty; it is safe for concurrent use.
type Problems struct {
	mu  sync.Mutex
	all []*Problem
}

// Bounds of what is kept of problems.
const (
	maxReasons = 50 // different ones; others are counted together
	maxPlaces  = 3
	maxReason  = 200 // octets of one, and of its example
)

// Add counts a problem at a place. A text with which the reason begins is its example, so that
// reasons that differ in it alone are counted together.
func (p *Problems) Add(place, text, reason string) {
	one := &Problem{Reason: reason, Count: 1, Places: []string{place}}
	if rest, ok := strings.CutPrefix(reason, strconv.Quote(text)+" "); ok {
		one.Reason, one.Example = rest, shorten(text)
	}
	one.Reason = shorten(one.Reason)
	p.Merge(one)
}

// shorten cuts a text that is longer than maxReason.
func shorten(text string) string {
	if len(text) > maxReason {
		return text[:maxReason] + "..."
	}
	return text
}

// Merge adds a problem that was counted elsewhere.
func (p *Problems) Merge(o *Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const others = "other reasons" // the last of a full list
	at := slices.IndexFunc(p.all, func(is *Problem) bool { return is.Reason == o.Reason || is.Reason == others })
	if at < 0 {
		at = len(p.all)
		p.all = append(p.all, &Problem{Reason: o.Reason, Example: o.Example})
	}
	to := p.all[at]
	if at == maxReasons {
		to.Reason, to.Example = others, ""
	}
	to.Count += o.Count
	to.Places = append(to.Places, o.Places[:min(len(o.Places), maxPlaces-len(to.Places))]...)
}

// List returns the problems, the most frequent first; in JSON a list, also when it is empty.
func (p *Problems) List() []Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []Problem{}
	for _, one := range p.all {
		list = append(list, *one)
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// place names a line of a list.
func place(name string, line int64) string { return fmt.Sprintf("%s:%d", name, line) }
