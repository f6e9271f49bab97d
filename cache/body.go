package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"heed/internal/coding"
)

const (
	// maxBody is how much of a robots.txt is read, decoded. RFC 9309 §2.5 asks
	// for 500 KiB at least.
	maxBody = 4 << 20
	// codingOverhead is how much longer than its content an encoded body may be:
	// one of empty blocks has no end.
	codingOverhead = 64 << 10

	// shortBody is how much of every body is read without a ticket: the bodies of
	// slow sites must not keep those of others out.
	shortBody = 64 << 10
	// maxLongBodies is how many longer ones are in flight at a time: as many as
	// fill 64 MiB. Each counts in full, since one that had to ask for more on
	// its way could wait for another that waits for it.
	maxLongBodies     = (64 << 20) / (maxBody + codingOverhead)
	maxSiteLongBodies = 2 // of them of one site
)

// bodyLimits is what the reading of one body shares with all others.
type bodyLimits struct {
	most     int           // octets that are read, decoded
	long     func() error  // called before more than shortBody is held
	decoders chan struct{} // has room for each decoder at work
}

// readBody reads the body of a 200 or 203, decoded. When it is longer than
// r.most, cut is set and the body ends with its last whole line: half a line
// is another rule ("Disallow: /" of "Disallow: /private"). A body shorter than
// announced is an error.
func (r *bodyLimits) readBody(resp *http.Response) (body []byte, cut bool, err error) {
	name := coding.Name(resp.Header.Values("Content-Encoding")) // several are not known
	if !coding.Known(name) {
		return nil, false, publicErrorf(nil, "came in a content coding that was not offered (%.40q)", name)
	}
	// What is sent is read before it is decoded, so that no decoder, whose
	// windows may be large, waits for a slow site.
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

// undecodable returns why a body could not be decoded as a coding of that name.
func undecodable(name string, err error) error {
	if coding.Mislabelled(name) {
		return publicErrorf(err, "is not text, and its Content-Encoding is the name of no coding (%.40q)", name)
	}
	return publicErrorf(err, "could not be decoded as %s", name)
}

// remarkOn returns the Source.Note of a robots.txt; often empty.
func remarkOn(h http.Header, body []byte) string {
	if isHTML(h, body) {
		return htmlNote
	}
	if name := coding.Name(h.Values("Content-Encoding")); coding.Mislabelled(name) {
		return fmt.Sprintf("its Content-Encoding is the name of no coding (%.40q): it is read as text", name)
	}
	return ""
}

// size returns a number of octets for people.
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

// readEncoded reads what resp brings, most octets at the most; more reports whether
// there were more.
func readEncoded(resp *http.Response, most int, long func() error) (sent []byte, more bool, err error) {
	if known := resp.ContentLength; known >= 0 {
		most = int(min(int64(most), known))
	}
	sent = make([]byte, 0, min(most, 4<<10)+1)
	for len(sent) < most || resp.ContentLength < 0 {
		if len(sent) == cap(sent) {
			if sent, err = grow(sent, most, long); err != nil {
				return nil, false, err
			}
		}
		n, err := resp.Body.Read(sent[len(sent):cap(sent)])
		sent = sent[:len(sent)+n]
		switch {
		case len(sent) > most:
			return sent[:most], true, nil
		case err == io.EOF:
			return sent, false, nil
		case err != nil:
			return nil, false, err
		}
	}
	return sent, resp.ContentLength > int64(most), nil
}

// grow makes room in a full b: by doubling while it is short, then by allocating
// room for most octets; always with one more, to see the end.
func grow(b []byte, most int, long func() error) ([]byte, error) {
	room := min(2*len(b), most+1, shortBody+1)
	if room <= len(b) {
		if err := long(); err != nil {
			return nil, err
		}
		room = most + 1
	}
	return append(make([]byte, 0, room), b...), nil
}

// isHTML reports whether an answer is a page for people, by its type or by
// how it begins.
func isHTML(h http.Header, body []byte) bool {
	if strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/html") {
		return true
	}
	start := bytes.ToLower(bytes.TrimLeft(body[:min(len(body), 64)], "\ufeff \t\r\n"))
	return bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}

// decode returns what sent, of the coding of that name, holds; more than most octets of it
// only to show that there is more.
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
