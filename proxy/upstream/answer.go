package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"heed/proxy/http1"
)

// answer is the answer to a request on a connection, and the body of its http.Response.
// Close may be called while Read waits.
type answer struct {
	conn   *conn
	ctx    context.Context // of the request
	stop   func() bool     // keeps the end of ctx from closing the connection
	upload *upload         // nil: the request has no body
	keep   bool            // the connection may serve another request
	body   http1.Body
	over   atomic.Bool // the connection is another one's, or closed
}

// exchange sends q on c, which is q's alone, and reads the answer. unanswered is true when
// the connection ended before anything came of it. A request with a body is the last one
// of c: some servers answer without reading the body and then take it for the next
// request of the connection, which no rule was applied to (request smuggling, CWE-444).
func (c *conn) exchange(q *Request, w *wish, absolute *url.URL) (resp *http.Response, unanswered bool, err error) {
	q.Reached = c.RemoteAddr()
	late, err := awaitStart(q.hooks(), false)
	if err != nil {
		c.end()
		return nil, false, err
	}
	c.reused = c.reused || late // the site may have closed it
	a := &answer{conn: c, ctx: q.Context(), keep: !w.last}
	q.sign(q.Header)
	c.message = w.message(q, absolute)
	m := &c.message
	if err := c.out.Begin(m); err != nil {
		c.end()
		return nil, false, err
	}
	a.stop = context.AfterFunc(a.ctx, c.close)
	written := error(nil)
	if hasBody(q.Request) {
		a.upload = c.begin(q, m, httpguts.HeaderValuesContainsToken(q.Header["Expect"], "100-continue"))
	} else if written = c.out.End(nil); written == nil {
		q.hooks().Written()
		c.expectAnswer()
	}
	interim, err := a.readHead(q)
	if err == nil {
		err = c.passable()
	}
	if err != nil {
		unanswered = c.reused && interim == 0 && c.saysNothing(err)
		return nil, unanswered, a.failed(err, written)
	}
	return a.response(q), false, nil
}

// awaitStart waits until a request may be written, on a connection that it has. It reports
// whether that was not at once.
func awaitStart(hooks Hooks, http2 bool) (late bool, err error) {
	for !hooks.Connected(http2) {
		late = true
		if err := hooks.Attempt(); err != nil {
			return late, err
		}
	}
	return late, nil
}

// expectAnswer bounds the wait for the head of an answer from now on.
func (c *conn) expectAnswer() { _ = c.SetReadDeadline(time.Now().Add(c.wait)) }

// readHead reads the head of the answer to q, and those of answers before it. It returns
// how many these were.
func (a *answer) readHead(q *Request) (interim int, err error) {
	c := a.conn
	budget := interimBudget(0)
	for ; ; interim++ {
		if err := c.in.ReadAnswer(&c.head, q.Method); err != nil {
			return interim, err
		}
		status := c.head.Status
		if status >= 200 || status == http.StatusSwitchingProtocols {
			a.upload.gotAnswer()
			return interim, c.SetReadDeadline(time.Time{})
		}
		if status == http.StatusContinue {
			a.upload.want()
		}
		header := c.head.Header()
		if err := budget.take(header); err != nil {
			return interim, err
		}
		q.hooks().Interim(status, header)
	}
}

// interimBudget is what the 1xx answers to a request have taken of maxResponseHeader, which
// bounds them together: a site could send them without end.
type interimBudget int

// interimLine is what an answer takes beside its fields.
const interimLine = 64

// take takes an answer, or returns the *http1.Fault of one that is too much.
func (b *interimBudget) take(header http.Header) error {
	*b += interimLine
	for name, values := range header {
		for _, value := range values {
			*b += interimBudget(len(name) + len(": \r\n") + len(value))
		}
	}
	if *b > maxResponseHeader {
		return &http1.Fault{Kind: http1.HeadTooLarge, Answer: true, Status: http.StatusBadGateway, Type: "http_response_header_section_size"}
	}
	return nil
}

// passable returns the fault of an answer whose fields heed does not pass on: with a
// control character in a value. A name that no field has reaches clients of HTTP/1.
func (c *conn) passable() error {
	if c.head.Odd == "" {
		return nil
	}
	for _, f := range c.head.Fields {
		if !httpguts.ValidHeaderFieldValue(f.Value) {
			return &http1.Fault{Kind: http1.BadValue, Answer: true, Status: http.StatusBadGateway, Type: "http_protocol_error", Field: f.Name[:min(len(f.Name), 64)]}
		}
	}
	return nil
}

// statusError is an answer with a status that no answer has.
type statusError struct{ status int }

// Error implements error.
func (e *statusError) Error() string { return fmt.Sprintf("status %03d", e.status) }

// Is reports that ErrStatus is the kind of e.
func (e *statusError) Is(target error) bool { return target == ErrStatus }

// failed ends an exchange without an answer. It returns why there is none.
func (a *answer) failed(err, written error) error {
	a.stop()
	a.conn.end()
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	if broken := a.upload.failure(); broken != nil {
		return broken
	}
	var fault *http1.Fault
	switch {
	case errors.As(err, &fault) && fault.Kind == http1.BadStatus && (a.conn.head.Status != 0 || a.conn.head.Phrase != ""):
		return &Error{NoHTTP, &statusError{a.conn.head.Status}}
	case errors.As(err, &fault):
		return &Error{NoHTTP, err}
	case isTimeout(err):
		return &Error{TooLate, errNoAnswer}
	case isLocal(err):
		return &Error{Ended, err}
	case written != nil:
		return &Error{NoAnswer, written}
	}
	return &Error{NoAnswer, err}
}

// isTimeout reports whether a deadline has passed.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// saysNothing reports whether err, of reading a head, means that nothing of an answer has
// come, but perhaps octets that no request has asked for.
func (c *conn) saysNothing(err error) bool {
	if fault, ok := errors.AsType[*http1.Fault](err); ok {
		return fault.Kind == http1.NotHTTP
	}
	return len(c.in.Buffered()) == 0 && !isTimeout(err)
}

// response returns the answer whose head has been read, and decides who may use the
// connection next.
func (a *answer) response(q *Request) *http.Response {
	c := a.conn
	a.body.Reset(&c.in, &c.head)
	resp := c.head.Response(q.Request, &a.body)
	if q.Answer != nil {
		q.Answer = append(q.Answer, c.head.Fields...)
	}
	pins, begun := challenges(resp)
	c.pinned, c.begun, c.authority = c.pinned || pins, begun, q.URL.Host
	kept := !c.pinned || c.client.pin(c)
	a.keep = a.keep && kept && !c.head.Close
	c.suspect = q.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		resp.Body = a.upgraded()
	case a.body.Ended():
		a.finish(true)
	default:
		resp.Body = a
	}
	return resp
}

// upgraded returns the connection as the body of a 101: both directions of it.
func (a *answer) upgraded() io.ReadWriteCloser {
	c := a.conn
	c.host.pool.forget(c)
	return &upgradedConn{readAhead{c.Conn, c.in.Rest()}, a}
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if a.over.Load() {
		if a.body.Ended() {
			return 0, io.EOF
		}
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := a.body.Read(p)
	if err != nil {
		a.finish(a.body.Ended())
		if err != io.EOF && a.ctx.Err() != nil {
			err = context.Cause(a.ctx)
		} else if broken := a.upload.failure(); err != io.EOF && broken != nil {
			err = broken
		}
	}
	return n, err
}

// Close implements io.Closer. An answer that was not read to its end closes the
// connection.
func (a *answer) Close() error {
	a.finish(false)
	return nil
}

// finish gives up the connection, whose answer has ended when whole is true.
func (a *answer) finish(whole bool) {
	if a.over.Swap(true) {
		return
	}
	if a.stop() && whole && a.keep {
		a.conn.release()
		return
	}
	a.conn.end()
}

// upgradedConn is a connection that has become another protocol's.
type upgradedConn struct {
	readAhead
	answer *answer
}

// Close implements io.Closer.
func (c *upgradedConn) Close() error {
	c.answer.finish(false)
	return nil
}
