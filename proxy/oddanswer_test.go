package proxy

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// oddAnswers are what sites send as an answer to GET, and what the client of heed gets for it:
// the statuses, the fields that the case is about, and the body; or the Proxy-Status error and
// the sentence of the refusal. An answer that ends with END is followed by the end of the
// stream. "hello" is the page.
var oddAnswers = []struct{ name, answer, want string }{
	// The status line (RFC 9112 §4).
	{"no head at all", "helloEND", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"a page without a head", "<html>hello</html>END", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"nothing", "END", `502 connection_terminated: heed reached odd.test, but the connection ended before its answer: connection_terminated`},
	{"half a status line", "HTTP/1.1 20END", `502 http_response_incomplete: the answer ended within its head`},
	{"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"an FTP greeting", "220 ready\r\n", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"a stream server", "ICY 200 OK\r\n\r\nhelloEND", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"no version", "HTTP 200 OK\r\n\r\nhelloEND", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"small letters", "http/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhelloEND", `200 hello`},
	{"HTTP/0.9 with a head", "HTTP/0.9 200 OK\r\n\r\nhelloEND", `200 hello`},
	{"HTTP/1.2", "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"HTTP/1.10", "HTTP/1.10 200 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"HTTP/2", "HTTP/2 200\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"HTTP/3.7", "HTTP/3.7 200 OK\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"no phrase", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"an empty phrase", "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"two blanks", "HTTP/1.1  200  OK\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"tabs", "HTTP/1.1\t200\tOK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"no blank after the status", "HTTP/1.1 200OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a status that is not a number from 100 to 999`},
	{"no status", "HTTP/1.1 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a status that is not a number from 100 to 999`},
	{"a short status", "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a status that is not a number from 100 to 999`},
	{"a long status", "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a status that is not a number from 100 to 999`},
	{"a negative status", "HTTP/1.1 -20 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a status that is not a number from 100 to 999`},
	{"status 099", "HTTP/1.1 099 Odd\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a status that no site may give`},
	{"status 600", "HTTP/1.1 600 Odd\r\nContent-Length: 5\r\n\r\nhello", `600 hello`},
	{"status 999", "HTTP/1.1 999 Request denied\r\nContent-Length: 5\r\n\r\nhello", `999 hello`},
	{"status 407", "HTTP/1.1 407 Odd\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a status that no site may give`},
	{"a long phrase", "HTTP/1.1 200 " + strings.Repeat("so long ", 2000) + "\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"an 8-bit phrase", "HTTP/1.1 200 Sch\xf6n\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"a control character in the phrase", "HTTP/1.1 200 O\x01K\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"NUL in the phrase", "HTTP/1.1 200 O\x00K\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"a carriage return in the phrase", "HTTP/1.1 200 O\rK\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"empty lines before it", "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"a blank before it", " HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"a byte order mark before it", "\xef\xbb\xbfHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer does not begin with an HTTP status line`},

	// Lines (RFC 9112 §2.2).
	{"line feeds alone", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", `200 hello`},
	{"both kinds of lines", "HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello", `200 hello`},
	{"carriage returns alone", "HTTP/1.1 200 OK\rContent-Length: 5\r\rhelloEND", `502 http_response_incomplete: the answer ended within its head`},
	{"a carriage return inside a field", "HTTP/1.1 200 OK\r\nX-Odd: a\rContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a control character in the field "X-Odd"`},
	{"two carriage returns", "HTTP/1.1 200 OK\r\r\nContent-Length: 5\r\r\n\r\r\nhelloEND", `502 http_response_incomplete: the answer ended within its head`},
	{"no empty line", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nEND", `502 http_response_incomplete: the answer ended within its head`},
	{"a head that ends", "HTTP/1.1 200 OK\r\nContEND", `502 http_response_incomplete: the answer ended within its head`},

	// Fields (RFC 9112 §5).
	{"no fields", "HTTP/1.1 200 OK\r\n\r\nhelloEND", `200 hello`},
	{"a blank before a colon", "HTTP/1.1 200 OK\r\nX-Odd : a\r\nContent-Length: 5\r\n\r\nhello", `200 X-Odd=a hello`},
	{"a tab before a colon", "HTTP/1.1 200 OK\r\nX-Odd\t: a\r\nContent-Length: 5\r\n\r\nhello", `200 X-Odd=a hello`},
	{"a blank inside a name", "HTTP/1.1 200 OK\r\nX Odd: a\r\nContent-Length: 5\r\n\r\nhello", `200 X Odd=a hello`},
	{"a parenthesis in a name", "HTTP/1.1 200 OK\r\nX(Odd): a\r\nContent-Length: 5\r\n\r\nhello", `malformed MIME header line: "X(Odd): a"`},
	{"an 8-bit name", "HTTP/1.1 200 OK\r\nX-\xd6dd: a\r\nContent-Length: 5\r\n\r\nhello", "malformed MIME header line: \"X-\\xd6dd: a\""},
	{"NUL in a name", "HTTP/1.1 200 OK\r\nX\x00Odd: a\r\nContent-Length: 5\r\n\r\nhello", "502 http_protocol_error: the answer has a field name with an octet that no name has: \"X\\x00Odd\""},
	{"a vertical tab in a name", "HTTP/1.1 200 OK\r\nX-Odd\x0b: a\r\nContent-Length: 5\r\n\r\nhello", "502 http_protocol_error: the answer has a field name with an octet that no name has: \"X-Odd\\v\""},
	{"a name that is heed's but for an octet", "HTTP/1.1 200 OK\r\nProxy-Status\x0b: heed; error=x\r\nContent-Length: 5\r\n\r\nhello", "502 http_protocol_error: the answer has a field name with an octet that no name has: \"Proxy-Status\\v\""},
	{"the same with a no-break space", "HTTP/1.1 200 OK\r\nProxy-Status\xa0: heed; error=x\r\nContent-Length: 5\r\n\r\nhello", "502 http_protocol_error: the answer has a field name with an octet that no name has: \"Proxy-Status\\xa0\""},
	{"no name", "HTTP/1.1 200 OK\r\n: a\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a field without a name`},
	{"no colon", "HTTP/1.1 200 OK\r\nnothing\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a line without a colon among its fields`},
	{"a second status line", "HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a line without a colon among its fields`},
	{"an empty value", "HTTP/1.1 200 OK\r\nX-Odd:\r\nContent-Length: 5\r\n\r\nhello", `200 X-Odd= hello`},
	{"no blank after a colon", "HTTP/1.1 200 OK\r\nX-Odd:a\r\nContent-Length:5\r\n\r\nhello", `200 X-Odd=a hello`},
	{"an 8-bit value", "HTTP/1.1 200 OK\r\nX-Odd: Sch\xf6n\r\nContent-Length: 5\r\n\r\nhello", "200 X-Odd=Sch\xf6n hello"},
	{"NUL in a value", "HTTP/1.1 200 OK\r\nX-Odd: a\x00b\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a control character in the field "X-Odd"`},
	{"a control character in a value", "HTTP/1.1 200 OK\r\nX-Odd: a\x01b\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a control character in the field "X-Odd"`},
	{"DEL in a value", "HTTP/1.1 200 OK\r\nX-Odd: a\x7fb\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a control character in the field "X-Odd"`},
	{"a tab in a value", "HTTP/1.1 200 OK\r\nX-Odd: a\tb\r\nContent-Length: 5\r\n\r\nhello", "200 X-Odd=a\tb hello"},
	{"a value over two lines", "HTTP/1.1 200 OK\r\nX-Odd: a\r\n b\r\nContent-Length: 5\r\n\r\nhello", `200 X-Odd=a b hello`},
	{"a value over three lines", "HTTP/1.1 200 OK\r\nX-Odd:\r\n\ta\r\n \t b\r\nContent-Length: 5\r\n\r\nhello", `200 X-Odd=a b hello`},
	{"a blank before the first field", "HTTP/1.1 200 OK\r\n X-Odd: a\r\nContent-Length: 5\r\n\r\nhello", `502 http_protocol_error: the answer has a blank before its first field`},
	{"a field twice", "HTTP/1.1 200 OK\r\nX-Odd: a\r\nContent-Length: 5\r\nX-Odd: b\r\n\r\nhello", `200 X-Odd=a | b hello`},
	{"two types", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"two places", "HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 5\r\n\r\nhello", `302 Location=/a | /b hello`},
	{"a long value", "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 100<<10) + "\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"a head that is too long", "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 257<<10) + "\r\nContent-Length: 5\r\n\r\nhello", `502 http_response_header_section_size: the answer head is too large`},
	{"a thousand fields", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Many: a\r\n", 1000) + "Content-Length: 5\r\n\r\nhello", `200 hello`},
	{"too many fields", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X:a\r\n", 10001) + "Content-Length: 5\r\n\r\nhello", `502 http_response_header_section_size: the answer has too many fields`},
	{"a field that Connection names", "HTTP/1.1 200 OK\r\nConnection: x-odd\r\nX-Odd: a\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},

	// Content-Length (RFC 9110 §8.6, RFC 9112 §6.3).
	{"the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"the same length in a list", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", `200 hello`},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello", `502 http_protocol_error: the answer has several Content-Length fields`},
	{"two lengths in a list", "HTTP/1.1 200 OK\r\nContent-Length: 5, 4\r\n\r\nhello", `502 http_protocol_error: the answer has several Content-Length fields`},
	{"an empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello", `502 http_protocol_error: the answer has a Content-Length that is not a number of digits`},
	{"a length with a plus", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", `502 http_protocol_error: the answer has a Content-Length that is not a number of digits`},
	{"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhelloEND", `502 http_protocol_error: the answer has a Content-Length that is not a number of digits`},
	{"a hexadecimal length", "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello", `502 http_protocol_error: the answer has a Content-Length that is not a number of digits`},
	{"a length with a point", "HTTP/1.1 200 OK\r\nContent-Length: 5.0\r\n\r\nhello", `502 http_protocol_error: the answer has a Content-Length that is not a number of digits`},
	{"a length with a unit", "HTTP/1.1 200 OK\r\nContent-Length: 5 bytes\r\n\r\nhello", `502 http_protocol_error: the answer has a Content-Length that is not a number of digits`},
	{"a length with zeros", "HTTP/1.1 200 OK\r\nContent-Length: 005\r\n\r\nhello", `200 hello`},
	{"a length of 20 digits", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhelloEND", `502 http_protocol_error: the answer has a Content-Length that is too large`},
	{"a length over two lines", "HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\nhello", `502 http_protocol_error: the answer has the field "Content-Length" over several lines`},
	{"a blank before the colon of a length", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", `502 http_protocol_error: the answer has a blank before the colon of the field "Content-Length"`},
	{"too few octets", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhelloEND", `200 hello, cut off`},
	{"too many octets", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello again", `200 hello`},

	// Transfer-Encoding (RFC 9112 §6.1, §7).
	{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", `200 hello`},
	{"chunks in large letters", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `200 hello`},
	{"chunks beside a length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `200 hello`},
	{"chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `502 http_response_transfer_coding: the answer has a Transfer-Encoding in HTTP/1.0`},
	{"chunked twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `502 http_response_transfer_coding: the transfer coding is not known`},
	{"chunked in two fields", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `502 http_response_transfer_coding: the transfer coding is not known`},
	{"identity", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhelloEND", `200 hello`},
	{"identity with a length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"gzip", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhelloEND", `502 http_response_transfer_coding: the transfer coding is not known`},
	{"gzip in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `502 http_response_transfer_coding: the transfer coding is not known`},
	{"an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\nhello", `502 http_response_transfer_coding: the transfer coding is not known`},
	{"an empty coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello", `502 http_response_transfer_coding: the transfer coding is not known`},
	{"a vertical tab before a coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `502 http_protocol_error: the answer has a control character in the field "Transfer-Encoding"`},
	{"a blank before the colon of a coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `502 http_protocol_error: the answer has a blank before the colon of the field "Transfer-Encoding"`},
	{"chunk extensions", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b;c=\"d;e\"\r\nhello\r\n0;f\r\n\r\n", `200 hello`},
	{"a blank after a chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5  \r\nhello\r\n0\r\n\r\n", `200 hello`},
	{"zeros before a chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000005\r\nhello\r\n000\r\n\r\n", `200 hello`},
	{"a chunk size with a sign", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", `200 , cut off`},
	{"a chunk size with 0x", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", `200 , cut off`},
	{"a chunk size of 17 digits", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n", `200 , cut off`},
	{"no chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", `200 , cut off`},
	{"chunks with line feeds alone", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", `200 , cut off`},
	{"a chunk that is longer than its size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n", `200 hello, cut off`},
	{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nEND", `200 hello, cut off`},
	{"no line after the last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nEND", `200 hello, cut off`},
	{"chunked, but no chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhelloEND", `200 , cut off`},
	{"trailers", "HTTP/1.1 200 OK\r\nTrailer: X-Odd\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Odd: a\r\n\r\n", `200 (X-Odd) hello`},
	{"trailers that were not announced", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Odd: a\r\n\r\n", `200 (X-Odd) hello`},
	{"a length as a trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n", `200 hello`},
	{"a trailer without a colon", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nnothing\r\n\r\n", `200 hello, cut off`},

	// Answers before the answer, and statuses without a body (RFC 9110 §15.2, §15.3.5).
	{"100 unasked", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `200 hello`},
	{"102 twice", "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `102 102 200 hello`},
	{"103 with a field", "HTTP/1.1 103 Early Hints\r\nX-Odd: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `103 X-Odd=a 200 hello`},
	{"103 with a length", "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `103 200 hello`},
	{"103 with a body", "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `103 502 http_protocol_error: the answer does not begin with an HTTP status line`},
	{"199", "HTTP/1.1 199 Odd\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", `199 200 hello`},
	{"102 in HTTP/1.0", "HTTP/1.0 102 Processing\r\n\r\nHTTP/1.0 200 OK\r\n\r\nhelloEND", `102 200 hello`},
	{"100 and the end", "HTTP/1.1 100 Continue\r\n\r\nEND", `502 connection_terminated: heed reached odd.test, but the connection ended before its answer: connection_terminated`},
	{"101 unasked", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello", `502 http_upgrade_failed: the answer switches to a protocol that the client did not ask for`},
	{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", `204 `},
	{"204 with chunks", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `204 `},
	{"205 with a body", "HTTP/1.1 205 Reset Content\r\nContent-Length: 5\r\n\r\nhello", `205 hello`},
	{"304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", `304 `},
	{"304 with a body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", `304 `},
}

// sendOdd answers each request of c with the case that its path names.
func (s *site) sendOdd(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		answer, ends := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(s.robots), s.robots), false
		if n, err := strconv.Atoi(r.URL.Path[1:]); err == nil {
			answer, ends = strings.CutSuffix(oddAnswers[n].answer, "END")
		}
		if _, err := io.WriteString(c, answer); err != nil || ends {
			return
		}
	}
}

// shown returns what a client gets: statuses, the fields of the case, and the body.
func shown(c *testkit.Conn) string {
	var b strings.Builder
	for {
		_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
		resp, err := http.ReadResponse(c.R, nil)
		if err != nil {
			return b.String() + err.Error()
		}
		fmt.Fprintf(&b, "%d ", resp.StatusCode)
		for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
			if name == "Location" || strings.HasPrefix(name, "X") && name != "X-Long" && name != "X-Many" && name != "X-Content-Type-Options" {
				fmt.Fprintf(&b, "%s=%s ", name, strings.Join(resp.Header[name], " | "))
			}
		}
		if resp.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		_, kind, refused := strings.Cut(resp.Header.Get("Proxy-Status"), "error=")
		if kind, _, _ = strings.Cut(kind, ";"); refused {
			sentence, _, _ := strings.Cut(string(body), "\n")
			return b.String() + kind + ": " + strings.TrimPrefix(sentence, "heed reached odd.test, but its answer is not valid HTTP: ")
		}
		for name := range resp.Trailer {
			fmt.Fprintf(&b, "(%s) ", name)
		}
		b.Write(body)
		if err != nil {
			b.WriteString(", cut off")
		}
		return b.String()
	}
}

// What cannot be read in one way only is refused with the cause. All else arrives as it
// came, or as RFC 9112 asks a proxy to mend it.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, hello)
	go testkit.Accept(s.listen(t, "odd.test:80"), s.sendOdd)
	r := newRigBefore(t, s)
	for i, odd := range oddAnswers {
		t.Run(odd.name, func(t *testing.T) {
			c, prefix := r.in(t).rawTo(plain, "odd.test")
			c.Send(requestTo("odd.test", "GET", prefix, fmt.Sprint("/", i), "Accept: text/plain"))
			must.Equal(t, shown(c), odd.want)
		})
	}
}
