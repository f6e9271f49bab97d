package page

import (
	"bufio"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// oddHeads are heads in which a tag is not what it seems, or where it seems.
var oddHeads = []string{
	`<head><meta name=robots content=noindex><link rel=stylesheet href=/a><meta property=og:x content=y></head>`,
	"<head>\n<meta property=\"a>b\" name=robots\n content=\"noindex\">\n<meta name=robots content=\"x\">",
	`<head><meta property="x" title="><meta name=robots content=noindex>"></head>`,
	`<head><link title = "<meta name=robots content=noindex>" rel=x></head>`,
	`<head><link a"b rel="x"><meta name=robots content=none>`,
	`<head><link title=">"><meta name=robots content=noindex>`,
	`<head><link title='><meta name="robots" content="noindex">'></head>`,
	`<head><link a=b="><meta name=robots content=noindex>"></head>`,
	`<head><!-- <link rel=x> --><meta name=robots content=all><!--><link --><meta name=robots content=a>-->`,
	`<head><title><link rel=x></title><meta name=robots content=b><script>"<link>"</script><link></script><meta name=robots content=c>`,
	`<head><style><link></style><meta name=robots content=d><noscript><link rel=x><meta name=robots content=e></noscript></head>`,
	`<head><template><link rel=x><meta name=robots content=f></template><link><meta name=robots content=g></head><meta name=robots content=h>`,
	`<head><noframes><link></noframes><meta name=robots content=i><base href=x>text<link/><meta/name=robots/content=j>`,
	`<head><link <meta name=robots content=k><link rel=x<p><meta name=robots content=l>`,
	`<linkx><meta name=robots content=m>`, `<head><link`, `<head><link rel="`, "<head><link\x00><meta\x00name=robots content=n>",
	`<head><![CDATA[<link>]]><meta name=robots content=o><?php <link ?><meta name=robots content=p></link><meta name=robots content=q>`,
	`<head><link type="application/rsl+xml" rel=license href=/l><link rel=x><script type="application/rsl+xml"><link></script></head>`,
}

// What a skipper leaves out changes nothing: the elements are those of the whole text.
func TestSkipper_LosesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range oddHeads {
		sameElements(t, text)
	}
}

// A site sends a comment as long as a head may be, of nothing but the ends of tags: a
// tokenizer that got them one by one would copy 32 GB.
func TestSkipper_LongTokensAreReadInFewPieces(t *testing.T) {
	t.Parallel()
	text := "<head><!--" + strings.Repeat(">", MaxBytes-100) + "--><meta name=robots content=noindex></head>"
	reads := 0
	r := &reader{head: new(Head), line: 1}
	skip := &skipper{in: bufio.NewReaderSize(strings.NewReader(text), 4<<10), reader: r}
	err := r.elements(readerFunc(func(p []byte) (int, error) {
		reads++
		return skip.Read(p)
	}), skip)
	if err != nil || len(r.head.Elements) != 1 || reads > 200 {
		t.Errorf("%v, %d elements after %d reads", err, len(r.head.Elements), reads)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func FuzzSkipper(f *testing.F) {
	for _, text := range oddHeads {
		f.Add(text)
	}
	f.Fuzz(sameElements)
}

// sameElements compares the elements of a text with those that are read past a skipper, for
// readers that return much, and little.
func sameElements(t *testing.T, text string) {
	text = text[:min(len(text), 4<<10)] // single octets of a long token are copied with each
	for _, xml := range []bool{false, true} {
		wanted := [][]string{nil, {"robots"}}[len(text)%2]
		read := func(from io.Reader, skips bool) (Head, error) {
			r := &reader{head: new(Head), wanted: wanted, xml: xml, line: 1}
			if !skips {
				err := r.elements(from, nil)
				return *r.head, err
			}
			skip := &skipper{in: bufio.NewReaderSize(from, 64), reader: r}
			err := r.elements(skip, skip)
			return *r.head, err
		}
		want, wantErr := read(strings.NewReader(text), false)
		for _, from := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			if got, err := read(from, true); !reflect.DeepEqual(got, want) || err != wantErr {
				t.Fatalf("%q, XHTML %v, wanted %q: %+v, %v; the whole text has %+v, %v", text, xml, wanted, got, err, want, wantErr)
			}
		}
	}
}
