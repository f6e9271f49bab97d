package resp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"heed/internal/pace/fleet/resp"
	"heed/internal/tools/testkit/must"
)

// read returns what passes of replies that arrive in pieces of some bytes.
func read(t testing.TB, replies []byte, piece int) ([]byte, error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		defer far.Close()
		for rest := replies; len(rest) > 0; {
			n := min(piece, len(rest))
			if _, err := far.Write(rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
	}()
	return io.ReadAll(resp.Limit(near))
}

var replies = []struct{ name, text, wrong string }{
	{"status, error, number", "+OK\r\n-ERR no\r\n:1\r\n:-5\r\n+\r\n", ""},
	{"strings", "$0\r\n\r\n$5\r\na\r\nb\r\r\n$-1\r\n", ""},
	{"arrays", "*0\r\n*-1\r\n*2\r\n*1\r\n:1\r\n*2\r\n$1\r\nx\r\n*0\r\n+next\r\n", ""},
	{"an entry of a MiB", "*3\r\n$1\r\n1\r\n$1048576\r\n" + strings.Repeat("r", 1<<20) + "\r\n$0\r\n\r\n", ""},
	{"many commands", "*20000\r\n" + strings.Repeat(":1\r\n", 20000), ""},
	{"many replies", strings.Repeat("*3\r\n:1\r\n:1\r\n:1\r\n", 50000), ""},

	{"a map", "%1000000000\r\n", "begins with the octet '%'"},
	{"an attribute", "|1\r\n", "begins with the octet '|'"},
	{"a push", ">3\r\n", "begins with the octet '>'"},
	{"a web server", "HTTP/1.1 400 Bad Request\r\n", "begins with the octet 'H'"},
	{"a long string", "$99999999999\r\n", "announces a string of 99999999999"},
	{"a string too long by one", "$4194305\r\n", "announces a string"},
	{"a wide array", "*1000000000\r\n", "announces 1000000000 elements"},
	{"an array beyond numbers", "*99999999999999999999\r\n", "not a length"},
	{"wide arrays in an array", "*3\r\n*65536\r\n" + strings.Repeat("$-1\r\n", 65536) + "*65536\r\n", "announces 65536 elements, over"},
	{"nested arrays", strings.Repeat("*1\r\n", 100000), "nested"},
	{"a negative length", "*-2\r\n", "not a length"},
	{"a signed length", "$+2\r\n", "not a length"},
	{"no length", "$\r\n", "not a length"},
	{"an endless length", "*" + strings.Repeat("0", 100), "line is too long"},
	{"an endless line", "+" + strings.Repeat("x", 1<<20), "line is too long"},
	{"a line without CR", "+OK\n", "does not end in CRLF"},
	{"a CR in a line", "+O\rK\r\n", "does not end in CRLF"},
	{"an empty number", ":\r\n", "number is empty"},
	{"a string that goes on", "$2\r\nabc\r\n", "longer than it announced"},
	{"a long reply", "*3\r\n" + strings.Repeat("$4194304\r\n"+strings.Repeat("x", 4<<20)+"\r\n", 3), "longer than 8388608"},
}

func TestHeed_RepliesAreBoundedHoweverTheyAreCut(t *testing.T) {
	t.Parallel()
	for _, r := range replies {
		for _, piece := range []int{1, 7, 1 << 30} {
			if piece < 1000 && len(r.text) > 1<<18 {
				continue
			}
			got, err := read(t, []byte(r.text), piece)
			switch {
			case r.wrong == "" && (err != nil || string(got) != r.text):
				t.Errorf("%s, in pieces of %d: %d octets and %v", r.name, piece, len(got), err)
			case r.wrong != "" && (!errors.Is(err, resp.ErrReply) || !strings.Contains(err.Error(), r.wrong)):
				t.Errorf("%s, in pieces of %d: %v, want %q", r.name, piece, err, r.wrong)
			}
		}
	}
}

// A client library that gives up in the middle of a string takes the rest of it for
// the beginning of the next reply.
func TestHeed_AReplyThatStopsInTheMiddleEndsItsConnection(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	go far.Write([]byte("$30\r\nab"))
	c := resp.Limit(near)
	must.Get(io.ReadFull(c, make([]byte, 7)))(t)
	c.SetReadDeadline(time.Unix(1, 0))
	_, err := c.Read(make([]byte, 1))
	must.True(t, errors.Is(err, resp.ErrReply), "after half a string: %v", err)
	_, err = c.Write([]byte("x"))
	must.True(t, errors.Is(err, resp.ErrReply), "written after that: %v", err)

	near, far = net.Pipe()
	go far.Write([]byte("+OK\r\n"))
	c = resp.Limit(near)
	must.Get(io.ReadFull(c, make([]byte, 5)))(t)
	c.SetReadDeadline(time.Unix(1, 0))
	_, err = c.Read(make([]byte, 1))
	must.True(t, !errors.Is(err, resp.ErrReply), "between replies: %v", err)
}

func FuzzReplies(f *testing.F) {
	for _, r := range replies {
		if len(r.text) < 1<<10 {
			f.Add([]byte(r.text), 3)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		if len(text) > 1<<16 {
			return
		}
		whole, err := read(t, text, len(text)+1)
		cut, cutErr := read(t, text, 1+max(0, piece)%50)
		must.Equal(t, err == nil, cutErr == nil, "whole: %v; in pieces: %v", err, cutErr)
		must.True(t, (err != nil || bytes.Equal(whole, text)) && bytes.HasPrefix(text, cut), "octets are lost")
	})
}
