package http1

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

func readerOf(text string) *Reader { return &Reader{From: strings.NewReader(text)} }

// A request is read with its fields as they came, and its body to its exact end.
func TestReader_ReadsRequestsOfAConnection(t *testing.T) {
	r := readerOf("\r\nPOST http://a.test/x%zz HTTP/1.1\r\nhOST: a.test\r\nX-Y:  1 \r\ncontent-length: 3\r\n\r\nabc" +
		"PUT /y HTTP/1.1\nHost: a.test\nTransfer-Encoding: Chunked\n\n3;x\r\nabc\r\n0\r\nSum: 1\r\n\r\n" +
		"GET /z HTTP/1.0\r\n\r\n")
	var h Head
	var b Body
	for _, want := range []struct {
		target, body, names string
		close               bool
	}{
		{"http://a.test/x%zz", "abc", "hOST X-Y content-length", false},
		{"/y", "abc", "Host Transfer-Encoding", false},
		{"/z", "", "", true},
	} {
		must.OK(t, r.ReadRequest(&h))
		b.Reset(r, &h)
		body, err := io.ReadAll(&b)
		var names []string
		for _, f := range h.Fields {
			names = append(names, f.Name)
		}
		if h.Target != want.target || string(body) != want.body || strings.Join(names, " ") != want.names || h.Close != want.close || err != nil || !b.Ended() {
			t.Errorf("%+v %q %v", h, body, err)
		}
	}
	must.Equal(t, r.ReadRequest(&h), io.EOF, "at the end")
	must.True(t, r.Release() && r.buf == nil, "an idle connection holds a buffer")
}

// A head goes to the next hop with its names and in its order; what was changed in between
// has the new value, what was removed is left out, and what is new comes last.
func TestMessage_KeepsNamesAndOrder(t *testing.T) {
	const head = "GET /p HTTP/1.1\r\nacCEPT: a\r\nHOST: old.test\r\nx-TWICE: 1\r\nConnection: keep-alive\r\nX-Gone: 1\r\nX-twice: 2\r\n\r\n"
	var h Head
	must.OK(t, readerOf(head).ReadRequest(&h))
	header := h.Header()
	header.Del("X-Gone")
	header.Set("Accept", "b")
	header.Add("X-Twice", "3")
	header.Set("Via", "1.1 heed")
	m := Message{Method: h.Method, Target: h.Target, Host: "new.test", Header: header, Fields: h.Fields, Framing: h.Framing, Length: h.Length}
	got, err := m.Append(nil)
	const want = "GET /p HTTP/1.1\r\nacCEPT: b\r\nHOST: new.test\r\nx-TWICE: 1\r\nX-twice: 2\r\nVia: 1.1 heed\r\nX-Twice: 3\r\n\r\n"
	must.True(t, string(got) == want && err == nil, "%q %v", got, err)
}

// An answer whose connection ends within the body differs from one that is complete.
func TestBody_TellsWhatIsCutOff(t *testing.T) {
	for _, text := range []string{"Content-Length: 9\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\nab"} {
		r := readerOf("HTTP/1.1 200 OK\r\n" + text)
		var h Head
		must.OK(t, r.ReadAnswer(&h, "GET"))
		var b Body
		b.Reset(r, &h)
		_, err := io.ReadAll(&b)
		var fault *Fault
		if !errors.As(err, &fault) || fault.Kind != BodyTruncated || fault.Type != "http_response_incomplete" || !errors.Is(err, io.ErrUnexpectedEOF) || b.Ended() {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A head leaves with the first octets of its body, and chunks end with trailers.
func TestWriter_WritesChunks(t *testing.T) {
	var to pieces
	w := Writer{To: &to}
	m := Message{Status: 200, Phrase: "OK", Header: http.Header{"Server": {"x"}}, Framing: Chunked, Trailer: []string{"Sum"}}
	must.OK(t, w.Begin(&m))
	_, _ = io.WriteString(&w, "hello")
	must.OK(t, w.End(http.Header{"Sum": {"1"}, "Content-Length": {"3"}}))
	want := pieces{"HTTP/1.1 200 OK\r\nServer: x\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n5\r\nhello\r\n0\r\nSum: 1\r\n\r\n"}
	must.True(t, slices.Equal(to, want) && w.buf == nil, "%q", to)
}

// pieces keeps what is written, write by write.
type pieces []string

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}
