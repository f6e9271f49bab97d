package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"heed/internal/testkit"
)

// pieces is a connection whose incoming octets come as r gives them.
type pieces struct {
	net.Conn
	r io.Reader
}

func (p pieces) Read(b []byte) (int, error)  { return p.r.Read(b) }
func (p pieces) Write(b []byte) (int, error) { return len(b), nil }

// The names in Connection other than close are noted however the head is split into
// reads; the same text in a body is not.
func TestRestoreConnection_NamesBesideCloseAreKept(t *testing.T) {
	const early = "HTTP/1.1 103 Early Hints\r\nConnection: X-Early\r\n\r\n"
	for in, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\n\r\n":                               "close, X-Hop",
		"HTTP/1.1 200 OK\r\nconnection:x-hop\r\nCONNECTION: Close\r\n\r\nbody":              "x-hop|Close",
		early + early + "HTTP/1.1 200 OK\r\nConnection: X-Hop, close\r\n\r\n":               "X-Hop, close",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n":                                      "", // net/http does all there is to do
		"HTTP/1.1 200 OK\r\nConnection: X-Hop\r\n\r\n":                                      "", // net/http keeps it
		"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close, X-End\r\n\r\n":        "",
		"\x00binary\r\nConnection: close, X-End\r\n\r\n":                                    "",
		"HTTP/1.1 200 OK\r\nX-Connection: close, X-End\r\n\r\nConnection: close, X\r\n\r\n": "",
	} {
		for how, cut := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "octets": iotest.OneByteReader, "halves": iotest.HalfReader} {
			c := &Conn{Conn: pieces{r: cut(strings.NewReader(in))}}
			io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
			if out, _ := io.ReadAll(c); string(out) != in {
				t.Fatalf("%s: %q came out as %q", how, in, out)
			}
			h := http.Header{}
			c.RestoreConnection(h)
			values := h["Connection"]
			for i := range values {
				values[i] = strings.TrimSpace(values[i])
			}
			if got := strings.Join(values, "|"); got != want {
				t.Errorf("%s, in %s: %q, want %q", strings.ReplaceAll(in, "\r\n", "|"), how, got, want)
			}
		}
	}
}

// What comes beyond the connections that one site may have waits for one of
// them, and is answered all the same.
func TestConnsPerHost_FurtherRequestsWait(t *testing.T) {
	var mu sync.Mutex
	from := map[string]bool{}
	release := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr] = true
		mu.Unlock()
		<-release
	}))
	t.Cleanup(s.Close)
	transport := newTransport(TransportConfig{ConnsPerHost: 1})
	t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var asked, done sync.WaitGroup
	for range 3 {
		asked.Add(1)
		hook := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { asked.Done() }})
		done.Go(func() {
			r, err := http.NewRequestWithContext(hook, "GET", s.URL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	asked.Wait() // all three want a connection before the first gives one back
	for range 3 {
		release <- true
	}
	done.Wait()
	if len(from) != 1 {
		t.Errorf("three requests at once came on %d connections, not 1", len(from))
	}
}

// An error that FailureOf does not recognise is a 502 and never a success.
func TestFailureOf_AnUnknownErrorIs502(t *testing.T) {
	for _, err := range []error{errors.New("?"), fmt.Errorf("a: %w", os.ErrClosed), nil} {
		if got, want := FailureOf(err), (Failure{Status: 502, Type: "destination_unavailable"}); got != want {
			t.Errorf("%v: %+v", err, got)
		}
	}
}
