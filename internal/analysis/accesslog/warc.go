package accesslog

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/base/coding"
	"heed/internal/base/memo"
)

// Bounds of what is read of a WARC record.
const (
	maxHead    = 64 << 10 // octets of its own header
	maxMessage = 1 << 20  // octets of the HTTP message in it, as far as they are needed
	maxPending = 64       // requests and responses that wait for the other
)

// warc reads the requests of a WARC file (ISO 28500): those of its request records, with
// the status of the response record that belongs to each. Of a response without a request
// record the target is its URI and the User-Agent that of the warcinfo record.
type warc struct {
	in      *bufio.Reader
	members *gzipMembers // of a gzip file; else nil
	n       int64
	agent   string // of the warcinfo record
	pending []*exchange
	ready   []*exchange
	ended   error
	robots  func(*Robots) error // nil: not needed
	held    *Robots             // passed on when the end of its record is where it should be
	damaged bool                // a record was, or its length is wrong
}

// exchange is a request record, a response record, or both.
type exchange struct {
	Request
	request    bool // else it is a response record alone
	id         string
	concurrent []string
	uri        string
}

// next returns the next request. Requests are returned when their response was read.
func (w *warc) next(q *Request) (reason string, err error) {
	for len(w.ready) == 0 {
		if w.ended != nil {
			if len(w.pending) == 0 {
				return "", w.ended
			}
			w.ready, w.pending = w.pending, nil
			break
		}
		reason, err := w.record()
		if err != nil {
			w.ended = err
			continue
		}
		if reason != "" {
			q.Line = w.n
			return reason, nil
		}
	}
	x := w.ready[0]
	w.ready = w.ready[1:]
	x.Source, x.source = q.Source, q.source
	*q = x.Request
	if !x.request {
		q.Method, q.UserAgent = http.MethodGet, w.agent
	}
	if u, err := url.Parse(x.uri); err == nil {
		q.Scheme, q.Target, q.Host = u.Scheme, cmp.Or(q.Target, u.RequestURI()), cmp.Or(q.Host, u.Host)
	}
	return "", nil
}

// The reasons of damage that ends a record, and not the file.
const (
	badLength  = "a WARC record whose Content-Length is wrong; reading goes on with the record after it"
	badRecord  = "a damaged WARC record; reading goes on with the record after it"
	noResponse = "a response record without a response"
)

// record reads one record. After damage it goes on with the next one that can be found.
func (w *warc) record() (reason string, err error) {
	skipped, err := w.toHeader()
	if skipped && (err == nil || err == io.EOF) {
		w.damaged = true
		return badLength, w.giveRobots(errors.New("the length of its WARC record is wrong")) // the end of the file is found again
	}
	if err == nil || err == io.EOF {
		if given := w.giveRobots(nil); given != nil {
			return "", given
		}
	}
	if err != nil {
		return w.lost(err)
	}
	w.n++
	header, err := w.header()
	if err != nil {
		return w.lost(err)
	}
	size, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err != nil || size < 0 {
		w.damaged = true
		return "a WARC record without a Content-Length; reading goes on with the record after it", nil
	}
	body := &io.LimitedReader{R: w.in, N: size}
	if reason, err = w.take(header, body); err != nil {
		return w.lost(err)
	}
	if _, err = io.Copy(io.Discard, body); err == nil && body.N > 0 {
		err = torn(io.ErrUnexpectedEOF)
	}
	if err != nil {
		return w.lost(err)
	}
	return reason, nil
}

// lost returns badRecord for the damage of one member of a gzip file, after which the next one is
// read, and other errors as they are.
func (w *warc) lost(err error) (string, error) {
	if !errors.Is(err, errMember) {
		return "", err
	}
	w.damaged = true
	_, _ = w.in.Discard(w.in.Buffered()) // what is left of the member
	w.members.resume()
	return badRecord, w.giveRobots(err)
}

// giveRobots passes on the answer that is held, with the damage of its record.
func (w *warc) giveRobots(damage error) error {
	r := w.held
	if w.held = nil; r == nil {
		return nil
	}
	if damage != nil && r.Body != nil {
		r.Err = damage
	}
	return w.robots(r)
}

// torn marks an unexpected end.
func torn(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errTorn, err)
	}
	return err
}

// version begins the header of a record; each version of the format so far has the number 0 or 1.
var version = []byte("WARC/")

// toHeader reads up to the header of the next record, which begins after the end of a line.
// skipped reports that there was anything but line ends before it.
func (w *warc) toHeader() (skipped bool, err error) {
	for {
		head, err := w.in.Peek(maxHead)
		text := bytes.TrimLeft(head, "\r\n")
		switch {
		case bytes.HasPrefix(text, version):
			_, _ = w.in.Discard(len(head) - len(text)) // it was peeked
			return skipped, nil
		case len(text) == 0 && len(head) > 0:
			_, _ = w.in.Discard(len(head))
			continue
		case len(head) == 0:
			return skipped, err
		}
		skipped = true
		keep := len(text) // what may begin a header goes on in what was not peeked
		if at := bytes.Index(text, append([]byte("\n"), version...)); at >= 0 {
			keep = at + 1
		} else if err == nil {
			keep -= len(version)
		}
		_, _ = w.in.Discard(len(head) - len(text) + max(1, keep))
	}
}

// header reads the version and the header of a record.
func (w *warc) header() (textproto.MIMEHeader, error) {
	head, err := w.in.Peek(maxHead)
	end := headerEnd().FindIndex(head)
	switch {
	case end != nil:
	case err != nil && err != io.EOF:
		return nil, err
	case len(head) < maxHead:
		_, _ = w.in.Discard(len(head))
		return nil, fmt.Errorf("%w: record %d has no end of its header", errTorn, w.n)
	default:
		_, _ = w.in.Discard(len(version))
		return textproto.MIMEHeader{}, nil
	}
	_, fields, _ := bytes.Cut(head[:end[1]], []byte("\n"))
	header, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(fields))).ReadMIMEHeader() // of a malformed one, what is before the fault
	_, _ = w.in.Discard(end[1])                                                                 // it was peeked
	return header, nil
}

var headerEnd = memo.Expression(`\n\r?\n`)

// take keeps what is needed of a record.
func (w *warc) take(header textproto.MIMEHeader, body *io.LimitedReader) (reason string, err error) {
	kind := header.Get("WARC-Type")
	if kind == "warcinfo" {
		text, err := io.ReadAll(io.LimitReader(body, maxHead))
		w.info(text)
		return aside, err
	}
	isHTTP := strings.HasPrefix(strings.TrimPrefix(header.Get("WARC-Target-URI"), "<"), "http")
	if !isHTTP || kind != "request" && kind != "response" && kind != "revisit" {
		return aside, nil
	}
	x := &exchange{
		Request: Request{Line: w.n}, id: header.Get("WARC-Record-ID"), concurrent: header.Values("WARC-Concurrent-To"),
		uri: strings.Trim(header.Get("WARC-Target-URI"), "<>"), request: kind == "request",
	}
	if x.Time, err = time.Parse(time.RFC3339Nano, header.Get("WARC-Date")); err != nil || !plausible(x.Time) {
		return "a record without a valid WARC-Date", nil
	}
	in := bufio.NewReader(io.LimitReader(body, maxMessage))
	if x.request {
		return w.takeRequest(x, in)
	}
	return w.takeResponse(x, in, kind, body)
}

// info keeps the User-Agent of a warcinfo record.
func (w *warc) info(text []byte) {
	for line := range bytes.Lines(text) {
		switch name, value, ok := strings.Cut(string(line), ":"); strings.ToLower(strings.TrimSpace(name)) {
		case "http-header-user-agent", "user-agent":
			if ok {
				w.agent = strings.TrimSpace(value)
			}
		}
	}
}

func (w *warc) takeRequest(x *exchange, in *bufio.Reader) (reason string, err error) {
	message := textproto.NewReader(in)
	first, err := message.ReadLine()
	if err != nil {
		return "a request record without a request", cannotRead(err)
	}
	x.Method, x.Target = requestLine(first)
	header, err := message.ReadMIMEHeader() // of a malformed one, what is before the fault
	if err = cannotRead(err); err != nil {
		return "", err
	}
	x.Host, x.UserAgent, x.Referrer = header.Get("Host"), header.Get("User-Agent"), header.Get("Referer")
	w.pair(x)
	return "", nil
}

// cannotRead returns an error of the file, and nil for one of what is in the record.
func cannotRead(err error) error {
	if errors.Is(err, errTorn) {
		return err
	}
	return nil
}

// takeResponse keeps a response record, of which in reads the beginning.
func (w *warc) takeResponse(x *exchange, in *bufio.Reader, kind string, record *io.LimitedReader) (reason string, err error) {
	http1 := asHTTP1(in)
	response, err := http.ReadResponse(http1, nil)
	if err != nil {
		return noResponse, cannotRead(err)
	}
	defer response.Body.Close()
	x.Status, x.Bytes = response.StatusCode, record.N+int64(in.Buffered()) // what follows the header
	if http1 != in {
		x.Bytes += int64(http1.Buffered())
	}
	if w.robots != nil && kind == "response" {
		if err := w.takeRobots(x, response); err != nil {
			return "", err
		}
	}
	w.pair(x)
	return "", nil
}

// asHTTP1 returns in with a version of HTTP/1 in a status line of HTTP/2 or HTTP/3, which crawlers
// write down although those have none ("HTTP/2 200").
func asHTTP1(in *bufio.Reader) *bufio.Reader {
	const written = "HTTP/2 "
	head, _ := in.Peek(len(written))
	if len(head) < len(written) || string(head[:5]) != "HTTP/" || head[5] < '2' || head[5] > '3' || head[6] != ' ' {
		return in
	}
	_, _ = in.Discard(len(written)) // it was peeked
	return bufio.NewReader(io.MultiReader(strings.NewReader("HTTP/1.1 "), in))
}

// pair finds the request of a response, or the response of a request.
func (w *warc) pair(x *exchange) {
	for i, y := range w.pending {
		if y.request == x.request || !x.belongs(y) {
			continue
		}
		w.pending = slices.Delete(w.pending, i, i+1)
		if y.request {
			x, y = y, x
		}
		x.Status, x.Bytes = y.Status, y.Bytes
		w.ready = append(w.ready, x)
		return
	}
	if w.pending = append(w.pending, x); len(w.pending) > maxPending {
		w.ready = append(w.ready, w.pending[0])
		w.pending = w.pending[1:]
	}
}

// belongs reports whether two records are of one exchange: one names the other, or
// neither names any and their URIs are the same.
func (x *exchange) belongs(y *exchange) bool {
	return slices.Contains(x.concurrent, y.id) || slices.Contains(y.concurrent, x.id) ||
		len(x.concurrent)+len(y.concurrent) == 0 && x.uri == y.uri
}

// Robots is an answer to a request for a robots.txt.
type Robots struct {
	Site   string // host, with its port if it is not that of the scheme
	Time   time.Time
	Status int
	Body   []byte // decoded, at most MaxRobots octets; nil: Status is not 2xx
	Err    error  // Body cannot be decoded to its end; the file counts as unreachable
}

// MaxRobots is how many octets of a robots.txt are kept (RFC 9309 §2.5).
const MaxRobots = 512 << 10

// IsWARC reports whether a file, which may be compressed, is a WARC file.
func IsWARC(path string) bool {
	f, _, err := openWARC(path)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// openWARC opens a WARC file. The error of another file says that it is none.
func openWARC(path string) (f *os.File, w *warc, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, nil, err
	}
	text, members, err := decompressed(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	} else if head, _ := text.Peek(5); string(head) != "WARC/" {
		err = fmt.Errorf("%s is not a WARC file", path)
	}
	if err != nil {
		f.Close()
	}
	return f, &warc{in: text, members: members}, err
}

// ReadRobots calls found with each answer to a request for a robots.txt in a WARC file, in
// the order of the file, until found returns an error. damaged is set when the file ends
// early or a record of it is damaged; the others were read.
func ReadRobots(path string, found func(*Robots) error) (damaged bool, err error) {
	f, w, err := openWARC(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	w.robots = found
	for err == nil {
		_, err = w.next(&Request{})
	}
	switch {
	case err == io.EOF:
		return w.damaged, nil
	case errors.Is(err, errTorn):
		return true, nil
	}
	return false, err
}

// takeRobots passes on an answer to a request for a robots.txt.
func (w *warc) takeRobots(x *exchange, response *http.Response) error {
	u, err := url.Parse(x.uri)
	if err != nil || u.EscapedPath() != "/robots.txt" {
		return nil
	}
	r := &Robots{Site: u.Host, Time: x.Time, Status: x.Status}
	if u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		r.Site = u.Hostname()
	}
	if x.Status >= 200 && x.Status < 300 {
		if r.Body, r.Err = bodyOf(response); cannotRead(r.Err) != nil {
			return r.Err
		}
	}
	w.held = r
	return nil
}

// bodyOf returns the decoded body of a response, as far as it is kept.
func bodyOf(response *http.Response) ([]byte, error) {
	content, err := coding.NewReader(coding.Name(response.Header.Values("Content-Encoding")), response.Body)
	if err == io.EOF {
		return []byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(content, MaxRobots))
}
