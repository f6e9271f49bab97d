package http1

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// A request that breaks a rule is refused with its own status and sentence, and what could
// be read of it is there for the record.
func TestRequestFaults(t *testing.T) {
	const get, hosted = "GET /p HTTP/1.1\r\n", "GET /p HTTP/1.1\r\nHost: a.test\r\n"
	const post = "POST /p HTTP/1.1\r\nHost: a.test\r\n"
	for _, c := range []struct {
		stream string
		kind   Kind
		status int
		says   string
	}{
		{"GARBAGE\r\n\r\n", BadRequestLine, 400, "the request does not begin with a method, a target and a version"},
		{"GET  /p HTTP/1.1\r\nHost: a.test\r\n\r\n", BadTarget, 400, "the request target contains a blank or a control character"},
		{"GET /p\r\nHost: a.test\r\n\r\n", BadRequestLine, 400, "does not begin"},
		{"GET /p http/1.1\r\nHost: a.test\r\n\r\n", BadVersion, 400, "the request line does not end with a version"},
		{"G\x01T /p HTTP/1.1\r\nHost: a.test\r\n\r\n", BadMethod, 400, "an octet that no method has"},
		{"GET /p HTTP/3.0\r\nHost: a.test\r\n\r\n", UnknownVersion, 505, "the HTTP version is not known"},
		{"GET /a b HTTP/1.1\r\nHost: a.test\r\n\r\n", BadTarget, 400, "the request target contains a blank"},
		{"GET /a\x7fb HTTP/1.1\r\nHost: a.test\r\n\r\n", BadTarget, 400, "control character"},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Preface, 400, "HTTP/2 is spoken inside TLS only"},
		{get + "\r\n", NoHost, 400, "the request has no Host field"},
		{hosted + "Host: b.test\r\n\r\n", ManyHosts, 400, "the request has more than one Host field"},
		{get + "Host: a b\r\n\r\n", BadHost, 400, "names no host"},
		{hosted + "X: a\x00b\r\n\r\n", BadValue, 400, `a control character in the field "X"`},
		{hosted + "X: a\rb\r\n\r\n", BadValue, 400, `"X"`},
		{hosted + "X\x00: ab\r\n\r\n", BadName, 400, `"X\x00"`},
		{hosted + "no colon\r\n\r\n", NoColon, 400, "a line without a colon"},
		{hosted + ": x\r\n\r\n", NoName, 400, "a field without a name"},
		{hosted + "X: a\r\n b\r\n\r\n", Fold, 400, `the field "X" over several lines`},
		{get + " X: y\r\nHost: a.test\r\n\r\n", FoldFirst, 400, "a blank before its first field"},
		{hosted + "Content-Length : 1\r\n\r\nx", BlankBeforeColon, 400, `the colon of the field "Content-Length"`},
		{post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", ManyLengths, 400, "several Content-Length"},
		{post + "Content-Length: 1, 1\r\n\r\nx", BadLength, 400, "not a number"},
		{post + "Content-Length: +1\r\n\r\nx", BadLength, 400, "not a number"},
		{post + "Content-Length:\r\n\r\nx", BadLength, 400, "not a number"},
		{post + "Content-Length: 9223372036854775808\r\n\r\nx", LengthTooLarge, 413, "too large"},
		{post + "Content-Length: 99999999999999999999x\r\n\r\nx", BadLength, 400, "not a number"},
		{post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", LengthBesideCoding, 400, "both Content-Length and Transfer-Encoding"},
		{"POST /p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", OldCoding, 400, "Transfer-Encoding in HTTP/1.0"},
		{post + "Transfer-Encoding: xchunked\r\n\r\n", UnknownCoding, 501, "the transfer coding is not known"},
		{post + "Transfer-Encoding: gzip, chunked\r\n\r\n", UnknownCoding, 501, "the transfer coding is not known"},
		{post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", UnknownCoding, 501, "the transfer coding is not known"},
		{post + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n", BadTrailerName, 400, "may not be one"},
		{post + "Content-Length: 1\r\nExpect: tea\r\n\r\nx", BadExpect, 417, "the expectation cannot be met"},
		{hosted + "X: " + strings.Repeat("x", 300) + "\r\n\r\n", HeadTooLarge, 431, "the request head is too large"},
		{hosted + strings.Repeat("X:\r\n", maxFields) + "\r\n", ManyFields, 431, "too many fields"},
		{"GET /p HTTP/1.1\r\nHost: a.te", HeadTruncated, 400, "ended within its head"},
	} {
		limit := Limit{Head: 250}
		if c.kind == ManyFields {
			limit.Head = 0
		}
		m := checkSplits(t, []byte(c.stream), "", 3, 5, limit)
		var fault *Fault
		if !errors.As(m.err, &fault) || fault.Kind != c.kind || fault.Status != c.status || fault.Type != "http_request_error" || !strings.Contains(fault.Error(), c.says) {
			t.Errorf("%.80q: %+v %v", c.stream, fault, m.err)
		}
	}
	var h Head
	if err := readerOf("GET /a b HTTP/1.1\r\nuser-agent : x/1\r\nHost: a.test\r\n\r\n").ReadRequest(&h); err == nil || h.Method != "GET" || h.Target != "/a b" || h.Proto != "HTTP/1.1" || h.Get("User-Agent") != "x/1" || h.Get("Host") != "a.test" {
		t.Errorf("%+v", h)
	}
}

// An answer that breaks a rule is a fault with its RFC 9209 type.
func TestAnswerFaults(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for stream, want := range map[string]struct {
		kind   Kind
		status string
	}{
		"<html>":                                                         {NotHTTP, "http_protocol_error"},
		"HTTP/2 200\r\n\r\n":                                             {NotHTTP, "http_protocol_error"},
		"HTTP/1.1 2x0 OK\r\n\r\n":                                        {BadStatus, "http_protocol_error"},
		ok + "Content-Length: 5, 6\r\n\r\nhello":                         {ManyLengths, "http_protocol_error"},
		ok + "Content-Length: +5\r\n\r\nhello":                           {BadLength, "http_protocol_error"},
		ok + "Content-Length:\r\n\r\nhello":                              {BadLength, "http_protocol_error"},
		ok + "Content-Length : 5\r\n\r\nhello":                           {BlankBeforeColon, "http_protocol_error"},
		ok + "Content\x01-Length: 5\r\n\r\nhello":                        {BadName, "http_protocol_error"},
		ok + "Content-Length: 1\r\n 2\r\n\r\n":                           {Fold, "http_protocol_error"},
		ok + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n":              {BlankBeforeColon, "http_protocol_error"},
		ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n":         {UnknownCoding, "http_response_transfer_coding"},
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": {OldCoding, "http_response_transfer_coding"},
		ok + "X: a\x00b\r\n\r\n":                                         {BadValue, "http_protocol_error"},
		ok + "no colon\r\n\r\n":                                          {NoColon, "http_protocol_error"},
		ok + "X: " + strings.Repeat("x", 2000) + "\r\n\r\n":              {HeadTooLarge, "http_response_header_section_size"},
		ok + "X: y": {HeadTruncated, "http_response_incomplete"},
		ok + "Transfer-Encoding: chunked\r\n\r\nhello":                                                            {BadChunkSize, "http_response_transfer_coding"},
		ok + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n":                                            {BadChunkLine, "http_response_transfer_coding"},
		ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n":                                         {BadChunkEnd, "http_response_transfer_coding"},
		ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", 1000) + "\r\n":                {TrailerTooLarge, "http_response_trailer_section_size"},
		ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\nZ: 1\r\n\r\n":                                          {BadTrailer, "http_protocol_error"},
		ok + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 5000) + "\r\nx\r\n0\r\n\r\n":            {ChunkTooWordy, "http_response_transfer_coding"},
		ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 99)+"\r\nx\r\n", 999): {ChunkTooWordy, "http_response_transfer_coding"},
		ok + "Content-Length: 9\r\n\r\nhello":                                                                     {BodyTruncated, "http_response_incomplete"},
	} {
		m := checkSplits(t, []byte(stream), "GET", 3, 5, Limit{Head: 1000})
		var fault *Fault
		if !errors.As(m.err, &fault) || fault.Kind != want.kind || fault.Status != http.StatusBadGateway || fault.Type != want.status || strings.Contains(fault.Error(), "request") {
			t.Errorf("%.80q: %+v %v", stream, fault, m.err)
		}
	}
}

// An answer is mended where that changes nothing of what it says; what HTTP/2 cannot carry
// is named.
func TestAnswersAreMended(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, c := range []struct {
		fields, key, value, body string
		mended                   Kind
		odd                      string
		close                    bool
	}{
		{"Location : /x\r\nContent-Length: 2\r\n", "Location", "/x", "ok", BlankBeforeColon, "", false},
		{"X: a\r\n\t b\r\nContent-Length: 2\r\n", "X", "a b", "ok", Fold, "", false},
		{"Content-Length: 2, 2\r\n", "Content-Length", "2", "ok", ManyLengths, "", false},
		{"Content-Length: 2\r\nContent-Length: 2\r\n", "Content-Length", "2", "ok", ManyLengths, "", false},
		{"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n", "Content-Length", "", "hi", LengthBesideCoding, "", true},
		{"Content-Length: 2\r\nTransfer-Encoding: identity\r\n", "Content-Length", "2", "ok", UnknownCoding, "", true},
		{"Power by: x\r\nContent-Length: 2\r\n", "Power by", "x", "ok", 0, "Power by", false},
		{"X: a\x01b\r\nContent-Length: 2\r\n", "X", "a\x01b", "ok", 0, "X", false},
		{"", "X", "", "until close", 0, "", true},
	} {
		body := c.body
		if strings.Contains(c.fields, "chunked") {
			body = "2\r\nhi\r\n0\r\n\r\n"
		}
		m := checkSplits(t, []byte(ok+c.fields+"\r\n"+body), "GET", 3, 5, Limit{})
		if m.err != nil || m.content != c.body || m.head.Mended != c.mended || m.head.Odd != c.odd || m.head.Close != c.close || strings.Join(m.head.Header()[c.key], "|") != c.value {
			t.Errorf("%q: %+v %q %v", c.fields, m.head, m.content, m.err)
			continue
		}
		handOn(t, []byte(c.fields), m, "GET", c.odd == "")
	}
}

// What follows an answer that has no body is not read.
func TestAnswersWithoutABody(t *testing.T) {
	for _, c := range []struct{ method, status string }{{"HEAD", "200"}, {"GET", "204"}, {"GET", "304"}, {"GET", "101"}, {"CONNECT", "200"}, {"GET", "103"}} {
		r := readerOf("HTTP/1.1 " + c.status + " x\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n")
		var h Head
		err := r.ReadAnswer(&h, c.method)
		must.True(t, err == nil && h.Framing == NoBody && h.Length == 5, "%v: %+v %v", c, h, err)
		var b Body
		b.Reset(r, &h)
		n, err := b.Read(make([]byte, 9))
		must.True(t, n == 0 && err == io.EOF && b.Ended() && string(r.Rest()) == "HTTP/1.1 200 OK\r\n", "%v: %d %v", c, n, err)
	}
}

// Every way to cut a stream in two is read in the same way.
func TestEverySplitIsTheSame(t *testing.T) {
	for i, s := range append(append([]string{}, requestSamples...), answerSamples...) {
		method := ""
		if i >= len(requestSamples) {
			method = "GET"
		}
		for _, limit := range []Limit{{}, {Head: 60}} {
			whole := readMessage([]byte(s), method, []int{len(s) + 1}, 4096, limit)
			for at := 1; at < len(s); at += 1 + len(s)/500 {
				m := readMessage([]byte(s), method, []int{at, len(s)}, 4096, limit)
				if (m.err == nil) != (whole.err == nil) || m.kind() != whole.kind() || m.content != whole.content || m.rest != whole.rest {
					t.Errorf("%.100q cut at %d: %q %q %v, and whole: %q %q %v", s, at, m.content, m.rest, m.err, whole.content, whole.rest, whole.err)
				}
			}
		}
	}
}
