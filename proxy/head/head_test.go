package head

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"heed/internal/pageurl"
)

// newReader returns a Reader of what comes from a connection.
func newReader(from io.Reader, limit Limit) *Reader { return &Reader{From: from, Limit: limit} }

// counter is what a Reader may keep.
type counter struct {
	held, most int
	bound      int // 0: none
}

var errBound = errors.New("too many octets")

func (c *counter) limit(head int) Limit {
	return Limit{Head: head, Drop: func() { c.held = 0 }, Hold: func(n int) error {
		if c.bound > 0 && c.held+n > c.bound {
			return errBound
		}
		c.held += n
		c.most = max(c.most, c.held)
		return nil
	}}
}

// request is what net/http's server gets of a request.
type request struct{ method, uri, host, body string }

// requests reads with net/http's parser until an error; target returns the target of
// a request, and idle is called after each.
func requests(from io.Reader, target func(uri string) string, idle func()) (all []request) {
	for b := bufio.NewReader(from); ; {
		r, err := http.ReadRequest(b)
		if err != nil {
			return all
		}
		uri := target(r.RequestURI)
		body, err := io.ReadAll(r.Body)
		if all = append(all, request{r.Method, uri, r.Host, string(body)}); err != nil {
			return all
		}
		idle()
	}
}

// sizes reads octets in pieces of the given sizes, by turns.
type sizes struct {
	text string
	n    []int
	at   int
}

// Read implements io.Reader.
func (s *sizes) Read(p []byte) (int, error) {
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n[s.at%len(s.n)])], s.text)
	s.at++
	s.text = s.text[n:]
	return n, nil
}

// ways are some ways for octets to arrive.
var ways = [][]int{{1}, {2}, {3, 1}, {7}, {64}, {1, 4096}, {1 << 20}}

// samples are connections: a sequence of requests each.
var samples = []string{
	"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET http://a.test/100%-cotton?x=%zz HTTP/1.1\r\nHost: a.test\r\n\r\nGET /b HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET /% HTTP/1.1\r\nHost: a.test\r\n\r\nGET /%25 HTTP/1.1\r\nHost: a.test\r\n\r\nGET /%zz HTTP/1.0\r\n\r\n",
	"POST /%zz HTTP/1.1\r\nHost: a.test\r\nContent-Length: 22\r\n\r\nGET /%zz HTTP/1.1\r\n\r\nxGET /%2 HTTP/1.1\r\nHost: b.test\r\n\r\n",
	"POST /%zz HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"%\"\r\nGET /\r\n0\r\nA: b\r\n\r\nGET /%1 HTTP/1.1\r\nHost: b.test\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: b.test\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabcGET /b%zz HTTP/1.1\r\nHost: b.test\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n 4\r\n\r\nabcGET /b HTTP/1.1\r\nHost: b.test\r\n\r\n",
	"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
	"GET /a HTTP/1.1\nHost: a.test\nX: y\n \n\nGET /b HTTP/1.1\nHost: b.test\n\n",
	"GET /" + strings.Repeat("%", 3000) + " HTTP/1.1\r\nHost: a.test\r\nX: " + strings.Repeat("y", 20000) + "\r\n\r\nGET /b HTTP/1.1\r\nHost: b.test\r\n\r\n",
	strings.Repeat("M", 100) + " /%zz HTTP/1.1\r\nHost: a.test\r\n\r\nGET /b HTTP/1.1\r\nHost: b.test\r\n\r\n",
	"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
	"GET http://a%zz.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GARBAGE\r\n\r\n", " / HTTP/1.1\r\n\r\n", "GET /a b%zz HTTP/1.1\r\nHost: a.test\r\n\r\n", "",
}

// check reads a connection through a Reader. All that net/http reads without it is
// read in the same way; a request more has a target that net/http rejects; and without
// one, the octets are what came.
func check(t *testing.T, stream string, way []int) {
	t.Helper()
	c := &counter{}
	r := newReader(&sizes{stream, way, 0}, c.limit(64<<10))
	var passed bytes.Buffer
	odd := false
	got := requests(io.TeeReader(r, &passed), func(uri string) string {
		target, ok := r.Target(uri)
		if !ok {
			t.Errorf("%q: net/http has %q, which is another target", stream, uri)
		}
		if target != uri {
			odd = true // Idle forgets it
			if pageurl.EscapePercents(target) != uri {
				t.Errorf("%q became %q", target, uri)
			}
		}
		return target
	}, r.Idle)
	if stream != "" && stream[0] == recordHandshake {
		return
	}
	want := requests(strings.NewReader(stream), func(uri string) string { return uri }, func() {})
	for i, w := range want {
		if i >= len(got) {
			t.Errorf("%.300q in pieces of %v: %q is missing", stream, way, w)
		} else if got[i] != w {
			t.Errorf("%.300q in pieces of %v: read %q, want %q", stream, way, got[i], w)
		}
	}
	if len(got) > len(want) && pageurl.EscapePercents(got[len(want)].uri) == got[len(want)].uri {
		t.Errorf("%.300q: net/http rejects %q", stream, got[len(want)])
	}
	if !odd && r.odd.Load() == nil && !strings.HasPrefix(stream, passed.String()) {
		t.Errorf("%.300q was passed on as %.300q", stream, passed.String())
	}
	if c.held > 0 && !r.Unfinished() && r.state != unchanged {
		t.Errorf("%.300q: %d octets are still counted", stream, c.held)
	}
}

func TestReader_ReadsWhatNetHTTPReads(t *testing.T) {
	for _, stream := range samples {
		for _, way := range ways {
			check(t, stream, way)
		}
	}
}

// A target that net/http rejects reaches the handler as it came, wherever it is on the
// connection, and in whatever pieces.
func TestReader_KeepsOddTargets(t *testing.T) {
	for i, want := range map[int][]string{
		1:  {"http://a.test/100%-cotton?x=%zz", "/b"},
		2:  {"/%", "/%25", "/%zz"},
		3:  {"/%zz", "/%2"},
		4:  {"/%zz", "/%1"},
		6:  {"/", "/b%zz"},
		11: {"/%zz", "/b"},
	} {
		for _, way := range ways {
			c := &counter{}
			r := newReader(&sizes{samples[i], way, 0}, c.limit(64<<10))
			var got []string
			for _, q := range requests(r, func(uri string) string { target, _ := r.Target(uri); return target }, r.Idle) {
				got = append(got, q.uri)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q in pieces of %v: %q, want %q", samples[i], way, got, want)
			}
		}
	}
}

// After framing that could be read in two ways nothing is replaced any more, and a
// target that is not the one that was passed on is no target.
func TestReader_ChangesNothingInDoubt(t *testing.T) {
	const doubt = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
	const rest = "0\r\n\r\nGET /%zz HTTP/1.1\r\nHost: a.test\r\n\r\n"
	r := newReader(strings.NewReader(doubt+rest), (&counter{}).limit(64<<10))
	if got, err := io.ReadAll(r); string(got) != doubt+rest || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	r = newReader(strings.NewReader("GET /%zz HTTP/1.1\r\n\r\n"), (&counter{}).limit(64<<10))
	_, _ = io.ReadAll(r)
	if target, ok := r.Target("/%25zz"); !ok || target != "/%zz" {
		t.Errorf("%q, %v", target, ok)
	}
	if target, ok := r.Target("/other"); ok {
		t.Errorf("/other is taken for %q", target)
	}
}

// The octets of a head that is not complete are counted before they are kept, and no
// more is kept than may be.
func TestReader_BoundsUnfinishedHeads(t *testing.T) {
	endless := "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20)
	for _, stream := range []string{endless, strings.Repeat("M", 1<<20), "GARBAGE\r\n" + endless} {
		c := &counter{bound: 20 << 10}
		r := newReader(strings.NewReader(stream), c.limit(128<<10))
		passed, err := io.ReadAll(r)
		if !errors.Is(err, errBound) {
			t.Errorf("%.20q: %v", stream, err)
		}
		if kept := cap(r.head) + len(r.ahead) + len(r.out); kept > c.bound+4096 || len(passed) > c.bound+4096 {
			t.Errorf("%.20q: %d octets are kept and %d passed on, of %d", stream, kept, len(passed), c.bound)
		}
	}
	c := &counter{}
	r := newReader(strings.NewReader(endless), c.limit(8<<10))
	if passed, err := io.ReadAll(r); len(passed) != len(endless) || err != nil {
		t.Errorf("%d of %d octets, %v: net/http refuses a head that is too large", len(passed), len(endless), err)
	}
}

// An idle connection keeps nothing of a large head.
func TestReader_KeepsNoLargeHeadWhileIdle(t *testing.T) {
	large := "GET / HTTP/1.1\r\nHost: a.test\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n"
	for _, way := range ways {
		r := newReader(&sizes{large, way, 0}, (&counter{}).limit(128<<10))
		if got := requests(r, func(uri string) string { return uri }, r.Idle); len(got) != 1 {
			t.Fatalf("%d requests were read", len(got))
		}
		if r.large != nil || cap(r.head)+cap(r.out)+cap(r.ahead) > keptHead {
			t.Errorf("in pieces of %v: %v, and %d, %d and %d octets are kept", way, r.large != nil, cap(r.head), cap(r.out), cap(r.ahead))
		}
	}
}

// What is left when a connection is not HTTP any more is all that was not passed on.
func TestReader_GivesTheRestBack(t *testing.T) {
	const connect, inside = "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", "GET /half HTT"
	for _, way := range ways {
		r := newReader(&sizes{connect + inside, way, 0}, (&counter{}).limit(64<<10))
		b := bufio.NewReader(r)
		if _, err := http.ReadRequest(b); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, b.Buffered())
		_, _ = io.ReadFull(b, head)
		left, _ := io.ReadAll(io.MultiReader(bytes.NewReader(append(head, r.Rest()...)), r))
		if string(left) != inside {
			t.Errorf("in pieces of %v: %q, want %q", way, left, inside)
		}
	}
}

func TestReader_Seen(t *testing.T) {
	for stream, want := range map[string]string{
		"GET /a%zz HTTP/3.0\r\nUser-Agent: x/1\r\nHost: a\r\nHost: b\r\n\r\n": "GET /a%zz HTTP/3.0 x/1 a,b",
		"GET /a b HTTP/1.1\r\nuser-agent : x/1\r\n\r\n":                       "GET /a b HTTP/1.1 x/1 ",
		"GARBAGE\r\n\r\n": "GARBAGE    ",
		"POST /half":      "POST    ",
		"POST / HTTP/1.1\r\nUser-Agent: x/1\r\nHost: half":                                  "POST / HTTP/1.1 x/1 ",
		"GET / HTTP/1.1\r\nUser-Agent: big\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\n": "GET / HTTP/1.1 big ",
	} {
		r := newReader(iotest.HalfReader(strings.NewReader(stream)), (&counter{}).limit(64<<10))
		_, _ = io.ReadAll(r)
		s := r.Seen()
		if got := strings.Join([]string{s.Method, s.RequestURI, s.Proto, s.Header.Get("User-Agent"), strings.Join(s.Header["Host"], ",")}, " "); got != want {
			t.Errorf("%.60q: %q, want %q", stream, got, want)
		}
	}
	if s := newReader(strings.NewReader(""), Limit{}).Seen(); s != nil {
		t.Errorf("of nothing %+v was seen", s)
	}
}

func TestReader_RecognisesTLS(t *testing.T) {
	const hello = "\x16\x03\x01\x00\x05hello"
	r := newReader(strings.NewReader(hello), (&counter{}).limit(64<<10))
	if _, err := r.Read(make([]byte, 100)); err != ErrTLS {
		t.Error(err)
	}
	if rest := r.Rest(); string(rest) != hello {
		t.Errorf("%q", rest)
	}
	for _, before := range []string{"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"} {
		for _, way := range ways {
			r := newReader(&sizes{before + hello, way, 0}, (&counter{}).limit(64<<10))
			if got, err := io.ReadAll(r); string(got) != before+hello || err != nil {
				t.Errorf("after a request, in pieces of %v: %q, %v", way, got, err)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	for i, s := range samples {
		f.Add([]byte(s), uint8(1+i%7), uint8(1+i))
	}
	f.Fuzz(func(t *testing.T, stream []byte, a, b uint8) {
		check(t, string(stream), []int{1 + int(a), 1 + int(b)})
	})
}
