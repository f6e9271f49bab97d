package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"heed/internal/base/coding"
	"heed/internal/judge/signal/wall"
)

const (
	// maxBody is how much of a robots.txt is read, decoded. RFC 9309 §2.5 asks
	// for 500 KiB at least.
	maxBody = 4 << 20
	// codingOverhead bounds how much longer than its content an encoded body may be: empty
	// blocks could go on without end.
	codingOverhead = 64 << 10

	// shortBody is the part of every body that is read without a ticket, so that slow sites do
	// not delay short bodies of other sites.
	shortBody = 64 << 10
	// maxLongBodies is the number of longer bodies that are read at a time: 64 MiB of them.
	// Each is counted with its maximum from the start. If a body asked for more while it is
	// read, two bodies could wait for each other.
	maxLongBodies     = (64 << 20) / (maxBody + codingOverhead)
	maxSiteLongBodies = 2 // of one site
)

// bodyLimits are the limits of reading one body. long and decoders are shared with all other
// fetches.
type bodyLimits struct {
	most     int           // octets that are read, decoded
	long     func() error  // called before more than shortBody is held
	decoders chan struct{} // has room for each decoder at work
}

// readBody reads and decodes the body of a 200 or 203. When it is longer than r.most, cut is
// set and the body ends with its last whole line, because half a line is another rule
// ("Disallow: /" of "Disallow: /private"). A body shorter than announced is an error.
func (r *bodyLimits) readBody(resp *http.Response) (body []byte, cut bool, err error) {
	name := coding.Name(resp.Header.Values("Content-Encoding")) // several are not known
	if !coding.Known(name) {
		return nil, false, publicErrorf(nil, "came in a content coding that was not offered (%.40q)", name)
	}
	// The encoded body is read completely before it is decoded: no decoder, whose windows may
	// be large, waits for a slow site.
	sent, more, err := readEncoded(resp, r.most+codingOverhead, r.long)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = publicErrorf(err, "was cut off before its end")
	}
	if err != nil {
		return nil, false, err
	}
	if (name == "" || coding.Mislabelled(name)) && bytes.HasPrefix(sent, []byte("\x1f\x8b")) {
		name = "gzip" // a compressed file that does not say so: no text begins like this
	}
	body = sent
	if name != "" && len(sent) > 0 {
		if body, err = r.decode(name, sent); err != nil {
			err = undecodable(name, err)
		}
	}
	switch {
	case len(body) > r.most:
		return body[:bytes.LastIndexAny(body[:r.most], "\r\n")+1], true, nil
	case more:
		return nil, false, publicErrorf(nil, "came in a longer %s form than %s can have", name, size(r.most))
	case err != nil:
		return nil, false, err
	}
	return body, false, nil
}

// readBody moves the body of resp into r and closes it.
func (j *job) readBody(ctx context.Context, r *siteReply, resp *http.Response) {
	defer resp.Body.Close()
	limits := bodyLimits{most: j.most, long: func() error { return j.enter(ctx, &j.longBodies) }, decoders: j.decoders}
	body, cut, err := limits.readBody(resp)
	switch {
	case err != nil:
		r.err = withCause(ctx, fmt.Errorf("reading it: %w", err))
		r.local = errors.Is(err, errFull)
	case cut:
		r.note = fmt.Sprintf(cutNote+"%d MiB: the rest is ignored", j.most>>20)
	default:
		r.note = remarkOn(resp.Header, body)
	}
	r.body = body
}

// pageTime is how long the page in a refusal is read.
const pageTime = 2 * time.Second

// readPage returns the beginning of the page in a refusal, as far as it shows whether it is a
// challenge, and closes it; nil when it is no page or cannot be read: then the status counts.
func (j *job) readPage(resp *http.Response) []byte {
	if !wall.IsHTML(resp.Header, nil) && resp.Header.Get("Content-Type") != "" {
		discard(resp)
		return nil
	}
	defer resp.Body.Close()
	late := time.AfterFunc(pageTime, func() { resp.Body.Close() })
	defer late.Stop()
	name := coding.Name(resp.Header.Values("Content-Encoding"))
	if !coding.Known(name) {
		return nil
	}
	sent, _, err := readEncoded(resp, wall.MaxBytes, func() error { return nil })
	if err != nil || name == "" || len(sent) == 0 {
		return sent
	}
	limits := bodyLimits{most: wall.MaxBytes, decoders: j.decoders}
	body, _ := limits.decode(name, sent) // what could be decoded of a body that is cut off
	return body
}

// undecodable returns why a body could not be decoded as a coding of that name.
func undecodable(name string, err error) error {
	if coding.Mislabelled(name) {
		return publicErrorf(err, "is not text, and its Content-Encoding is the name of no coding (%.40q)", name)
	}
	return publicErrorf(err, "could not be decoded as %s", name)
}

// remarkOn returns the Source.Note of a robots.txt; often empty.
func remarkOn(h http.Header, body []byte) string {
	if wall.IsHTML(h, body) {
		return htmlNote
	}
	if name := coding.Name(h.Values("Content-Encoding")); coding.Mislabelled(name) {
		return fmt.Sprintf("its Content-Encoding is the name of no coding (%.40q): it is read as text", name)
	}
	return ""
}

// size formats a number of octets.
func size(octets int) string {
	if octets < 1<<20 {
		return fmt.Sprintf("%d KiB", octets>>10)
	}
	return fmt.Sprintf("%d MiB", octets>>20)
}

func (r *bodyLimits) decode(name string, sent []byte) ([]byte, error) {
	r.decoders <- struct{}{}
	defer func() { <-r.decoders }()
	return decode(name, sent, r.most)
}

// readEncoded reads at most most octets of the body of resp; more reports whether there were
// more. It holds the first of them alone before long has returned.
func readEncoded(resp *http.Response, most int, long func() error) (sent []byte, more bool, err error) {
	limit := int64(most) + 1
	if resp.ContentLength >= 0 {
		limit = min(limit, resp.ContentLength)
	}
	body := io.LimitReader(resp.Body, limit)
	if sent, err = io.ReadAll(io.LimitReader(body, shortBody+1)); err == nil && len(sent) > shortBody {
		if err = long(); err == nil {
			whole := bytes.NewBuffer(slices.Grow(sent, int(limit)-len(sent)+bytes.MinRead)) // at once: see maxLongBodies
			_, err = whole.ReadFrom(body)
			sent = whole.Bytes()
		}
	}
	if err != nil {
		return nil, false, err
	}
	return sent[:min(len(sent), most)], max(resp.ContentLength, int64(len(sent))) > int64(most), nil
}

// decode decodes sent, whose content coding is name. It returns at most most octets, and one
// more when there are more.
func decode(name string, sent []byte, most int) ([]byte, error) {
	r, err := coding.NewReader(name, bytes.NewReader(sent))
	if errors.Is(err, io.EOF) { // in its first octets
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, int64(most)+1))
}
