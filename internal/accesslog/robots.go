package accesslog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"heed/internal/coding"
)

// Robots is an answer to a request for a robots.txt.
type Robots struct {
	Site   string // host, with its port if it is not that of the scheme
	Time   time.Time
	Status int
	Body   []byte // decoded, at most MaxRobots octets; nil: Status is not 2xx, or Err is set
	Err    error  // the body cannot be decoded; the file counts as unreachable
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
func openWARC(path string) (f *os.File, text *bufio.Reader, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, nil, err
	}
	if text, err = decompressed(f); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	} else if head, _ := text.Peek(5); string(head) != "WARC/" {
		err = fmt.Errorf("%s is not a WARC file", path)
	}
	if err != nil {
		f.Close()
	}
	return f, text, err
}

// ReadRobots calls found with each answer to a request for a robots.txt in a WARC file, in
// the order of the file, until found returns an error. damaged is set when the file ends
// early; what is before that was read.
func ReadRobots(path string, found func(*Robots) error) (damaged bool, err error) {
	f, text, err := openWARC(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	w := &warc{in: text, robots: found}
	for {
		var q Request
		_, err := w.next(&q)
		switch {
		case err == nil:
		case err == io.EOF:
			return false, nil
		case errors.Is(err, errTorn):
			return true, nil
		default:
			return false, err
		}
	}
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
	return w.robots(r)
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
	body, err := io.ReadAll(io.LimitReader(content, MaxRobots))
	if err != nil {
		return nil, err
	}
	return body, nil
}
