package http1

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"heed/internal/tools/testkit/must"
)

const (
	benchRequest = "GET http://site.test/path/page.html?q=1 HTTP/1.1\r\nHost: site.test\r\nUser-Agent: ExampleBot/1.0 (+https://bots.example/about)\r\n" +
		"Accept: text/html,application/xhtml+xml\r\nAccept-Language: en\r\nAccept-Encoding: gzip, br\r\nReferer: http://site.test/\r\nCookie: a=b; c=d\r\nConnection: keep-alive\r\n\r\n"
	benchAnswer = "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nContent-Type: text/html\r\nContent-Length: 1024\r\n" +
		"Last-Modified: Tue, 15 Nov 1994 08:12:31 GMT\r\nConnection: keep-alive\r\nETag: \"65f-400\"\r\nAccept-Ranges: bytes\r\n\r\n"
)

// endless is a connection on which the same message comes again and again.
type endless struct{ r bytes.Reader }

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	if e.r.Len() == 0 {
		_, _ = e.r.Seek(0, io.SeekStart)
	}
	return e.r.Read(p)
}

func endlessly(text string) *Reader {
	e := &endless{}
	e.r.Reset([]byte(text))
	return &Reader{From: e}
}

func BenchmarkReadRequest(b *testing.B) {
	r, h := endlessly(benchRequest), Head{}
	b.ReportAllocs()
	for b.Loop() {
		must.OK(b, r.ReadRequest(&h))
	}
}

// With all that goproxy and a hook need.
func BenchmarkReadRequest_ForNetHTTP(b *testing.B) {
	r, h, body := endlessly(benchRequest), Head{}, Body{}
	b.ReportAllocs()
	for b.Loop() {
		must.OK(b, r.ReadRequest(&h))
		body.Reset(r, &h)
		must.Get(h.Request(b.Context(), h.Target, &body))(b)
	}
}

func BenchmarkReadAnswer(b *testing.B) {
	r, h := endlessly(benchAnswer), Head{}
	b.ReportAllocs()
	for b.Loop() {
		must.OK(b, r.ReadAnswer(&h, "GET"))
	}
}

func BenchmarkReadAnswer_ForNetHTTP(b *testing.B) {
	r, h, body := endlessly(benchAnswer), Head{}, Body{}
	b.ReportAllocs()
	for b.Loop() {
		must.OK(b, r.ReadAnswer(&h, "GET"))
		body.Reset(r, &h)
		h.Response(nil, &body)
	}
}

func BenchmarkWriteRequest(b *testing.B) {
	h := Head{}
	must.OK(b, endlessly(benchRequest).ReadRequest(&h))
	header := h.Header()
	header["Via"] = []string{"1.1 heed"}
	w, m := Writer{To: io.Discard}, Message{}
	b.ReportAllocs()
	for b.Loop() {
		m = Message{Method: h.Method, Target: "/path/page.html?q=1", Host: "site.test", Header: header, Fields: h.Fields}
		must.OK(b, w.Begin(&m))
		must.OK(b, w.End(nil))
	}
}

func BenchmarkWriteAnswer(b *testing.B) {
	h := Head{}
	must.OK(b, endlessly(benchAnswer).ReadAnswer(&h, http.MethodGet))
	header, content := h.Header(), make([]byte, 1024)
	header["Via"] = []string{"1.1 heed"}
	w, m := Writer{To: io.Discard}, Message{}
	b.ReportAllocs()
	for b.Loop() {
		m = Message{Status: h.Status, Phrase: h.Phrase, Header: header, Fields: h.Fields, Framing: h.Framing, Length: h.Length}
		must.OK(b, w.Begin(&m))
		must.Get(w.Write(content))(b)
		must.OK(b, w.End(nil))
	}
}
