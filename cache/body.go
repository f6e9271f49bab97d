package cache

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// maxBody is how much of a robots.txt is read, decoded. RFC 9309 §2.5 asks
	// for 500 KiB at least.
	maxBody = 4 << 20
	// gzipOverhead is how much longer than its content a gzip stream may be: one
	// of empty blocks has no end.
	gzipOverhead = 64 << 10
)

// readBody reads the body of a 200 or 203, decoded. When it is longer than
// maxBody, cut is set and the body ends with its last whole line: half a line
// is another rule ("Disallow: /" of "Disallow: /private"). A body shorter than
// announced is an error.
func readBody(resp *http.Response) (body []byte, cut bool, err error) {
	sent := &io.LimitedReader{R: resp.Body, N: maxBody + gzipOverhead}
	var r io.Reader = sent
	coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ",")))
	switch coding {
	case "", "identity":
	case "gzip", "x-gzip":
		if r, err = gzip.NewReader(sent); errors.Is(err, io.EOF) {
			return nil, false, nil // no bytes at all: an empty file
		} else if err != nil {
			return nil, false, err
		}
	default:
		return nil, false, fmt.Errorf("unknown Content-Encoding %.40q", coding)
	}
	body, err = io.ReadAll(io.LimitReader(r, maxBody+1))
	if err != nil {
		return nil, false, err
	}
	if len(body) > maxBody {
		return body[:bytes.LastIndexAny(body[:maxBody], "\r\n")+1], true, nil
	}
	if sent.N == 0 {
		return nil, false, errors.New("its gzip form is longer than its content can be")
	}
	return body, false, nil
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
