package usage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"heed/internal/judge/signal/page"
	"heed/internal/tools/testkit/must"
)

var html = http.Header{"Content-Type": {"text/html; charset=utf-8"}}

// What is read ahead of a page changes none of its octets, nor how it ends, however it
// comes.
func TestBody_OctetsAreTheSame(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	pages := []string{
		"", "x", "<head></head>", "<head><title>t</title></head><body>" + strings.Repeat("text ", 20_000),
		strings.Repeat("<meta name=a content=b>", 20_000), "<head><meta content='" + strings.Repeat("x", 400<<10),
	}
	forms := map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "end with data": iotest.DataErrReader,
		"broken": func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) },
	}
	for _, p := range pages {
		for name, form := range forms {
			b := &Body{Site: io.NopCloser(form(strings.NewReader(p)))}
			head := b.ReadHead(t.Context(), page.NewScanner(html, nil), true)
			got, err := io.ReadAll(iotest.OneByteReader(b))
			must.Equal(t, string(got), p, "%s: %d octets of %d", name, len(got), len(p))
			if want := name == "broken"; errors.Is(err, broken) != want || err != nil && !want {
				t.Errorf("%s, %d octets: the body ends with %v", name, len(p), err)
			}
			if name == "broken" && p == "x" && head.Why != page.Unfinished {
				t.Errorf("a page that broke off: %q", head.Why)
			}
		}
	}
}

// What has come of a page is delivered, although its head was not waited for.
func TestBody_ASlowPageIsDeliveredAsItComes(t *testing.T) {
	t.Parallel()
	r, site := io.Pipe()
	b := &Body{Site: r}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	go site.Write([]byte("<head><title>first"))
	head := b.ReadHead(ctx, page.NewScanner(html, nil), true)
	must.True(t, head.Why == page.Unfinished, "the head: %+v", head)
	buf := make([]byte, 100)
	n, err := b.Read(buf)
	must.True(t, string(buf[:n]) == "<head><title>first" && err == nil, "%q, %v", buf[:n], err)
	go func() {
		site.Write([]byte(" second"))
		site.Write([]byte(" third"))
		site.Close()
	}()
	rest, err := io.ReadAll(b)
	must.True(t, string(rest) == " second third" && err == nil, "%q, %v", rest, err)
}

// endless is a body without an end that counts.
type endless struct {
	read   atomic.Int64
	closed atomic.Bool
}

func (e *endless) Read(p []byte) (int, error) {
	if e.closed.Load() {
		return 0, errors.New("read after Close")
	}
	clear(p)
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func (e *endless) Close() error { e.closed.Store(true); return nil }

// A page without an end costs a bounded number of octets, before it is delivered or dropped.
func TestBody_APageWithoutAnEnd(t *testing.T) {
	t.Parallel()
	site := &endless{}
	b := &Body{Site: site}
	head := b.ReadHead(t.Context(), page.NewScanner(html, nil), true)
	must.True(t, head.Why != page.Whole && site.read.Load() <= 4*page.MaxBytes,
		"%q after %d octets", head.Why, site.read.Load())
	before := site.read.Load()
	if b.Drop(); !site.closed.Load() || site.read.Load()-before > maxDrop+64<<10 {
		t.Errorf("closed: %v, %d octets dropped", site.closed.Load(), site.read.Load()-before)
	}
}

func TestBody_AShortPageIsDroppedToItsEnd(t *testing.T) {
	t.Parallel()
	text := bytes.NewBufferString("<head></head>" + strings.Repeat("x", 100<<10))
	b := &Body{Site: io.NopCloser(text)}
	b.ReadHead(t.Context(), page.NewScanner(html, nil), true)
	if b.Drop(); text.Len() != 0 {
		t.Errorf("%d octets are left: the connection is lost", text.Len())
	}
}
