package proxy

import (
	"cmp"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"heed/proxy/http1"
	"heed/proxy/limit"
)

// uploadBody is a request's body, counted. The Transport may go on reading it
// after it has returned the answer.
type uploadBody struct {
	slowBody
	trailer http.Header // filled when the body has been read
	n       atomic.Int64
	pending atomic.Bool           // an HTTP/1 client may still be sending it; HTTP/2 ends a stream without that
	eof     atomic.Bool           // read to its end
	bad     atomic.Pointer[error] // why it could not be; nil while it can
}

// prepare makes r's body one that is counted and whose framing the Transport
// keeps.
func (b *uploadBody) prepare(x *delivery, r *http.Request) {
	if hasBody(r) {
		http1.CleanTrailer(r.Trailer)
		b.trailer = r.Trailer
		b.server, b.of, b.left = r.Body, x, x.req.settings.Limits.BodyTime
		r.Body = b
		return
	}
	if r.ContentLength != 0 {
		return
	}
	r.Body = http.NoBody // HTTP/2's empty body is not http.NoBody
	r.Trailer = nil      // the Transport would not end the stream for what is announced
	if _, ok := r.Header["Content-Length"]; ok && r.ProtoMajor == 1 {
		r.TransferEncoding = []string{"identity"} // "Content-Length: 0" stays, whatever the method
	}
}

// Read implements io.Reader. What has ended is not read again: the server closes
// its body with the head of the answer, while the Transport may still want to
// know whether anything follows, and would take an error for a broken upload and
// cut off the answer.
func (b *uploadBody) Read(p []byte) (int, error) {
	if b.eof.Load() {
		return 0, io.EOF
	}
	n, err := b.slowBody.Read(p)
	b.n.Add(int64(n))
	switch {
	case err == io.EOF:
		http1.CleanTrailer(b.trailer)
		b.eof.Store(true)
		b.pending.Store(false)
	case err != nil:
		b.bad.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Close does nothing: the Transport closes what it gives up, and drain goes on reading.
// The server closes the body when all is over.
func (b *uploadBody) Close() error { return nil }

// maxDrain bounds drain, in bytes.
const maxDrain = 32 << 20

// drain reads what a client goes on sending after its answer, in a limited time.
// Many clients read the answer only after they have sent their body, and would
// lose it if the connection closed before. It reads the server's body, which is
// safe for concurrent use: the Transport may be reading b.
func (b *uploadBody) drain(w *responseWriter, r *http.Request) {
	if w.hijacked {
		return
	}
	w.Flush()
	limits := w.of.proxy.limits()
	if err := http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now().Add(limits.DrainTime)); err != nil {
		return
	}
	n, _ := io.CopyN(io.Discard, cmp.Or(b.server, r.Body), maxDrain) // how it ends changes nothing: the connection closes
	b.n.Add(n)
}

// leastProgress is what a request's body has to bring in Limits.BodyTime, unless
// it ends, in bytes.
const leastProgress = 1 << 10

// slowBody is a client's body that has to come in time. The time that counts is
// that in which a Read waits for it, so that a slow site is not held against the
// client. It is not bounded after the answer has begun: streams in both directions
// take their time.
type slowBody struct {
	server   io.ReadCloser // the server's; nil: there is no body
	of       *delivery
	timer    *time.Timer                    // runs while a Read waits; nil before the first
	left     time.Duration                  // of the time for the octets that are to come
	got      int                            // of leastProgress
	exceeded atomic.Pointer[limit.Exceeded] // why no more is read; nil while more is
}

// Read implements io.Reader.
func (b *slowBody) Read(p []byte) (int, error) {
	if b.of.writer.isAnswered() {
		return b.server.Read(p)
	}
	began := time.Now()
	if b.timer == nil {
		b.timer = time.AfterFunc(b.left, b.expire)
	} else {
		b.timer.Reset(b.left)
	}
	n, err := b.server.Read(p)
	b.timer.Stop()
	if over := b.exceeded.Load(); over != nil && err != nil {
		return n, over
	}
	b.left -= time.Since(began)
	if b.got += n; b.got >= leastProgress {
		b.got, b.left = 0, b.of.req.settings.Limits.BodyTime
	}
	b.left = max(b.left, 1)
	return n, err
}

// expire ends the Read that waits. The lock keeps the handler from returning
// meanwhile, after which the connection is not its own.
func (b *slowBody) expire() {
	w := &b.of.writer
	w.interim.Lock()
	defer w.interim.Unlock()
	if !w.final {
		b.exceeded.Store(b.of.proxy.gate.CountExceeded(limit.BodyTime))
		_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now()) // it fails on a closed connection only
	}
}

// downloadBody is a site's answer; it keeps how its reading ended.
type downloadBody struct {
	io.ReadCloser
	of   *delivery
	resp *http.Response // its Trailer is filled when the body has been read
	err  error          // the first error that is not io.EOF
}

// Read implements io.Reader.
func (b *downloadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && len(b.resp.Trailer) > 0 {
		http1.CleanTrailer(b.resp.Trailer)
		http1.DropUnsent(b.resp.Trailer)
		http1.StripSpoofedStatus(b.resp.Trailer, b.of.proxy.config.Name)
	}
	if err != nil && err != io.EOF && b.err == nil {
		b.err = err
	}
	return n, err
}

// Close implements io.Closer. An HTTP/2 Transport ends a Close when it has stopped
// to read the upload, for which a client may wait that has its answer: it stops
// sending, and the end of the answer would never come. So Close does not wait for an
// upload that has not ended; that ends with the handler at the latest.
func (b *downloadBody) Close() error {
	if upload := &b.of.upload; upload.server != nil && !upload.eof.Load() {
		go b.ReadCloser.Close()
		return nil
	}
	return b.ReadCloser.Close()
}
