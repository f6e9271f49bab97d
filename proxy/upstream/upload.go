package upstream

import (
	"errors"
	"io"
	"sync"
	"time"

	"heed/internal/base/memory"
	"heed/proxy/http1"
)

// headTime is how long the head of a request is held back for the first octets of its
// body, so that both leave in one piece.
const headTime = 5 * time.Millisecond

// upload sends the body of a request, while the answer is read: that may overtake it. It
// ends with the connection at the latest.
type upload struct {
	conn  *conn
	q     *Request
	sized bool
	left  int64 // octets to come of a body with a length

	proceed chan struct{} // receives when the site wants the body; nil: it was not asked
	timer   *time.Timer   // flushes the head; nil: that was done

	writing sync.Mutex // held while the connection is written to
	begun   bool       // the head has been written; guarded by writing

	mu       sync.Mutex
	answered bool  // the head of the answer has come
	err      error // why the client's body could not be read
}

// errStopped ends an upload that the site does not want.
var errStopped = errors.New("the site has answered")

// begin sends the body of q, whose head is held back by the connection. expects: the site
// is asked first.
func (c *conn) begin(q *Request, m *http1.Message, expects bool) *upload {
	u := &upload{conn: c, q: q}
	if m.Framing == http1.Sized {
		u.sized, u.left = true, m.Length
	}
	if expects {
		u.proceed = make(chan struct{}, 1)
	} else {
		u.timer = time.AfterFunc(headTime, func() { u.write(nil, false) })
	}
	go u.run()
	return u
}

// run sends the body.
func (u *upload) run() {
	defer u.q.Body.Close()
	err := u.await()
	if err == nil {
		buf := memory.NewCopyBuffer()
		defer buf.Free()
		err = u.copy(&buf)
	}
	if u.timer != nil {
		u.timer.Stop()
	}
	u.end(err)
}

// await waits until the site wants the body, where it is asked.
func (u *upload) await() error {
	if u.proceed == nil {
		return nil
	}
	if err := u.write(nil, false); err != nil {
		return err
	}
	patience := time.NewTimer(expectContinueTimeout)
	defer patience.Stop()
	select {
	case <-u.proceed:
	case <-patience.C:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.answered {
		return errStopped
	}
	return nil
}

// copy sends what the client sends.
func (u *upload) copy(buf *memory.CopyBuffer) error {
	for {
		b := buf.Octets
		n, err := u.q.Body.Read(b)
		if u.sized {
			if int64(n) > u.left {
				err = http1.ErrLength
			}
			n = int(min(int64(n), u.left))
			u.left -= int64(n)
		}
		whole := err == io.EOF || u.sized && u.left == 0 && err == nil
		switch {
		case whole && u.left > 0:
			err = io.ErrUnexpectedEOF
			fallthrough
		case err != nil && !whole:
			return &bodyError{err}
		case whole:
			writing := u.write(b[:n], true)
			if err == nil && writing == nil {
				_, _ = u.q.Body.Read(b) // a reader that counts learns that it has ended
			}
			return writing
		}
		if n > 0 {
			if err := u.write(b[:n], false); err != nil {
				return err
			}
		}
		if n == len(b) {
			buf.Grow()
		}
	}
}

// bodyError is why a client's body could not be read.
type bodyError struct{ err error }

// Error implements error.
func (e *bodyError) Error() string { return "the request's body: " + e.err.Error() }

// Unwrap returns the cause.
func (e *bodyError) Unwrap() error { return e.err }

// write sends the head, if it was not sent, p, and where that is the last of it the end of
// the body.
func (u *upload) write(p []byte, last bool) error {
	u.writing.Lock()
	defer u.writing.Unlock()
	if len(p) == 0 && u.begun && !last {
		return nil
	}
	if len(p) > 0 {
		if _, err := u.conn.out.Write(p); err != nil {
			return err
		}
	}
	err := error(nil)
	if last {
		err = u.conn.out.End(u.q.Trailer)
	} else {
		err = u.conn.out.Flush()
	}
	if err == nil && !u.begun {
		u.begun = true
		u.q.hooks().Written()
	}
	return err
}

// end notes how the upload has ended. A body that the client has broken off breaks the
// connection: the site must not take it for whole. A site that takes no more may answer.
func (u *upload) end(err error) {
	var broken *bodyError
	u.mu.Lock()
	if errors.As(err, &broken) {
		u.err = broken
	}
	if !u.answered {
		u.conn.expectAnswer()
	}
	u.mu.Unlock()
	if broken != nil {
		u.conn.end()
	}
}

// failure returns why the client's body could not be read; nil: it could, so far.
func (u *upload) failure() error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// want lets the body go.
func (u *upload) want() {
	if u == nil || u.proceed == nil {
		return
	}
	select {
	case u.proceed <- struct{}{}:
	default:
	}
}

// gotAnswer notes that the head of the answer has come. A body that waits to be wanted is not
// sent.
func (u *upload) gotAnswer() {
	if u == nil {
		return
	}
	u.mu.Lock()
	u.answered = true
	u.mu.Unlock()
	u.want()
}
