package http1

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

var errBound = errors.New("too many octets")

// The octets of an unfinished head are counted before they are kept, those that are
// counted are those of the buffer, and a complete head frees them.
func TestReader_CountsUnfinishedHeads(t *testing.T) {
	const bound = 20 << 10
	held := 0
	limit := Limit{Head: 128 << 10, Drop: func() { held = 0 }, Hold: func(n int) error {
		if held+n > bound {
			return errBound
		}
		held += n
		return nil
	}}
	endless := "GET / HTTP/1.1\r\nUser-Agent: big\r\nX: " + strings.Repeat("x", 1<<20)
	for _, way := range ways {
		held = 0
		r := &Reader{From: &inPieces{[]byte(endless), way, 0}, Limit: limit}
		var h Head
		must.Is(t, r.ReadRequest(&h), errBound)
		must.True(t, len(r.buf) <= held+bufferSize && held <= bound && h.Method == "GET" && h.Get("User-Agent") == "big",
			"in pieces of %v %d octets are kept and %d counted: %+v", way, len(r.buf), held, h)
	}
	held = 0
	r := &Reader{From: &inPieces{[]byte("GET / HTTP/1.0\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\nrest"), []int{1}, 0}, Limit: limit}
	var h Head
	if err := r.ReadRequest(&h); err != nil || held != 0 || len(r.buf) > bufferSize {
		t.Errorf("%v: %d octets are counted and %d kept", err, held, len(r.buf))
	}
	h.Reset()
	if r.Rest(); r.buf != nil {
		t.Error("an idle connection has a buffer")
	}
}

// late is a connection on which nothing comes in time, once.
type late struct {
	io.Reader
	at int // reads before the one that fails
}

// Read implements io.Reader.
func (l *late) Read(p []byte) (int, error) {
	if l.at--; l.at == -1 {
		return 0, os.ErrDeadlineExceeded
	}
	return l.Reader.Read(p)
}

// A Fill that a deadline has ended leaves the connection as it was: so a proxy waits for a
// client that leaves while its request is served.
func TestReader_FillsAgainAfterATimeout(t *testing.T) {
	r := &Reader{From: &late{strings.NewReader("GET / HTTP/1.0\r\n\r\n"), 0}}
	err := r.Fill()
	must.True(t, errors.Is(err, os.ErrDeadlineExceeded) && r.Release(), "%v", err)
	r.Prepend('\n')
	if err := r.Fill(); err != nil || string(r.Buffered()) != "\nGET / HTTP/1.0\r\n\r\n" {
		t.Errorf("%q %v", r.Buffered(), err)
	}
	var h Head
	err = r.ReadRequest(&h)
	must.True(t, err == nil && h.Target == "/", "%+v %v", h, err)
}

// A body of a large connection reaches the caller without a copy in between, and never
// more of it than belongs to the message.
func TestBody_ReadsNothingBeyondItsEnd(t *testing.T) {
	content := strings.Repeat("0123456789", 1000)
	for _, stream := range []string{
		"Content-Length: 10000\r\n\r\n" + content,
		"Transfer-Encoding: chunked\r\n\r\n1388\r\n" + content[:5000] + "\r\n1388\r\n" + content[5000:] + "\r\n0\r\n\r\n",
	} {
		for _, portion := range []int{1, 100, 4096, 64 << 10} {
			for _, way := range ways {
				m := readMessage([]byte("HTTP/1.1 200 OK\r\n"+stream+"HTTP/1.1 200 OK\r\n"), "GET", way, portion, Limit{})
				must.True(t, m.err == nil && m.content == content && m.rest == "HTTP/1.1 200 OK\r\n",
					"portions of %d, pieces of %v: %d octets, rest %q, %v", portion, way, len(m.content), m.rest, m.err)
			}
		}
	}
}

// A large body is written in few pieces, of which the first contains the head.
func TestWriter_WritesLargeBodies(t *testing.T) {
	content := strings.Repeat("0123456789", 10000)
	for framing, most := range map[Framing]int{Sized: 2, UntilClose: 2, Chunked: 4} {
		var to pieces
		w := Writer{To: &to}
		must.OK(t, w.Begin(&Message{Status: 200, Phrase: "OK", Framing: framing, Length: 100000}))
		n, err := io.WriteString(&w, content)
		must.Need(t, n == len(content) && err == nil, "%v %v", n, err)
		must.OK(t, w.End(nil))
		m := readMessage([]byte(strings.Join(to, "")), "GET", []int{1 << 20}, 4096, Limit{})
		must.True(t, len(to) <= most && m.content == content && m.rest == "",
			"framing %d: %d pieces, %d octets of content", framing, len(to), len(m.content))
	}
}

// A body that is not as long as its head declares is an error for the caller, and never
// becomes the next message.
func TestWriter_KeepsToTheLength(t *testing.T) {
	var to pieces
	w := Writer{To: &to}
	_ = w.Begin(&Message{Status: 200, Framing: Sized, Length: 3})
	if n, err := io.WriteString(&w, "abcHTTP/1.1"); n != 3 || err != ErrLength {
		t.Error(n, err)
	}
	err := w.End(nil)
	must.True(t, err == nil && strings.HasSuffix(strings.Join(to, ""), "\r\n\r\nabc"), "%q %v", to, err)
	_ = w.Begin(&Message{Status: 200, Framing: Sized, Length: 3})
	_, _ = io.WriteString(&w, "ab")
	must.Equal(t, w.End(nil), ErrLength)
	_ = w.Begin(&Message{Status: 204, Length: -1})
	n, err := io.WriteString(&w, "ab")
	must.True(t, n == 0 && err == http.ErrBodyNotAllowed, "%v %v", n, err)
}

// A twelve-field answer of odd case arrives octet by byte.
func TestMessage_RewritesNothing(t *testing.T) {
	const fields = "sERVER: x\r\ndate: Tue, 15 Nov 1994 08:12:31 GMT\r\nCONTENT-type: text/html\r\ncontent-LENGTH: 2\r\nSet-cookie: a=1\r\nx-A: 1\r\nSET-COOKIE: b=2\r\n" +
		"eTag: \"x\"\r\nX-b: \r\nx-C: \xe9\r\nP3p: CP\r\nx-XSS-Protection: 0\r\n\r\n"
	m := readMessage([]byte("HTTP/1.1 200 Fine\r\n"+fields+"ok"), "GET", []int{4096}, 4096, Limit{})
	h := m.head
	got, err := (&Message{Status: h.Status, Phrase: h.Phrase, Header: h.Header(), Fields: h.Fields, Framing: h.Framing, Length: h.Length}).Append(nil)
	must.True(t, string(got) == "HTTP/1.1 200 Fine\r\n"+fields && err == nil, "%q %v", got, err)
}

// A WebSocket handshake keeps its Connection; every other message has the writer's.
func TestMessage_WritesConnection(t *testing.T) {
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	for _, c := range []struct {
		m    Message
		want string
	}{
		{Message{Status: 101, Length: -1, Header: upgrade}, "Upgrade: websocket\r\nConnection: Upgrade\r\n"},
		{Message{Status: 204, Length: -1, Header: http.Header{"Connection": {"X"}, "Upgrade": {"h2c"}, "keep-alive": {"5"}, "transfer-encoding": {"chunked"}}}, ""},
		{Message{Status: 204, Length: -1, Close: true}, "Connection: close\r\n"},
		{Message{Status: 204, Length: -1, KeepAlive: true}, "Connection: keep-alive\r\n"},
		{Message{Status: 304, Length: 7}, "Content-Length: 7\r\n"},
	} {
		got, err := c.m.Append(nil)
		_, fields, _ := strings.Cut(string(got), "\r\n")
		must.True(t, fields == c.want+"\r\n" && err == nil, "%q %v, want %q", fields, err, c.want)
	}
}

// What an answer for HTTP/1 can carry, and what no message can: the field is named.
func TestMessage_NamesWhatItCannotCarry(t *testing.T) {
	var fault *Fault
	for _, h := range []http.Header{{"X": {"a\r\nY: b"}}, {"X\r\n": {"a"}}, {"": {"a"}}, {"A b": {"a"}}} {
		m := Message{Method: "GET", Target: "/", Host: "a.test", Header: h}
		b, err := m.Append([]byte("before"))
		must.True(t, errors.As(err, &fault) && string(b) == "before", "%v: %q %v", h, b, err)
	}
}

// Lines of one value are not copied once for each of them.
func TestReader_JoinsManyLinesOnce(t *testing.T) {
	const lines = 9000
	head := "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 100<<10) + "\r\n" + strings.Repeat(" b\r\n", lines) + "Y: c\r\n d\r\n\r\n"
	from := strings.NewReader(head)
	var h Head
	allocations := testing.AllocsPerRun(1, func() {
		from.Reset(head)
		must.OK(t, (&Reader{From: from}).ReadAnswer(&h, "GET"))
	})
	must.True(t, allocations <= lines/10, "%.0f allocations for %d lines", allocations, lines)
	if x, y := h.Get("X"), h.Get("Y"); len(x) != 100<<10+2*lines || !strings.HasSuffix(x, "a"+strings.Repeat(" b", lines)) || y != "c d" {
		t.Errorf("%d octets of the first value, the second is %q", len(x), y)
	}
}

// Octets of a first line that have been looked at are not looked at again: a line that comes
// octet by octet costs no more than its length.
func TestScanner_LooksAtEachOctetOnce(t *testing.T) {
	for _, answer := range []bool{false, true} {
		for _, line := range []string{strings.Repeat("A", 3000), "GET /" + strings.Repeat("a", 3000), "HTTP/1.1 200 " + strings.Repeat("a", 3000)} {
			if answer != strings.HasPrefix(line, protocol) {
				continue
			}
			var s scanner
			head := []byte(line)
			for i := range head {
				n, fault := s.next(head[:i+1], answer)
				must.Need(t, n == 0 && fault == nil, "%v %v", n, fault)
				if i >= len(protocol)+2 {
					head[i-2] = '\n' // found, if it were looked at
				}
			}
		}
	}
}

// counted is a connection on which everything has come; it counts the reads.
type counted struct {
	strings.Reader
	reads int
}

func (c *counted) Read(p []byte) (int, error) {
	c.reads++
	return c.Reader.Read(p)
}

// A body in small chunks that comes faster than it is read takes few reads of the connection,
// and its reader ends with a usual buffer.
func TestBody_ManySmallChunksTakeFewReads(t *testing.T) {
	const chunks = 500
	text := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("800\r\n"+strings.Repeat("x", 0x800)+"\r\n", chunks) + "0\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
	from := &counted{Reader: *strings.NewReader(text)}
	r := &Reader{From: from}
	var h Head
	must.OK(t, r.ReadAnswer(&h, "GET"))
	var b Body
	b.Reset(r, &h)
	n, err := io.Copy(io.Discard, &b)
	must.Need(t, n == chunks*0x800 && err == nil, "%v %v", n, err)
	most := len(text)/bodyBufferSize + 4
	must.True(t, from.reads <= most, "%d reads, more than %d", from.reads, most)
	err = r.ReadAnswer(&h, "GET")
	must.True(t, err == nil && h.Status == 204 && len(r.buf) == bufferSize, "%v %v %v", err, h.Status, len(r.buf))
}
