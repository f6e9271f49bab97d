package cache

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// encoded are the forms of text by their codings; two for deflate.
func encoded(text string) map[string][]byte {
	forms := map[string][]byte{"gzip": zipped(text)}
	with := func(name string, open func(io.Writer) io.WriteCloser) {
		var b bytes.Buffer
		w := open(&b)
		_, _ = io.WriteString(w, text)
		w.Close()
		forms[name] = b.Bytes()
	}
	with("deflate", func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	with("deflate, bare", func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 9); return f })
	with("br", func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 2) })
	with("zstd", func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z })
	return forms
}

func sends(coding string, body []byte) http.HandlerFunc {
	coding, _, _ = strings.Cut(coding, ",")
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", coding)
		_, _ = w.Write(body)
	}
}

// Half a file may be another file: wherever it ends, it is a failure.
func TestHeed_TruncatedCodingsAreFailures(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 3000)
	for i := range noise {
		noise[i] = 'a' + byte(rand.IntN(26))
	}
	for form, body := range encoded(string(noise)) {
		name, _, _ := strings.Cut(form, ",")
		for n := 1; n < len(body); n += 1 + n/16 {
			got, err := decode(name, body[:n], maxBody)
			must.True(t, err != nil, "%s, %d of %d octets: no error, %d decoded", form, n, len(body), len(got))
		}
		for _, n := range []int{1, 2, 4} {
			_, err := decode(name, body[:len(body)-n], maxBody)
			must.True(t, err != nil, "%s, all but %d octets: no error", form, n)
		}
	}
}

// Four MiB are read of a bomb, whatever it is packed in.
func TestHeed_BombsAreCutAtTheLimit(t *testing.T) {
	t.Parallel()
	line := "Disallow: /x\n"
	bomb := encoded(strings.Repeat(line, (maxBody+1<<20)/len(line)))
	for coding, body := range bomb {
		a := fetch(t, serve(t, sends(coding, body)))
		must.True(t, a.err == nil && len(a.body) == maxBody/len(line)*len(line) && a.note != "",
			"%s (%d KiB): %d bytes, note %q, err %v", coding, len(body)>>10, len(a.body), a.note, a.err)
	}
}

func TestHeed_AZstdWindowIsBounded(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := must.Get(zstd.NewWriter(&b, zstd.WithWindowSize(64<<20)))(t)
	_, _ = io.WriteString(w, file)
	w.Flush()
	_, _ = io.WriteString(w, strings.Repeat(file, 1000))
	w.Close()
	a := fetch(t, serve(t, sends("zstd", b.Bytes())))
	must.True(t, a.err != nil, "a window of 64 MiB was opened for %d bytes", len(a.body))
}

// Short bodies never wait for long ones, and the long ones never hold more
// than there is.
func TestHeed_BytesInFlightAreBounded(t *testing.T) {
	t.Parallel()
	must.True(t, maxLongBodies*(maxBody+codingOverhead) <= 64<<20, "long bodies hold more than 64 MiB")
	release := make(chan struct{})
	begun := make(chan struct{}, 100)
	slow := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("#"), 2*shortBody))
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		<-release
	})
	f := testFetcher(t)
	held := make(chan answer)
	for range maxSiteLongBodies { // one site cannot have more
		go func() { held <- f.fetched(t.Context(), slow, variantKey{}, validators{}) }()
	}
	for range maxSiteLongBodies {
		<-begun
	}
	short := strings.Repeat(file, shortBody/len(file))
	a := f.fetched(t.Context(), serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, short) }), variantKey{}, validators{})
	must.True(t, a.err == nil && string(a.body) == short, "a short body beside long ones: %d bytes, err %v", len(a.body), a.err)
	close(release)
	for range maxSiteLongBodies {
		a := <-held
		must.OK(t, a.err, "a long one")
	}
	f.longBodies.mu.Lock()
	defer f.longBodies.mu.Unlock()
	must.Equal(t, f.longBodies.running, 0, "long bodies are still counted")
}

func TestHeed_ALongBodyWithoutRoomIsNotHeldAgainstTheSite(t *testing.T) {
	t.Parallel()
	o := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2*shortBody)) })
	f := testFetcher(t)
	f.longBodies.most = 0
	f.longBodies.mostWaiting = 0
	a := f.fetched(t.Context(), o, variantKey{}, validators{})
	must.Need(t, errors.Is(a.err, errFull) && a.local, "err %v, ours %v", a.err, a.local)
	c, _ := newCache(t, Config{})
	c.fetcher.longBodies.mostWaiting, c.fetcher.longBodies.most = 0, 0
	src := c.Policy(t.Context(), o, "").Source()
	must.True(t, src.State == rules.Unreachable && src.RetryAt.Sub(start) == ownRetry, "%+v", src)
	c.fetcher.longBodies.most = maxLongBodies
	inState(t, c.Policy(t.Context(), o, "").Source(), rules.Available, "with room again")
}
