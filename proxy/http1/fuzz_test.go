package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// inPieces reads octets in pieces of the given sizes, by turns.
type inPieces struct {
	text  []byte
	sizes []int
	at    int
}

// Read implements io.Reader.
func (s *inPieces) Read(p []byte) (int, error) {
	if len(s.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.sizes[s.at%len(s.sizes)])], s.text)
	s.at++
	s.text = s.text[n:]
	return n, nil
}

// message is what was read of a stream. head is nil when it was refused.
type message struct {
	head    *Head
	reader  *Reader
	body    *Body
	content string
	rest    string
	trailer http.Header
	err     error // of the head, or of the body
}

// kind returns the fault of m; 0: none.
func (m *message) kind() Kind {
	var fault *Fault
	if errors.As(m.err, &fault) {
		return fault.Kind
	}
	return 0
}

// readMessage reads a message of a stream that comes in pieces. method is that of the
// request for an answer; empty: the stream is a request. The body is read in portions.
func readMessage(stream []byte, method string, sizes []int, portion int, limit Limit) *message {
	m := &message{head: &Head{}, body: &Body{}, reader: &Reader{From: &inPieces{stream, sizes, 0}, Limit: limit}}
	if method == "" {
		m.err = m.reader.ReadRequest(m.head)
	} else {
		m.err = m.reader.ReadAnswer(m.head, method)
	}
	if m.err != nil {
		m.head = nil
		return m
	}
	m.body.Reset(m.reader, m.head)
	var content []byte
	for p := make([]byte, portion); ; {
		n, err := m.body.Read(p)
		content = append(content, p[:n]...)
		if err != nil {
			if err != io.EOF {
				m.err = err
			}
			break
		}
	}
	rest, _ := io.ReadAll(m.reader)
	m.content, m.rest, m.trailer = string(content), string(rest), m.body.Trailer
	return m
}

// ways are some ways for octets to arrive.
var ways = [][]int{{1}, {2}, {3, 1}, {7}, {64}, {1, 4096}, {1 << 20}}

// checkSplits reads a stream in all ways, and returns what it is read as.
func checkSplits(t *testing.T, stream []byte, method string, a, b uint8, limit Limit) *message {
	t.Helper()
	whole := readMessage(stream, method, []int{len(stream) + 1}, 64<<10, limit)
	for _, sizes := range append(slices.Clone(ways), []int{1 + int(a), 1 + int(b)}) {
		m := readMessage(stream, method, sizes, 1+int(a)*int(b), limit)
		must.Need(t, fmt.Sprint(m.err) == fmt.Sprint(whole.err),
			"%q in pieces of %v: %v, and whole: %v", stream, sizes, m.err, whole.err)
		if !reflect.DeepEqual(m.head, whole.head) || m.content != whole.content || m.err == nil && m.rest != whole.rest || !reflect.DeepEqual(m.trailer, whole.trailer) {
			t.Fatalf("%q in pieces of %v: %+v %q %q, and whole: %+v %q %q", stream, sizes, m.head, m.content, m.rest, whole.head, whole.content, whole.rest)
		}
	}
	return whole
}

// clean returns the fields that a message hands on: without those that are the writer's
// own.
func clean(h http.Header, request bool) http.Header {
	h = h.Clone()
	for key := range h {
		if isOwn(key) || key == "Upgrade" || request && key == host {
			delete(h, key)
		}
	}
	return h
}

// sent returns the trailers that came.
func sent(h http.Header) http.Header {
	came := http.Header{}
	for key, values := range h {
		if len(values) > 0 && !isOwn(key) && key != host {
			came[key] = values
		}
	}
	return came
}

// sameHeader compares all fields but the Cache-Control that net/http makes of Pragma.
func sameHeader(got, want http.Header) bool {
	got, want = got.Clone(), want.Clone()
	if got["Pragma"] != nil && got["Cache-Control"] == nil {
		want.Del("Cache-Control")
	}
	return reflect.DeepEqual(got, want)
}

// stricter are the faults of requests that http.ReadRequest does not see.
var stricter = []Kind{
	NoHost, BadHost, BadExpect, // net/http's server sees these
	UnknownVersion, Preface, // and these
	ManyLengths,        // of the same number
	LengthBesideCoding, // the coding counts
	OldCoding,          // it is ignored
	BlankBeforeColon, BadName, Fold,
	NoURL,
}

// stricterBody are the faults of bodies that net/http does not see, or sees at another
// byte.
var stricterBody = []Kind{BadTrailer, TrailerTooLarge, ChunkTooWordy, BadChunkSize}

func FuzzRequest(f *testing.F) {
	for i, s := range requestSamples {
		f.Add([]byte(s), uint8(i%7), uint8(i))
	}
	f.Fuzz(func(t *testing.T, stream []byte, a, b uint8) { checkRequest(t, stream, a, b) })
}

// checkRequest reads a stream in all ways, compares it with what net/http reads, and hands
// it on.
func checkRequest(t *testing.T, stream []byte, a, b uint8) {
	m := checkSplits(t, stream, "", a, b, Limit{})
	in := bufio.NewReaderSize(bytes.NewReader(skipLines(stream)), 64<<10)
	theirs, err := http.ReadRequest(in)
	if m.head == nil {
		if err == nil && !slices.Contains(stricter, m.kind()) && m.err != io.EOF && theirs.RequestURI != "" { // that is a CONNECT without a target
			t.Fatalf("%q: %v, and net/http takes it", stream, m.err)
		}
		return
	}
	_, urlErr := parseTarget(m.head.Method, m.head.Target)
	if err != nil {
		must.Need(t, urlErr != nil, "%q: net/http has %v", stream, err)
	} else {
		ours, err := m.head.Request(t.Context(), m.head.Target, m.body)
		must.OK(t, err, "%q", stream)
		delete(theirs.Header, host)
		if theirs.Method != ours.Method || theirs.RequestURI != ours.RequestURI || !reflect.DeepEqual(theirs.URL, ours.URL) || theirs.Host != ours.Host || theirs.Proto != ours.Proto ||
			theirs.ContentLength != ours.ContentLength || theirs.Close != ours.Close || !reflect.DeepEqual(theirs.TransferEncoding, ours.TransferEncoding) || !sameHeader(ours.Header, theirs.Header) {
			t.Fatalf("%q is\n%+v, and for net/http\n%+v", stream, ours, theirs)
		}
		compareBody(t, stream, m, theirs.Body, in, func() http.Header { return theirs.Trailer })
	}
	if m.err == nil {
		handOn(t, stream, m, "", urlErr == nil)
	}
}

// compareBody compares the body of m with the one that net/http reads of the same stream.
func compareBody(t *testing.T, stream []byte, m *message, body io.Reader, in *bufio.Reader, trailer func() http.Header) {
	t.Helper()
	content, err := io.ReadAll(body)
	if m.err != nil {
		must.Need(t, err != nil || slices.Contains(stricterBody, m.kind()),
			"%q: %v, and net/http reads the body", stream, m.err)
		return
	}
	rest, _ := io.ReadAll(in)
	if err != nil || string(content) != m.content || string(rest) != m.rest || !reflect.DeepEqual(sent(trailer()), sent(m.trailer)) {
		t.Fatalf("%q: the body is %q, with %v, before %q, and for net/http %q (%v), with %v, before %q", stream, m.content, m.trailer, m.rest, content, err, trailer(), rest)
	}
}

// skipLines removes the line ends that are skipped before a request.
func skipLines(stream []byte) []byte {
	for n := 0; n < maxEmptyLines && len(stream) > 0 && (stream[0] == '\r' || stream[0] == '\n'); n++ {
		stream = stream[1:]
	}
	return stream
}

// handOn writes m, and reads what was written: it is the same message with nothing behind
// it, for net/http as well. method is that of the request for an answer.
func handOn(t *testing.T, stream []byte, m *message, method string, readable bool) {
	t.Helper()
	h := m.head
	out := &Message{
		Method: h.Method, Target: h.Target, Status: h.Status, Phrase: h.Phrase, Header: h.Header(), Fields: h.Fields,
		Framing: h.Framing, Length: h.Length, Close: h.Close,
	}
	if method == "" {
		out.Host = h.Get(host)
	}
	var to bytes.Buffer
	w := Writer{To: &to}
	must.OK(t, w.Begin(out), "%q is not written", stream)
	if h.Framing != NoBody {
		for p := []byte(m.content); len(p) > 0; {
			n := min(len(p), 1+len(p)/2)
			k, err := w.Write(p[:n])
			must.Need(t, k == n && err == nil, "%v %v", k, err)
			p = p[n:]
		}
	}
	must.OK(t, w.End(m.trailer), "%q", stream)
	written := to.Bytes()
	again := readMessage(written, method, []int{len(written) + 1}, 4096, Limit{})
	must.Need(t, again.err == nil && again.rest == "" && again.content == m.content,
		"%q, written as %q, is read as %q (%v) before %q", stream, written, again.content, again.err, again.rest)
	g := again.head
	if g.Method != h.Method || g.Target != h.Target || g.Status != h.Status || g.Framing != h.Framing || !reflect.DeepEqual(clean(g.Header(), method == ""), clean(h.Header(), method == "")) {
		t.Fatalf("%q, written as %q, is %+v", stream, written, g)
	}
	must.Need(t, reflect.DeepEqual(sent(again.trailer), sent(m.trailer)),
		"%q, written as %q, has trailers %v", stream, written, again.trailer)
	if readable {
		readByNetHTTP(t, written, m, method)
	}
}

// readByNetHTTP checks that net/http reads what was written of m as one message.
func readByNetHTTP(t *testing.T, written []byte, m *message, method string) {
	t.Helper()
	in := bufio.NewReaderSize(bytes.NewReader(written), 64<<10)
	var header http.Header
	var body io.Reader
	if method == "" {
		r, err := http.ReadRequest(in)
		must.OK(t, err, "%q", written)
		header, body = r.Header, r.Body
	} else {
		r, err := http.ReadResponse(in, &http.Request{Method: method})
		must.OK(t, err, "%q", written)
		header, body = r.Header, r.Body
	}
	content, err := io.ReadAll(body)
	rest, _ := io.ReadAll(in)
	must.Need(t, err == nil && string(content) == m.content && len(rest) == 0,
		"%q: net/http reads %q (%v) before %q", written, content, err, rest)
	want := clean(m.head.Header(), method == "")
	must.Need(t, sameHeader(want, clean(header, method == "")), "%q: net/http has the fields %v, want %v", written, header, want)
}

// stricterAnswer are the faults of answers that http.ReadResponse does not see.
var stricterAnswer = []Kind{
	OldCoding,                                       // it is ignored
	Fold, BlankBeforeColon, BadName, LengthTooLarge, // in framing fields
	ManyLengths, BadLength, // beside net/http's reading of them
	BadStatus, // such as "+12" and "099"
}

func FuzzAnswer(f *testing.F) {
	for i, s := range answerSamples {
		f.Add([]byte(s), uint8(i%3), uint8(i%7), uint8(i))
	}
	f.Fuzz(func(t *testing.T, stream []byte, method, a, b uint8) {
		checkAnswer(t, stream, []string{"GET", "HEAD", "POST"}[method%3], a, b)
	})
}

// checkAnswer does for an answer what checkRequest does for a request.
func checkAnswer(t *testing.T, stream []byte, method string, a, b uint8) {
	m := checkSplits(t, stream, method, a, b, Limit{})
	in := bufio.NewReaderSize(bytes.NewReader(stream), 64<<10)
	theirs, err := http.ReadResponse(in, &http.Request{Method: method})
	if m.head == nil {
		must.Need(t, err != nil || slices.Contains(stricterAnswer, m.kind()), "%q: %v, and net/http takes it", stream, m.err)
		return
	}
	mended := m.head.Mended != 0 || m.head.Odd != "" || m.head.Get(trailer) != ""
	if !mended {
		must.OK(t, err, "%q: net/http has", stream)
		ours := m.head.Response(theirs.Request, m.body)
		theirs.Header, ours.Header = clean(theirs.Header, false), clean(ours.Header, false)
		if theirs.StatusCode != ours.StatusCode || strings.TrimRight(theirs.Status, " ") != strings.TrimRight(ours.Status, " ") || theirs.Proto != ours.Proto || theirs.ContentLength != ours.ContentLength ||
			theirs.Close != ours.Close || !sameHeader(ours.Header, theirs.Header) {
			t.Fatalf("%q is\n%+v, and for net/http\n%+v", stream, ours, theirs)
		}
		compareBody(t, stream, m, theirs.Body, in, func() http.Header { return theirs.Trailer })
	}
	if m.err == nil {
		handOn(t, stream, m, method, m.head.Odd == "")
	}
}

// FuzzMessage writes heads of arbitrary parts, as a hook may leave them: they are refused,
// or read back as one message.
func FuzzMessage(f *testing.F) {
	f.Add("GET", "/", "a.test", "X", "y", uint16(0), uint8(0), "body")
	f.Add("GET", "/ HTTP/1.1\r\nX: y\r\n\r\n", "a.test\r\nX: y", "transfer-encoding", "chunked\r\n\r\n", uint16(200), uint8(2), "0\r\n\r\n")
	f.Add("POST", "/", "", "content-length", "5", uint16(204), uint8(1), "")
	f.Fuzz(func(t *testing.T, method, target, hostname, name, value string, status uint16, framing uint8, content string) {
		m := Message{Method: method, Target: target, Host: hostname, Header: http.Header{name: {value, value}}, Framing: Framing(framing % 3), Length: int64(len(content))}
		as := ""
		if status > 0 {
			m.Status, m.Phrase, as = int(status), value, "GET"
			if !HasBody(as, m.Status) {
				m.Framing, m.Length = NoBody, -1
			}
		}
		if m.Framing == NoBody && (as == "" || HasBody(as, m.Status)) {
			m.Framing, m.Length = Sized, int64(len(content))
		}
		if m.Framing == NoBody {
			content = ""
		}
		var to bytes.Buffer
		w := Writer{To: &to}
		if err := w.Begin(&m); err != nil {
			must.Need(t, to.Len() == 0, "a refused head was written")
			return
		}
		_, _ = io.WriteString(&w, content)
		must.OK(t, w.End(http.Header{name: {value}}))
		again := readMessage(to.Bytes(), as, []int{to.Len() + 1}, 4096, Limit{})
		if again.kind() == BadExpect || again.kind() == TrailerTooLarge && len(name)+len(value) > maxTrailer/2 {
			return
		}
		if again.err != nil || again.rest != "" || again.content != content || again.head.Method != method && as == "" {
			t.Fatalf("%q is read as %+v %q (%v) before %q", to.Bytes(), again.head, again.content, again.err, again.rest)
		}
		again.content = content
		if _, err := url.ParseRequestURI(target); err == nil && method != "CONNECT" || as != "" {
			readByNetHTTP(t, to.Bytes(), again, as)
		}
	})
}
