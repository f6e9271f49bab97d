package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// A body that the site compressed arrives byte for byte, the Content-Length of HEAD is
// that of GET, and ETag and ranges are unchanged.
func TestEncodedBodiesAreUntouched(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, strings.Repeat("a page ", 1000))
	z.Close()
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("ETag", `W/"x"`)
		if r.URL.Path == "/range" {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 2-5/%d", packed.Len()))
			w.Header().Set("Content-Length", "4")
			w.WriteHeader(http.StatusPartialContent)
			w.Write(packed.Bytes()[2:6])
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(packed.Len()))
		w.Write(packed.Bytes())
	})
	eachMode(t, allModes, func(t *testing.T, m mode) {
		r := r.in(t)
		for _, accept := range []string{"", "Accept-Encoding: gzip", "Accept-Encoding: br;q=1.0, identity"} {
			var header []string
			if accept != "" {
				header = []string{accept}
			}
			a := r.ask(m, question{path: "/page", header: header})
			if a.body != packed.String() || a.Header.Get("Content-Encoding") != "gzip" || a.Header.Get("ETag") != `W/"x"` ||
				a.ContentLength != int64(packed.Len()) {
				t.Errorf("%q: %d octets, %v", accept, len(a.body), a.Header)
			}
			got := strings.Join(r.site.last(t, "/page").Header["Accept-Encoding"], "|")
			want := strings.TrimPrefix(accept, "Accept-Encoding: ")
			must.True(t, got == want, "the site was asked for encoding %q, the client wanted %q", got, want)
			head := r.ask(m, question{method: "HEAD", path: "/page", header: header})
			must.True(t, head.Header.Get("Content-Length") == a.Header.Get("Content-Length") && head.body == "",
				"HEAD: %v %q", head.Header, head.body)
		}
		a := r.ask(m, question{path: "/range", header: []string{"Range: bytes=2-5", "If-Range: \"x\""}})
		sent := r.site.last(t, "/range").Header
		if a.StatusCode != 206 || a.body != string(packed.Bytes()[2:6]) || a.Header.Get("Content-Range") == "" ||
			sent.Get("Range") != "bytes=2-5" || sent.Get("If-Range") != `"x"` {
			t.Errorf("range: %s %q %v, asked %v", a.Status, a.body, a.Header, sent)
		}
	})
}

// Answers that have no body by their status stay without one, and the
// connection goes on.
func TestNoBodyWhereNoneBelongs(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.Header().Set("ETag", `"x"`)
			w.WriteHeader(304)
		case "/empty":
			w.Header().Set("Content-Length", "0")
		default:
			w.Header().Set("Content-Length", "1234")
		}
	})
	eachMode(t, rawModes, func(t *testing.T, m mode) {
		c, prefix := r.in(t).raw(m)
		for _, path := range []string{"/204", "/304", "/empty"} {
			c.Send(get(prefix, path))
			if a := c.Answer("GET"); len(a.Body) > 0 || len(a.TransferEncoding) > 0 || path == "/304" && a.Header.Get("ETag") != `"x"` {
				t.Errorf("%s: %s %v %q", path, a.Status, a.TransferEncoding, a.Body)
			}
		}
		c.Send(rawRequest("HEAD", prefix, "/head") + get(prefix, "/204"))
		a := c.Answer("HEAD")
		must.True(t, a.Header.Get("Content-Length") == "1234", "HEAD: %v", a.Header)
		must.Status(t, c.Answer("GET").Response, 204, "after HEAD")
	})
}
