package upstream

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A site that ends what carries a request each time, and says that it has not looked at it,
// gets the request three times, each with its turn, and no more.
func TestSend_ASiteThatNeverLooksAtARequestGetsItThreeTimes(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*http2.Framer, uint32) error{
		"GOAWAY":                        func(f *http2.Framer, _ uint32) error { return f.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"GOAWAY for being too busy":     func(f *http2.Framer, _ uint32) error { return f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil) },
		"a stream that is refused":      func(f *http2.Framer, id uint32) error { return f.WriteRSTStream(id, http2.ErrCodeRefusedStream) },
		"a stream of a protocol error":  func(f *http2.Framer, id uint32) error { return f.WriteRSTStream(id, http2.ErrCodeProtocol) },
		"an end of the connection":      func(*http2.Framer, uint32) error { return io.EOF },
		"GOAWAY and then an end of all": func(f *http2.Framer, _ uint32) error { f.WriteGoAway(0, http2.ErrCodeNo, nil); return io.EOF },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen atomic.Int32
			addr := http2Site(t, func(f *http2.Framer, id uint32) error {
				seen.Add(1)
				return end(f, id)
			})
			w := NewHostTransports(TransportConfig{}, HostRoute{Match: pattern(t, "127.0.0.1"), Route: Route{Site: &SiteCert{Any: true}}})
			t.Cleanup(w.CloseIdleConnections)
			var known facts
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/page", nil)
			_, err := w.Send(&Request{Request: r, Hooks: &known})
			f := FailureOf(err)
			must.True(t, f.Stage == NoAnswer && !f.Lasting, "%v: %+v", err, f)
			if n := int(seen.Load()); n > len(pauses) || known.attempts != n {
				t.Errorf("the site got it %d times, with %d turns", n, known.attempts)
			} else if n > 1 && !strings.Contains(err.Error(), "3 times") {
				t.Error(err)
			}
		})
	}
}

// A request whose turn was over before its connection was open waits for another one with
// that connection, and is not sent when there is none.
func TestSend_ARequestThatIsLateOverHTTP2WaitsForAnotherTurn(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	addr := http2Site(t, func(f *http2.Framer, id uint32) error {
		seen.Add(1)
		return f.WriteRSTStream(id, http2.ErrCodeCancel)
	})
	w := NewHostTransports(TransportConfig{}, HostRoute{Match: pattern(t, "127.0.0.1"), Route: Route{Site: &SiteCert{Any: true}}})
	t.Cleanup(w.CloseIdleConnections)
	none := errors.New("no turn")
	send := func(f *facts) error {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/page", nil)
		_, err := w.Send(&Request{Request: r, Hooks: f})
		return err
	}
	if f := (&facts{late: 2}); send(f) == nil || seen.Load() != 1 || f.attempts != 3 || !f.http2 {
		t.Errorf("sent %d times, with %d turns", seen.Load(), f.attempts)
	}
	if f := (&facts{late: 2, none: none}); !errors.Is(send(f), none) || seen.Load() != 1 {
		t.Errorf("sent %d times, with %d turns", seen.Load(), f.attempts)
	}
}

// http2Site is a site that speaks HTTP/2, and calls answer for each request; an error ends
// the connection.
func http2Site(t *testing.T, answer func(f *http2.Framer, stream uint32) error) (addr string) {
	return http2Heads(t, func(f *http2.Framer, h *http2.HeadersFrame) error { return answer(f, h.StreamID) })
}

// http2Heads is http2Site with the heads of the requests.
func http2Heads(t *testing.T, answer func(f *http2.Framer, h *http2.HeadersFrame) error) (addr string) {
	cert, key := testkit.NewCA(t).Leaf(t, "127.0.0.1")
	pair := must.Get(tls.LoadX509KeyPair(cert, key))(t)
	return testkit.RawSite(t, func(raw net.Conn) {
		c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(c, c)
		if f.WriteSettings() != nil {
			return
		}
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if h, ok := frame.(*http2.HeadersFrame); ok && answer(f, h) != nil {
				return
			}
		}
	})
}
