package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"heed/rules"
)

// leastProgress is what a request's body has to bring in Limits.BodyTime, unless
// it ends, in octets.
const leastProgress = 1 << 10

// patientBody reads a client's body with patience: the time that it may take is
// that which the reader waits for it, so that a slow site is not held against the
// client. An exchange that has its answer may take its time: streams in both
// directions do.
type patientBody struct {
	io.Reader
	exchange *exchange
	timer    *time.Timer               // runs while a Read waits; nil before the first
	left     time.Duration             // of the time for the octets that are to come
	got      int                       // of leastProgress
	late     atomic.Pointer[overLimit] // why no more is read; nil while more is
}

// patient returns r's body, watched.
func (x *exchange) patient(r *http.Request) *patientBody {
	return &patientBody{Reader: r.Body, exchange: x, left: x.settings.Limits.BodyTime}
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {
	if b.exchange.writer.isAnswered() {
		return b.Reader.Read(p)
	}
	began := time.Now()
	if b.timer == nil {
		b.timer = time.AfterFunc(b.left, b.expire)
	} else {
		b.timer.Reset(b.left)
	}
	n, err := b.Reader.Read(p)
	b.timer.Stop()
	if over := b.late.Load(); over != nil && err != nil {
		return n, over
	}
	b.left -= time.Since(began)
	if b.got += n; b.got >= leastProgress {
		b.got, b.left = 0, b.exchange.settings.Limits.BodyTime
	}
	b.left = max(b.left, 1)
	return n, err
}

// expire ends the Read that waits. The lock keeps the handler from returning
// meanwhile, after which the connection is not its own.
func (b *patientBody) expire() {
	w := b.exchange.writer
	w.interim.Lock()
	defer w.interim.Unlock()
	if !w.final {
		b.late.Store(b.exchange.proxy.reach(limitBodyTime))
		_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now()) // there is nobody to tell
	}
}

func (w *responseWriter) isAnswered() bool {
	w.interim.Lock()
	defer w.interim.Unlock()
	return w.final
}

// Read implements net.Conn. A head that begins and does not come in time is
// answered, which net/http leaves undone.
func (c *clientConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.answering.Load() {
		return n, err
	}
	if n > 0 {
		c.begun.Store(true)
	}
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && c.begun.Load() && !c.late.Swap(true) {
		c.tellLate()
	}
	return n, err
}

// tellLate answers a request whose head did not come in time, and records it.
func (c *clientConn) tellLate() {
	over := c.proxy.reach(limitHeaderTime)
	if c.tunnel != nil {
		c.tunnel.requests.Add(1)
	}
	x := c.proxy.newUnread(c.RemoteAddr().String(), c.tunnel)
	x.entry.Outcome.Status = over.limit.status()
	x.note(rules.ReasonLimit, over.Error())
	if x.recorded {
		_, _ = io.WriteString(c.Conn, c.proxy.rawAnswer(over)) // it may have gone
	}
}

// lateTunnel counts a tunnel that ended because which was reached.
func (p *Proxy) lateTunnel(which limit, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.reach(which)
	}
}

// lateBody returns which limit ended the client's body; nil when none did. That
// also ends the exchange's context, so that the site's answer may be the lack of
// one.
func (x *exchange) lateBody() *overLimit {
	if b, ok := x.upload.Reader.(*patientBody); ok {
		return b.late.Load()
	}
	return nil
}
