package icap

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/proxy/http1"
)

const site = "GET http://site.test/a/%2e|b%zz HTTP/1.1\r\nhOst: site.test\r\nAccept:  */*\r\n\r\n"

// asks returns a REQMOD with fields, about a request, of which body follows as it is.
func asks(fields, request, body string) string {
	kind := "null"
	if body != "" {
		kind = "req"
	}
	return fmt.Sprintf("REQMOD icap://heed.test:1344/reqmod ICAP/1.0\r\nHost: heed.test\r\n%sEncapsulated: req-hdr=0, %s-body=%d\r\n\r\n%s%s",
		fields, kind, len(request), request, body)
}

// serve reads all requests of a stream, and answers each by answer; it returns what was
// written, and the error that ended it.
func serve(stream string, answer func(w *Writer, r *Reader, q *Request) error) (string, error) {
	var out strings.Builder
	r := &Reader{HTTP: http1.Reader{From: strings.NewReader(stream), Limit: http1.Limit{Head: 64 << 10}}}
	w := &Writer{HTTP: http1.Writer{To: &out}, Service: Service{Name: "heed", Tag: "t1", Connections: 7, TTL: 60}}
	var q Request
	for {
		if err := r.Read(&q); err != nil {
			return out.String(), err
		}
		if err := answer(w, r, &q); err != nil {
			return out.String(), err
		}
	}
}

// same answers each request with its message as it came.
func same(w *Writer, r *Reader, q *Request) error {
	switch {
	case q.Method == "OPTIONS":
		return w.Options(q)
	case q.Allow:
		if q.Body {
			if _, err := io.Copy(io.Discard, r.Body()); err != nil {
				return err
			}
		}
		return w.Status(q, http.StatusNoContent, "")
	}
	return w.Same(q, r.Body())
}

const (
	tag       = "ISTag: \"t1\"\r\n"
	unchanged = "ICAP/1.0 204 No Content\r\n" + tag + "\r\n"
)

func TestAnswers(t *testing.T) {
	const options = "OPTIONS icap://heed.test/reqmod ICAP/1.0\r\nHost: heed.test\r\n"
	withBody := "POST http://site.test/ HTTP/1.1\r\nHost: site.test\r\nContent-Length: 5\r\n\r\n"
	for _, c := range []struct{ name, stream, want string }{
		{"options", options + "\r\n", "ICAP/1.0 200 OK\r\n" + tag + "Methods: REQMOD\r\nService: heed\r\nMax-Connections: 7\r\nOptions-TTL: 60\r\n" +
			"Allow: 204\r\nPreview: 0\r\nTransfer-Preview: *\r\nEncapsulated: null-body=0\r\n\r\n"},
		{"204", asks("Allow: 204, trailers\r\n", site, ""), unchanged},
		{"close", asks("Allow: 204\r\nConnection: close\r\n", site, ""), strings.Replace(unchanged, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)},
		{"the message as it came", asks("", site, ""), fmt.Sprintf("ICAP/1.0 200 OK\r\n%sEncapsulated: req-hdr=0, null-body=%d\r\n\r\n%s", tag, len(site), site)},
		{"with its body", asks("", withBody, "2;x=y\r\nha\r\n3\r\nllo\r\n0\r\n\r\n"),
			fmt.Sprintf("ICAP/1.0 200 OK\r\n%sEncapsulated: req-hdr=0, req-body=%d\r\n\r\n%s5\r\nhallo\r\n0\r\n\r\n", tag, len(withBody), withBody)},
		{"preview", asks("Preview: 0\r\n", withBody, "0\r\n\r\n"), unchanged},
		{"the whole body in a preview", asks("Preview: 9\r\n", withBody, "5\r\nhallo\r\n0; ieof\r\n\r\n"), unchanged},
		{"pipelined", options + "Encapsulated: null-body=0\r\n\r\n" + asks("Preview: 4\r\n", withBody, "2\r\nha\r\n0\r\n\r\n") + asks("Allow: 204\r\n", site, ""), "ICAP/1.0 200 OK"},
	} {
		got, err := serve(c.stream, same)
		if c.name == "pipelined" {
			must.True(t, strings.HasSuffix(got, "\r\n\r\n"+unchanged+unchanged), "%s: %q", c.name, got)
			got = got[:len(c.want)]
		}
		must.True(t, got == c.want && err == io.EOF, "%s: %q, %v\nwant %q", c.name, got, err, c.want)
	}
}

// A refusal is an HTTP answer in place of the request; that to HEAD has no body.
func TestResponse(t *testing.T) {
	for _, method := range []string{"GET", "HEAD"} {
		stream := asks("", strings.Replace(site, "GET", method, 1), "")
		got, _ := serve(stream, func(w *Writer, r *Reader, q *Request) error {
			return w.Response(q, 403, http.Header{"Proxy-Status": {"heed; error=http_request_denied"}}, []byte("no"))
		})
		const head = "HTTP/1.1 403 Forbidden\r\nProxy-Status: heed; error=http_request_denied\r\nContent-Length: 2\r\n\r\n"
		want := fmt.Sprintf("ICAP/1.0 200 OK\r\n%sEncapsulated: res-hdr=0, res-body=%d\r\n\r\n%s2\r\nno\r\n0\r\n\r\n", tag, len(head), head)
		if method == "HEAD" {
			head := strings.Replace(head, "Content-Length: 2\r\n", "", 1)
			want = fmt.Sprintf("ICAP/1.0 200 OK\r\n%sEncapsulated: res-hdr=0, null-body=%d\r\n\r\n%s", tag, len(head), head)
		}
		must.Equal(t, got, want, method)
	}
}

// The last chunk of a refusal is written separately.
func TestResponse_TheLastChunkIsWrittenSeparately(t *testing.T) {
	var sent writes
	w := Writer{HTTP: http1.Writer{To: &sent}, Service: Service{Tag: "t"}}
	err := w.Response(&Request{Method: Reqmod, HTTP: http1.Head{Method: "GET"}}, 403, http.Header{}, []byte("no"))
	if err != nil || len(sent) != 2 || !strings.HasSuffix(sent[0], "\r\n2\r\nno\r\n") || sent[1] != "0\r\n\r\n" {
		t.Errorf("%q, %v", sent, err)
	}
}

// writes are the octets of each Write.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// What breaks a rule is an error with the status and the words of the answer, and nothing is
// allowed because of it.
func TestErrors(t *testing.T) {
	good := asks("Allow: 204\r\n", site, "")
	replaced := func(what, with string) string {
		must.Need(t, strings.Contains(good, what), "%q is not in the request", what)
		return strings.Replace(good, what, with, 1)
	}
	null := fmt.Sprintf("null-body=%d", len(site))
	const offsets = "Encapsulated is neither"
	for _, c := range []struct {
		stream string
		status int
		words  string
	}{
		{replaced("REQMOD ", "RESPMOD "), 405, "no such method"},
		{replaced("/reqmod", "/respmod"), 405, "no such method"},
		{replaced("/reqmod", "/reqmod/"), 404, "no such service"},
		{replaced("ICAP/1.0", "ICAP/2.0"), 505, "the version"},
		{replaced("REQMOD icap", "REQMOD: icap"), 400, "does not begin"},
		{replaced("Host:", "Host :"), 400, "blank before the colon"},
		{replaced("Host: heed.test", "Host: a\r\n b"), 400, "over several lines"},
		{replaced("Host:", "Preview: 99999999999\r\nHost:"), 400, "Preview is not"},
		{replaced("Host:", "Preview: -1\r\nHost:"), 400, "Preview is not"},
		{replaced("Host:", "Preview: 300000\r\nHost:"), 400, "Preview is not"},
		{replaced("Host:", "Preview: 0\r\nPreview: 0\r\nHost:"), 400, "Preview is not"},
		{replaced("Host:", "Encapsulated: req-hdr=0, null-body=9\r\nHost:"), 400, "and has 2"},
		{replaced("Encapsulated:", "Capsule:"), 400, "and has 0"},
		{replaced(null, null+", req-body=900"), 400, offsets},
		{replaced("req-hdr=0, "+null, null+", req-hdr=0"), 400, offsets},
		{replaced("req-hdr=0, "+null, "null-body=0"), 400, offsets},
		{replaced("req-hdr=0", "req-hdr=5"), 400, offsets},
		{replaced("req-hdr", "res-hdr"), 400, offsets},
		{replaced(null, "null-body=0"), 400, offsets},
		{replaced(null, "null-body=-1"), 400, offsets},
		{replaced(null, "null-body=+80"), 400, offsets},
		{replaced(null, "null-body=99999999999999999999"), 400, offsets},
		{replaced(null, "null-body=2000000000"), 400, "too large"},
		{replaced(null, fmt.Sprintf("null-body=%d", len(site)-1)), 400, "ended within its head"},
		{replaced(null, "null-body=10"), 400, "cannot be read"},
		{replaced(null, fmt.Sprintf("null-body=%d", len(site)+9)) + "GET / HTT", 400, "ends before the offset"},
		{replaced(null, fmt.Sprintf("null-body=%d", len(site)+1)), 400, "the connection ended"},
		{asks("", "\r\n"+site, ""), 400, "begins with an empty line"},
		{asks("", "\r\n\r\n", ""), 400, "is empty"},
		{asks("", strings.Replace(site, "\r\n\r\n", "\r\nHost: other.test\r\n\r\n", 1), ""), 400, "more than one Host"},
		{asks("", strings.Replace(site, "HTTP/1.1", "HTTP/3.0", 1), ""), 400, "version is not known"},
		{asks("", site, "5\r\nhal"), 400, "ended within its body"},
		{asks("", site, "z\r\n"), 400, "without a valid size"},
		{asks("", site, "2\r\nhallo\r\n0\r\n\r\n"), 400, "longer than its size"},
		{asks("Preview: 4\r\n", site, "5\r\nhallo\r\n0\r\n\r\n"), 400, "longer than the field"},
		{asks(strings.Repeat("A: b\r\n", 200), site, ""), 400, "too many fields"},
		{asks("A: "+strings.Repeat("b", 70<<10)+"\r\n", site, ""), 400, "too large"},
		{"OPTIONS icap://a/reqmod ICAP/1.0\r\nEncapsulated: opt-body=0\r\n\r\n", 400, "OPTIONS has no body"},
		{"GET /reqmod HTTP/1.1\r\nHost: a\r\n\r\n", 505, "the version"},
		{good[:20], 400, "ended within its head"},
	} {
		out, err := serve(c.stream, same)
		e := (*Error)(nil)
		if !errors.As(err, &e) || e.Status != c.status || !strings.Contains(e.Text, c.words) || strings.Contains(out, "ICAP/1.0 204") {
			t.Errorf("%.200q: %v, %.200q\nwant %d %s", c.stream, err, out, c.status, c.words)
		}
	}
}

// Every beginning of a stream is an error, or the end of the connection, and none a whole
// answer to what was cut off.
func TestTruncated(t *testing.T) {
	stream := asks("", site, "5\r\nhallo\r\n0\r\n\r\n")
	for n := range len(stream) {
		if out, err := serve(stream[:n], same); strings.HasSuffix(out, "0\r\n\r\n") || err == nil || err == io.EOF && n > 0 {
			t.Fatalf("%d octets: %q, %v", n, out, err)
		}
	}
}

const answer = "HTTP/1.1 200 OK\r\nX-Robots-Tag: noai\r\nContent-Length: 8\r\n\r\n"

// brings returns a RESPMOD with fields, about an answer, of which body follows as it is.
func brings(fields, answer, body string) string {
	kind := "null"
	if body != "" {
		kind = "res"
	}
	return fmt.Sprintf("RESPMOD icap://heed.test:1344/respmod ICAP/1.0\r\nHost: heed.test\r\n%sEncapsulated: req-hdr=0, res-hdr=%d, %s-body=%d\r\n\r\n%s%s%s",
		fields, len(site), kind, len(site)+len(answer), site, answer, body)
}

// pass reads up to a number of octets of the body of each answer, and has it pass.
func pass(octets int64) func(w *Writer, r *Reader, q *Request) error {
	return func(w *Writer, r *Reader, q *Request) error {
		b := r.AnswerBody(q, w)
		var read strings.Builder
		if _, err := io.CopyN(&read, b, octets); err != nil && err != io.EOF {
			return err
		}
		if sent := b.End(); sent && !q.Allow {
			return w.Same(q, io.MultiReader(strings.NewReader(read.String()), b))
		}
		if err := w.Status(q, http.StatusNoContent, ""); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, b)
		return err
	}
}

// What follows a preview is asked for only when it is read; an answer passes by 204 as long as the
// client has kept it, and else as it came.
func TestRespmod(t *testing.T) {
	const goOn = "ICAP/1.0 100 Continue\r\n\r\n"
	whole := fmt.Sprintf("ICAP/1.0 200 OK\r\n%sEncapsulated: res-hdr=0, res-body=%d\r\n\r\n%s8\r\nabcdefgh\r\n0\r\n\r\n", tag, len(answer), answer)
	none := fmt.Sprintf("ICAP/1.0 200 OK\r\n%sEncapsulated: res-hdr=0, null-body=%d\r\n\r\n%s", tag, len(answer), answer)
	for _, c := range []struct {
		name, stream string
		read         int64
		want         string
	}{
		{"options", "OPTIONS icap://heed.test/respmod ICAP/1.0\r\n\r\n", 0, ""},
		{"a preview", brings("Preview: 4\r\n", answer, "4\r\nabcd\r\n0\r\n\r\n"), 4, unchanged},
		{"more than a preview", brings("Preview: 4\r\n", answer, "4\r\nabcd\r\n0\r\n\r\n4\r\nefgh\r\n0\r\n\r\n"), 5, goOn + strings.Replace(whole, "8\r\nabcdefgh", "5\r\nabcde\r\n3\r\nfgh", 1)},
		{"more, and the client keeps all", brings("Preview: 4\r\nAllow: 204\r\n", answer, "4\r\nabcd\r\n0\r\n\r\n4\r\nefgh\r\n0\r\n\r\n"), 5, goOn + unchanged},
		{"all in the preview", brings("Preview: 9\r\n", answer, "8\r\nabcdefgh\r\n0; ieof\r\n\r\n"), 99, unchanged},
		{"no preview", brings("", answer, "8\r\nabcdefgh\r\n0\r\n\r\n"), 3, strings.Replace(whole, "8\r\nabcdefgh", "3\r\nabc\r\n5\r\ndefgh", 1)},
		{"no preview, kept", brings("Allow: 204\r\n", answer, "8\r\nabcdefgh\r\n0\r\n\r\n"), 3, unchanged},
		{"no body", brings("", answer, ""), 3, none},
		{"no body, kept", brings("Preview: 4\r\n", answer, ""), 3, unchanged},
	} {
		got, err := serve(c.stream+brings("Allow: 204\r\n", answer, ""), pass(c.read))
		if c.name == "options" {
			got, err = serve(c.stream, func(w *Writer, _ *Reader, q *Request) error { w.Service.Preview = 77; return w.Options(q) })
			must.True(t, strings.Contains(got, "Methods: RESPMOD\r\n") && strings.Contains(got, "Preview: 77\r\n"),
				"%q", got)
		} else if got != c.want+unchanged {
			t.Errorf("%s: %q\nwant %q", c.name, got, c.want+unchanged)
		}
		must.Equal(t, err, io.EOF, c.name)
	}
}

func TestRespmod_Errors(t *testing.T) {
	good := brings("Preview: 4\r\n", answer, "4\r\nabcd\r\n0\r\n\r\n4\r\nefgh\r\n0\r\n\r\n")
	hdr, body := fmt.Sprintf("res-hdr=%d", len(site)), fmt.Sprintf("res-body=%d", len(site)+len(answer))
	for _, c := range [][3]string{
		{"req-hdr=0, " + hdr, hdr, "Encapsulated is neither"},
		{hdr + ", ", "", "Encapsulated is neither"},
		{hdr + ", ", hdr + ", " + hdr + ", ", "Encapsulated is neither"},
		{hdr, "res-hdr=900", "Encapsulated is neither"},
		{hdr, fmt.Sprintf("res-hdr=%d", len(site)-2), "ended within its head"},
		{hdr, fmt.Sprintf("res-hdr=%d", len(site)+2), "ends before the offset"},
		{hdr, "res-hdr=0", "Encapsulated is neither"},
		{body, "req-" + body[4:], "Encapsulated is neither"},
		{body, fmt.Sprintf("res-body=%d", len(site)+len(answer)-2), "ended within its head"},
		{"HTTP/1.1 200", "HTTP/1.1 2000", "cannot be read"},
		{"HTTP/1.1 200", "GET / HTTP/1", "cannot be read"},
		{"\r\n0\r\n\r\n4", "\r\n0\r\n\r\nz", "without a valid size"},
		{"RESPMOD ", "REQMOD ", "no such method"},
	} {
		stream := strings.Replace(good, c[0], c[1], 1)
		out, err := serve(stream, pass(8))
		if e := (*Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Text, c[2]) || strings.Contains(out, " 204 ") {
			t.Errorf("%q for %q: %v, %q\nwant %s", c[1], c[0], err, out, c[2])
		}
	}
	for n := range len(good) {
		if out, err := serve(good[:n], pass(8)); strings.HasSuffix(out, "\r\n0\r\n\r\n") || strings.Contains(out, " 204 ") || err == nil || err == io.EOF && n > 0 {
			t.Fatalf("%d octets: %q, %v", n, out, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, stream := range []string{
		asks("Allow: 204\r\n", site, ""), asks("", site, "5\r\nhallo\r\n0\r\n\r\n"), asks("Preview: 4\r\n", site, "4\r\nhall\r\n0; ieof\r\n\r\n"),
		"OPTIONS icap://heed.test/reqmod ICAP/1.0\r\n\r\n", "OPTIONS icap://heed.test/respmod ICAP/1.0\r\n\r\n",
		brings("Preview: 4\r\n", answer, "4\r\nabcd\r\n0\r\n\r\n4\r\nefgh\r\n0\r\n\r\n"), brings("", answer, ""),
		brings("Allow: 204\r\n", answer, "8\r\nabcdefgh\r\n0\r\n\r\n"), brings("Preview: 9\r\n", answer, "8\r\nabcdefgh\r\n0; ieof\r\n\r\n"),
	} {
		f.Add([]byte(stream))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		read := 0
		out, err := serve(string(stream), func(w *Writer, r *Reader, q *Request) error {
			if q.Method != "OPTIONS" && (!strings.HasSuffix(string(q.Section), "\n") || q.HTTP.Method == "" || q.HTTP.Target == "") {
				t.Fatalf("%q has no head: %+v", stream, q)
			}
			if read += len(q.Section); read > len(stream) {
				t.Fatalf("%q has %d octets of heads", stream, read)
			}
			if q.Method == Respmod {
				must.Need(t, q.Answer.Status >= 100, "%q has no answer: %+v", stream, q)
				return pass(5)(w, r, q)
			}
			return same(w, r, q)
		})
		e := (*Error)(nil)
		must.Need(t, err == io.EOF || errors.As(err, &e) && e.Status >= 400 && e.Text != "", "%q: %v", stream, err)
		must.Need(t, len(out) <= 400*(len(stream)+1), "%d octets of answers to %q", len(out), stream)
	})
}
