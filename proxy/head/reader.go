package head

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"

	"heed/internal/pageurl"
)

// Reader reads the requests of one connection. Its methods follow net/http's use of a
// connection: Read is called by one goroutine at a time, and the others only while
// none is in Read, except Target, which may be called at any time.
type Reader struct {
	From  io.Reader // the connection
	Limit Limit

	state  state
	left   int64  // of a body with a length
	chunks chunks // of a chunked body
	ahead  []byte // read, and not looked at yet
	out    []byte // looked at, and not passed on yet
	head   []byte // the head that is being read, or the last one
	passed int    // octets of head that were passed on before it was complete
	held   int    // octets that Limit.Hold has counted for head
	came   bool   // octets have come since Idle
	begun  bool   // a request has come: what follows is no TLS hello, or is for a tunnel

	large *http.Request       // what Seen returns for a head that is not kept; else nil
	odd   atomic.Pointer[odd] // the target that was replaced in the last head; nil: none was
}

// Limit bounds what a Reader keeps.
type Limit struct {
	// Head is the largest head, in octets. The octets of a larger one are passed on
	// as they come.
	Head int

	// Hold is called with a number of octets before so many more octets of an
	// unfinished head are kept, by the Reader or by net/http. Its error ends the
	// connection: Read returns it.
	Hold func(octets int) error

	// Drop is called when the octets are not kept any more.
	Drop func()
}

// state is what comes next on the connection.
type state uint8

const (
	between   state = iota // a head
	inMethod               // the rest of a method, which is passed on as it comes
	inHead                 // the rest of a head
	inBody                 // the rest of a body with a length
	inChunks               // the rest of a chunked body
	unchanged              // anything, which is passed on
)

// odd is a target that net/http's parser rejects, and the one that it got.
type odd struct{ target, passed string }

const (
	keptHead  = 4 << 10 // octets of a head that may be kept with an idle connection
	maxMethod = 32      // octets of a method that are passed on before the head is complete
	maxBlank  = 4       // line ends that net/http skips before a head
)

// ErrTLS is returned by Read when a TLS hello comes in place of the first request. The next
// Read passes it on unchanged, and Rest returns it.
var ErrTLS = errors.New("head: a TLS hello")

// recordHandshake is the type of a TLS record that begins a connection (RFC 8446
// §5.1).
const recordHandshake = 0x16

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if len(r.out) > 0 {
			return r.passOut(p), nil
		}
		n, err := 0, error(nil)
		switch r.state {
		case between, inMethod:
			n, err = r.readMethod(p)
		case inHead:
			err = r.readHead()
		default:
			return r.readBody(p)
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// passOut passes on what was held back.
func (r *Reader) passOut(p []byte) int {
	n := copy(p, r.out)
	if r.out = r.out[n:]; len(r.out) > 0 {
		return n
	}
	r.out = nil
	if r.large != nil {
		r.head = nil
	}
	return n
}

// fill reads octets into p: those that were read before, or new ones.
func (r *Reader) fill(p []byte) (int, error) {
	r.came = true
	if len(r.ahead) == 0 {
		return r.From.Read(p)
	}
	n := copy(p, r.ahead)
	if r.ahead = r.ahead[n:]; len(r.ahead) == 0 {
		r.ahead = nil
	}
	return n, nil
}

// unread puts back octets that fill has returned.
func (r *Reader) unread(b []byte) {
	if len(b) > 0 {
		r.ahead = append(bytes.Clone(b), r.ahead...)
	}
}

// readMethod reads the beginning of a head into p, which is all of it as a rule. It
// returns how many octets of p are to be passed on.
func (r *Reader) readMethod(p []byte) (int, error) {
	n, err := r.fill(p)
	if n == 0 {
		return 0, err
	}
	p = p[:n] // an error comes again
	before, skipped := len(r.head), 0
	if r.state == between {
		r.head, r.large, before = r.head[:0], nil, 0
		if p[0] == recordHandshake && !r.begun {
			r.state = unchanged
			r.unread(p)
			return 0, ErrTLS
		}
		for skipped < min(n, maxBlank) && (p[skipped] == '\r' || p[skipped] == '\n') {
			skipped++
		}
		if skipped == n {
			return n, nil
		}
		r.state, r.begun = inMethod, true
	}
	r.head = append(r.head, p[skipped:]...)
	method, _, found := bytes.Cut(r.head, blank)
	switch {
	case len(method) == 0 || !isToken(method):
		r.state = unchanged
		return n, r.Limit.Hold(n)
	case !found && len(r.head) <= maxMethod:
		r.passed = len(r.head)
		return n, nil
	case len(method) > maxMethod:
		method = method[:max(before, maxMethod)]
	default:
		method = r.head[:len(method)+1]
	}
	r.state, r.passed = inHead, len(method)
	if end := headEnd(r.head, before); end > 0 && !r.complete(end) {
		r.out, r.passed = nil, end // p contains the head as it is
	}
	return skipped + r.passed - before, nil
}

// readHead reads the rest of a head, which is held back until it is complete.
func (r *Reader) readHead() error {
	size := cap(r.head)
	if len(r.head) == size {
		size = max(keptHead, min(2*size, r.Limit.Head+1))
	}
	if more := size - r.held; more > 0 {
		if err := r.Limit.Hold(more); err != nil {
			return err
		}
		r.held += more
	}
	if size > cap(r.head) {
		r.head = append(make([]byte, 0, size), r.head...)
	}
	before := len(r.head)
	n, err := r.fill(r.head[before:cap(r.head)])
	r.head = r.head[:before+n]
	if end := headEnd(r.head, before); end > 0 {
		r.complete(end)
	} else if len(r.head) > r.Limit.Head {
		r.state = unchanged
		r.passTarget()
	}
	if len(r.out) > 0 {
		return nil // the error comes again
	}
	return err
}

// complete takes the head that ends at end, finds out what follows it, and makes out
// what was not passed on of it. It reports whether a target was replaced.
func (r *Reader) complete(end int) (replaced bool) {
	r.unread(r.head[end:])
	r.head = r.head[:end]
	r.state, r.left = framing(r.head)
	r.chunks = chunks{}
	if r.held > 0 {
		r.Limit.Drop()
		r.held = 0
	}
	if len(r.head) > keptHead {
		r.large = parse(r.head)
	}
	return r.passTarget()
}

// passTarget makes out what was not passed on of the head, with a target that
// net/http's parser takes. It reports whether that is another one than the head's.
func (r *Reader) passTarget() (replaced bool) {
	from, to := targetOf(r.head)
	target := string(r.head[from:to])
	escaped := pageurl.EscapePercents(target)
	if escaped == target {
		if r.odd.Load() != nil {
			r.odd.Store(nil)
		}
		r.out = r.head[r.passed:]
		return false
	}
	r.odd.Store(&odd{target, escaped})
	r.out = slices.Concat(r.head[:from], []byte(escaped), r.head[to:])[r.passed:]
	return true
}

// Idle is called between two requests. It forgets what belongs to the last one.
func (r *Reader) Idle() {
	r.came = false
	if r.odd.Load() != nil {
		r.odd.Store(nil)
	}
	if r.state == unchanged || r.state == between && cap(r.head) > keptHead {
		r.head = nil
	}
	r.large = nil
}

// Unfinished reports whether octets of a head have come, and not all of it.
func (r *Reader) Unfinished() bool {
	return r.state == inMethod || r.state == inHead || r.state == unchanged && r.came
}

// Target returns the request target as it came on the connection, where net/http has
// uri. ok is false when net/http has another target than the one it got from r.
func (r *Reader) Target(uri string) (target string, ok bool) {
	o := r.odd.Load()
	if o == nil {
		return uri, true
	}
	return o.target, o.passed == uri
}

func isToken(b []byte) bool {
	for _, c := range b {
		if !httpguts.IsTokenRune(rune(c)) {
			return false
		}
	}
	return true
}

// headEnd returns where the head that b begins with ends; -1 when it does not. The
// first octets of b were searched before.
func headEnd(b []byte, searched int) int {
	for i := max(0, searched-2); ; i++ {
		next := bytes.IndexByte(b[i:], '\n')
		if next < 0 {
			return -1
		}
		i += next
		switch rest := b[i+1:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return i + 2
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return i + 3
		}
	}
}

// targetOf returns where the target of a head is that may hold a "%"; 0 and 0 for none.
func targetOf(head []byte) (from, to int) {
	end := bytes.IndexByte(head, '\n')
	if end < 0 || bytes.IndexByte(head[:end], '%') < 0 || bytes.HasPrefix(head, connectMethod) {
		return 0, 0
	}
	from = bytes.IndexByte(head[:end], ' ') + 1
	if length := bytes.IndexByte(head[from:end], ' '); from > 0 && length > 0 {
		return from, from + length
	}
	return 0, 0
}

// framing returns what follows a head, and the length of a body. Where net/http could
// read the fields in another way than here, that is unchanged.
func framing(head []byte) (next state, length int64) {
	line, rest, _ := bytes.Cut(head, lineEnd)
	line = bytes.TrimSuffix(line, carriageReturn)
	modern := bytes.HasSuffix(line, http11)
	if !modern && !bytes.HasSuffix(line, http10) {
		return unchanged, 0
	}
	length = -1
	chunked := false
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, lineEnd)
		if len(line) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(line, colon)
		name = bytes.TrimRight(name, " \t")
		switch {
		case len(name) == len(contentLength) && bytes.EqualFold(name, contentLength):
			n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 62)
			if err != nil || length >= 0 && length != int64(n) || isFolded(rest) {
				return unchanged, 0
			}
			length = int64(n)
		case len(name) == len(transferEncoding) && bytes.EqualFold(name, transferEncoding):
			if chunked || !modern || !bytes.EqualFold(bytes.TrimSpace(value), chunkedCoding) || isFolded(rest) {
				return unchanged, 0
			}
			chunked = true
		}
	}
	switch {
	case chunked && length >= 0:
		return unchanged, 0
	case chunked:
		return inChunks, 0
	case length > 0:
		return inBody, length
	}
	return between, 0
}

// isFolded reports whether a line continues the one before.
func isFolded(line []byte) bool { return len(line) > 0 && (line[0] == ' ' || line[0] == '\t') }

var (
	blank            = []byte(" ")
	connectMethod    = []byte("CONNECT ")
	lineEnd          = []byte("\n")
	carriageReturn   = []byte("\r")
	colon            = []byte(":")
	http10           = []byte(" HTTP/1.0")
	http11           = []byte(" HTTP/1.1")
	contentLength    = []byte("content-length")
	transferEncoding = []byte("transfer-encoding")
	chunkedCoding    = []byte("chunked")
)
