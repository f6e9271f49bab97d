package h2head

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
)

// testLimit allows heads of so many octets, and any number of them.
func testLimit(head int) Limit {
	return Limit{
		Head: head, Frame: 16 << 10, Streams: limit.DefaultStreams, Time: time.Minute,
		Hold: func(int) error { return nil }, Drop: func() {},
		Exceeded: func(k limit.Kind) *limit.Exceeded { return &limit.Exceeded{Kind: k, Value: "test"} },
	}
}

// handled is a request as the handler gets it.
type handled struct {
	*http.Request
	note *Note
}

func (h handled) String() string {
	return fmt.Sprintf("%s %s %s %v %v", h.Method, h.RequestURI, h.Host, h.Header, h.note)
}

// server is net/http's, with a Reader or without.
type server struct {
	net.Listener
	handled chan handled
	broken  chan broken
	limit   *Limit // nil: no Reader
}

// broken is a request that is not answered.
type broken struct {
	seen *http.Request
	err  error
}

// framed is a connection that is read by a Reader.
type framed struct {
	net.Conn
	r *Reader
}

func (c framed) Read(p []byte) (int, error) { return c.r.Read(p) }

func (c framed) Write(p []byte) (int, error) {
	c.r.Wrote(p)
	return c.Conn.Write(p)
}

// Accept implements net.Listener.
func (s *server) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil || s.limit == nil {
		return c, err
	}
	return framed{c, NewReader(c, *s.limit, func(seen *http.Request, err error) { s.broken <- broken{seen, err} })}, nil
}

func newServer(t testing.TB, l *Limit) *server {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &server{listener, make(chan handled, 100), make(chan broken, 100), l}
	h := &http.Server{Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: ListSize(128 << 10), HTTP2: &http.HTTP2Config{MaxReadFrameSize: 16 << 10}}
	h.Protocols.SetUnencryptedHTTP2(true)
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note := TakeNote(r)
		_, _ = io.Copy(io.Discard, r.Body)
		s.handled <- handled{r.Clone(context.Background()), note}
		w.WriteHeader(204)
	})
	go h.Serve(s)
	t.Cleanup(func() { h.Close() })
	return s
}

// client is a connection on which a test may send any frame.
type client struct {
	t testing.TB
	net.Conn
	*http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer
}

func (s *server) dial(t testing.TB) *client {
	t.Helper()
	conn := must.Get(net.Dial("tcp", s.Addr().String()))(t)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	c := &client{t: t, Conn: conn, Framer: http2.NewFramer(conn, conn)}
	c.Framer.AllowIllegalWrites = true
	c.encoder = hpack.NewEncoder(&c.block)
	c.sent(io.WriteString(conn, http2.ClientPreface))
	c.sent(0, c.WriteSettings())
	return c
}

func (c *client) sent(_ int, err error) {
	c.t.Helper()
	must.OK(c.t, err)
}

// encode returns the fields, name and value in turn, as a header block.
func (c *client) encode(fields ...string) []byte {
	c.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(c.block.Bytes())
}

// end reads until the stream is answered or reset, or the connection ends.
func (c *client) end(stream uint32) string {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return "closed"
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			if f.StreamID == stream && f.StreamEnded() {
				return "answered"
			}
		case *http2.DataFrame:
			if f.StreamID == stream && f.StreamEnded() {
				return "answered"
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return "reset " + f.ErrCode.String()
			}
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo {
				return "goaway " + f.ErrCode.String()
			}
		}
	}
}

// ask sends a request of these fields and returns what becomes of it, with the request as
// the handler got it.
func (c *client) ask(s *server, stream uint32, fields ...string) (string, *handled) {
	c.t.Helper()
	c.sent(0, c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.encode(fields...), EndStream: true, EndHeaders: true}))
	end := c.end(stream)
	select {
	case h := <-s.handled:
		return end, &h
	default:
		return end, nil
	}
}

// good returns the fields of a request that is in order, and others.
func good(target string, others ...string) []string {
	return append([]string{":method", "GET", ":scheme", "https", ":authority", "site.test", ":path", target, "user-agent", "ExampleBot/1"}, others...)
}

// What net/http would reject reaches the handler, with what is wrong and what was asked
// for, or is reported, and its stream reset, where HTTP/2 wants that; other requests of
// the connection reach the handler as they are.
func TestReader_HandsEveryRequestToTheHandler(t *testing.T) {
	const malformed = "reset PROTOCOL_ERROR"
	l := testLimit(16 << 10)
	s := newServer(t, &l)
	c, stream := s.dial(t), uint32(1)
	for _, b := range []struct {
		end    string
		fault  string
		fields []string
	}{
		{"answered", "concerns a connection", good("/a", "connection", "close")},
		{"answered", "concerns a connection", good("/a", "upgrade", "h2c")},
		{"answered", `only be "trailers"`, good("/a", "te", "gzip")},
		{malformed, "not a token", good("/a", "X-Upper", "1")},
		{malformed, "not a token", good("/a", "", "1")},
		{malformed, "field x contains a control", good("/a", "x", "a\x00b")},
		{"answered", "target contains a control", good("/a\nb")},
		{"answered", "contains a control", good("/a\tb")},
		{"answered", "neither an absolute URL nor a path", good("a")},
		{malformed, "content-length is not a number", good("/a", "content-length", "x")},
		{malformed, "content-length is not a number", good("/a", "content-length", "")},
		{malformed, "content-length is not a number", good("/a", "content-length", "+1")},
		{malformed, "content-length is not a number", good("/a", "content-length", "-1")},
		{malformed, "content-length is not a number", good("/a", "content-length", "0, 0")},
		{malformed, "content-length is not a number", good("/a", "content-length", " 0")},
		{malformed, "content-length is not a number", good("/a", "content-length", "9223372036854775808")},
		{malformed, "content-length that differ", good("/a", "content-length", "0", "content-length", "1")},
		{malformed, "the request has no content", good("/a", "content-length", "1")},
		{malformed, "more than one field :path", append([]string{":path", "/a"}, good("/b")...)},
		{malformed, "after other fields", good("/a", ":method", "GET")},
		{malformed, "is not one of a request", append([]string{":status", "200"}, good("/a")...)},
		{"answered", "extended CONNECT", append([]string{":protocol", "websocket"}, good("/a")...)},
		{malformed, "CONNECT has :authority", []string{":method", "CONNECT", ":scheme", "https", ":authority", "x:1", ":path", "/a"}},
		{malformed, "has no :method", good("/a")[2:]},
		{malformed, "has no :scheme", []string{":method", "GET", ":path", "/"}},
		{malformed, "has no :path", []string{":method", "GET", ":scheme", "https"}},
		{"answered", ":scheme", []string{":method", "GET", ":scheme", "ftp", ":path", "/"}},
		{"answered", "userinfo", []string{":method", "GET", ":scheme", "https", ":path", "/", ":authority", "a:b@c"}},
		{"answered", "userinfo", []string{":method", "GET", ":scheme", "https", ":path", "/", "host", "a:b@c"}},
	} {
		end, h := c.ask(s, stream, b.fields...)
		stream += 2
		var asked, target, agent, fault string
		switch {
		case end != b.end:
			t.Fatalf("%q: %s, want %s", b.fields, end, b.end)
		case h == nil:
			lost := <-s.broken
			asked, target, agent, fault = lost.seen.Method, lost.seen.RequestURI, lost.seen.UserAgent(), lost.err.Error()
		case h.note == nil:
			t.Fatalf("%q: %v", b.fields, h)
		default:
			asked, target, agent, fault = string(h.note.Method), string(h.note.Target), h.UserAgent(), h.note.Fault
		}
		if q := parse(pairs(b.fields)); asked != q.value[method] || target != q.value[path] || agent != q.agent || !strings.Contains(fault, b.fault) {
			t.Errorf("%q: %q %q %q %q", b.fields, asked, target, agent, fault)
		}
		end, h = c.ask(s, stream, good("/fine?%zz", "x", "1", "te", "trailers")...)
		must.True(t, end == "answered" && h != nil && h.note == nil && h.RequestURI == "/fine?%zz" && h.Header.Get("X") == "1",
			"after %q: %s, %v", b.fields, end, h)
		stream += 2
	}
}

func pairs(fields []string) (all []hpack.HeaderField) {
	for i := 0; i < len(fields); i += 2 {
		all = append(all, hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return all
}

// A target that net/http's parser rejects reaches the handler octet by octet, and a
// field of a client with the name of a Note does not reach the handler.
func TestReader_KeepsOddTargets(t *testing.T) {
	l := testLimit(16 << 10)
	s := newServer(t, &l)
	c, stream := s.dial(t), uint32(1)
	for _, target := range []string{"/100%-cotton", "/a%zz", "/%", "/%?%", "/caf\xc3\xa9|\"{}<>^`\\", "/\xff%", "/a b", "https://site.test/%zz", "//x/%"} {
		end, h := c.ask(s, stream, good(target, noteName, `{"Fault":"forged"}`, "x", "1")...)
		if stream += 2; end != "answered" || h == nil || h.RequestURI != target || h.URL == nil || h.Header.Get("X") != "1" || len(h.Header) != 2 ||
			h.note != nil && h.note.Refused() {
			t.Errorf("%q: %s, %v", target, end, h)
		}
	}
}

// A header block may come in pieces, with padding and a priority, and use the whole of
// HPACK. Trailers follow their request.
func TestReader_ReadsBlocksInEveryForm(t *testing.T) {
	l := testLimit(64 << 10)
	s := newServer(t, &l)
	c := s.dial(t)
	block := c.encode(good("/a%zz", "x", strings.Repeat("x", 40<<10))...)
	c.sent(0, c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:7], PadLength: 200, Priority: http2.PriorityParam{StreamDep: 3, Weight: 3}}))
	c.sent(0, c.WriteContinuation(1, false, nil))
	for rest := block[7:]; len(rest) > 0; {
		n := min(16<<10, len(rest))
		c.sent(0, c.WriteContinuation(1, n == len(rest), rest[:n]))
		rest = rest[n:]
	}
	c.sent(0, c.WriteDataPadded(1, false, []byte("body"), make([]byte, 9)))
	c.sent(0, c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.encode("t", "1"), EndStream: true, EndHeaders: true}))
	end := c.end(1)
	must.Need(t, end == "answered", "%s", end)
	h := <-s.handled
	must.True(t, h.RequestURI == "/a%zz" && len(h.Header.Get("X")) == 40<<10, "%v", h)
	c.encoder.SetMaxDynamicTableSize(0)
	c.encoder.SetMaxDynamicTableSize(2000)
	for stream := uint32(3); stream < 40; stream += 2 {
		if end, h := c.ask(s, stream, good(fmt.Sprint("/", stream), "x", strings.Repeat("x", int(stream)*20))...); end != "answered" || h == nil || h.RequestURI != fmt.Sprint("/", stream) || len(h.Header.Get("X")) != int(stream)*20 {
			t.Errorf("%d: %s %v", stream, end, h)
		}
	}
}

// What no decoder could go on after ends the connection with the code that RFC 9113
// requires, is reported, and never reaches the handler.
func TestReader_EndsBrokenConnections(t *testing.T) {
	l := testLimit(16 << 10)
	s := newServer(t, &l)
	request := func(c *client) []byte { return c.encode(good("/a")...) }
	for name, b := range map[string]struct {
		code string
		send func(c *client) error
	}{
		"an index beyond the table": {"COMPRESSION_ERROR", func(c *client) error {
			return c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, append(request(c), 0xff, 0xff, 0x03))
		}},
		"half a field": {"COMPRESSION_ERROR", func(c *client) error {
			return c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, append(request(c), 0x40))
		}},
		"a table that is too large": {"COMPRESSION_ERROR", func(c *client) error {
			return c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, append([]byte{0x3f, 0xff, 0x7f}, request(c)...))
		}},
		"a frame in between": {"PROTOCOL_ERROR", func(c *client) error {
			_ = c.WriteRawFrame(http2.FrameHeaders, 0, 1, request(c))
			return c.WritePing(false, [8]byte{})
		}},
		"a CONTINUATION of another stream": {"PROTOCOL_ERROR", func(c *client) error {
			_ = c.WriteRawFrame(http2.FrameHeaders, 0, 1, request(c))
			return c.WriteContinuation(3, true, nil)
		}},
		"a CONTINUATION alone": {"PROTOCOL_ERROR", func(c *client) error { return c.WriteContinuation(1, true, request(c)) }},
		"endless CONTINUATIONs": {"PROTOCOL_ERROR", func(c *client) error {
			_ = c.WriteRawFrame(http2.FrameHeaders, 0, 1, request(c))
			for range 1000 {
				_ = c.WriteContinuation(1, false, nil)
			}
			return nil
		}},
		"a stream of the server": {"PROTOCOL_ERROR", func(c *client) error {
			return c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 2, request(c))
		}},
		"no stream": {"PROTOCOL_ERROR", func(c *client) error {
			return c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, request(c))
		}},
		"too much padding": {"PROTOCOL_ERROR", func(c *client) error {
			return c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersPadded, 1, append([]byte{255}, request(c)...))
		}},
		"no room for a priority": {"PROTOCOL_ERROR", func(c *client) error {
			return c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersPriority, 1, []byte{1, 2, 3})
		}},
		"a frame that is too large": {"FRAME_SIZE_ERROR", func(c *client) error {
			return c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, make([]byte, 16<<10+1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.sent(0, b.send(c))
			must.Equal(t, c.end(1), "goaway "+b.code)
			select {
			case <-s.broken:
			default:
				t.Error("not reported")
			}
			c.Close()
		})
	}
	must.Equal(t, len(s.handled), 0, "requests that reached the handler")
}

// A head that is too large is answered, and the connection goes on, as long as the rest of
// it is not too much to read.
func TestReader_AnswersLargeHeads(t *testing.T) {
	l := testLimit(8 << 10)
	s := newServer(t, &l)
	c := s.dial(t)
	send := func(stream uint32, octets int) {
		block := c.encode(good("/large", "x", "1", "y", strings.Repeat("y", 7000), "z", strings.Repeat("z", octets))...)
		for kind := http2.FrameHeaders; len(block) > 0; kind = http2.FrameContinuation {
			n := min(16<<10, len(block))
			flags := http2.FlagHeadersEndHeaders
			if n < len(block) {
				flags = 0
			}
			if kind == http2.FrameHeaders {
				flags |= http2.FlagHeadersEndStream
			}
			if c.WriteRawFrame(kind, flags, stream, block[:n]) != nil {
				return
			}
			block = block[n:]
		}
	}
	large := func(stream uint32, last bool) {
		t.Helper()
		must.Is(t, c.end(stream), "answered")
		if h := <-s.handled; h.note == nil || h.note.Over == nil || h.note.Over.Kind != limit.HeaderBytes || h.note.Last != last ||
			string(h.note.Target) != "/large" || string(h.note.Method) != "GET" || h.UserAgent() != "ExampleBot/1" {
			t.Errorf("%d: %v", stream, h)
		}
	}
	send(1, 7000) // in all
	large(1, false)
	end, h := c.ask(s, 3, good("/next")...)
	must.Need(t, end == "answered" && h != nil && h.note == nil, "%v %v", end, h)
	send(5, 9000) // one string
	large(5, true)
}

// A few octets can stand for one large field of the table very often.
func TestReader_ABlockThatGrowsIsLarge(t *testing.T) {
	l := testLimit(128 << 10)
	s := newServer(t, &l)
	c := s.dial(t)
	if end, _ := c.ask(s, 1, good("/", "x", strings.Repeat("x", 3000))...); end != "answered" {
		t.Fatal(end)
	}
	var bomb []string
	for range 10000 {
		bomb = append(bomb, "x", strings.Repeat("x", 3000))
	}
	end, h := c.ask(s, 3, good("/bomb", bomb...)...)
	must.True(t, end == "answered" && h != nil && h.note != nil && h.note.Over != nil && string(h.note.Target) == "/bomb",
		"%s, %v", end, h)
}

// Octets of a head that is not complete count while the Reader waits for the rest, and
// not longer.
func TestReader_CountsUnfinishedHeads(t *testing.T) {
	l := testLimit(64 << 10)
	held, dropped := make(chan int, 100), make(chan bool, 100)
	most := 30 << 10
	l.Hold = func(n int) error {
		if most -= n; most < 0 {
			return &limit.Exceeded{Kind: limit.Heads, Value: "few"}
		}
		held <- n
		return nil
	}
	l.Drop = func() { most = 30 << 10; dropped <- true }
	s := newServer(t, &l)
	c := s.dial(t)
	block := c.encode(good("/slow")...)
	c.sent(0, c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndStream, 1, block[:20]))
	n := <-held
	must.True(t, n >= 20, "%v", n)
	must.True(t, len(dropped) == 0, "dropped before the end")
	c.sent(0, c.WriteContinuation(1, true, block[20:]))
	end := c.end(1)
	must.Need(t, end == "answered", "%s", end)
	<-dropped
	<-s.handled

	rest := c.encode(good("/much", "x", strings.Repeat("x", 5000), "y", strings.Repeat("y", 12000))...)
	c.sent(0, c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndStream, 3, rest))
	must.Is(t, c.end(3), "answered")
	if h := <-s.handled; h.note == nil || h.note.Over == nil || h.note.Over.Kind != limit.Heads || !h.note.Last || string(h.note.Target) != "/much" {
		t.Error(h)
	}
	<-dropped
}

// However long the name of a faulty field is, and whatever it consists of, the report
// quotes a part of it, and the connection goes on.
func TestReader_QuotesAPartOfALongName(t *testing.T) {
	l := testLimit(128 << 10)
	s := newServer(t, &l)
	c, stream := s.dial(t), uint32(1)
	for _, name := range []string{strings.Repeat("&", 100<<10), strings.Repeat("\x01", 100<<10), ":" + strings.Repeat("\xff", 100<<10)} {
		block := c.encode(good("/a", name, "a\x00b")...)
		for kind, part := http2.FrameHeaders, block; len(part) > 0; kind = http2.FrameContinuation {
			n, flags := min(16<<10, len(part)), http2.Flags(0)
			if n == len(part) {
				flags = http2.FlagHeadersEndHeaders
			}
			if kind == http2.FrameHeaders {
				flags |= http2.FlagHeadersEndStream
			}
			c.sent(0, c.WriteRawFrame(kind, flags, stream, part[:n]))
			part = part[n:]
		}
		must.Is(t, c.end(stream), "reset PROTOCOL_ERROR", "%.5q", name)
		if lost := <-s.broken; lost.seen.RequestURI != "/a" || len(lost.err.Error()) > 300 {
			t.Errorf("%.5q: %s %.300v", name, lost.seen.RequestURI, lost.err)
		}
		stream += 2
	}
}

// A connection on which a large head has come keeps little of it once it is passed on.
func TestReader_KeepsLittleOfALargeHead(t *testing.T) {
	const readers, head = 40, 100 << 10
	var block, octets bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range pairs(good("/", "x", strings.Repeat("~", head))) {
		_ = encoder.WriteField(f)
	}
	f := http2.NewFramer(&octets, nil)
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Next(testFrame)})
	for block.Len() > 0 {
		_ = f.WriteContinuation(1, block.Len() <= testFrame, block.Next(testFrame))
	}
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	var all []*Reader
	for range readers {
		r := NewReader(wire{nil, io.MultiReader(strings.NewReader(http2.ClientPreface), bytes.NewReader(octets.Bytes()))}, testLimit(128<<10), nil)
		n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
		must.Need(t, n >= head && err == nil, "%v %v", n, err)
		all = append(all, r)
	}
	// The decoder keeps its room for a string that came in pieces.
	kept := (inUse() - before) / readers
	must.True(t, kept <= 5*head/2, "%d octets are kept with each, for a head of %d", kept, head)
	runtime.KeepAlive(all)
}

// A client that sends the content of a request that was reset does not lose its other
// requests.
func TestReader_WhatComesOnAResetStreamHarmsNoOther(t *testing.T) {
	l := testLimit(16 << 10)
	s := newServer(t, &l)
	c := s.dial(t)
	for stream := uint32(1); stream < 20; stream += 4 {
		c.sent(0, c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.encode(good("/a", "X-Upper", "1")...), EndHeaders: true}))
		c.sent(0, c.WriteData(stream, true, []byte("content")))
		end := c.end(stream)
		must.Need(t, end == "reset PROTOCOL_ERROR", "%s", end)
		end, h := c.ask(s, stream+2, good("/fine", "content-length", "0", "content-length", "0")...)
		must.Need(t, end == "answered" && h != nil, "after it: %s", end)
	}
}
