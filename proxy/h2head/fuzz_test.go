package h2head

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// wire is a connection with octets that have all come.
type wire struct {
	net.Conn
	io.Reader
}

func (c wire) Read(p []byte) (int, error)      { return c.Reader.Read(p) }
func (c wire) SetReadDeadline(time.Time) error { return nil }

// read is a frame as net/http reads it.
type read struct {
	header http2.FrameHeader
	fields []hpack.HeaderField // of header blocks
	cut    bool                // not all of them
	reset  bool                // the stream is reset
	rest   []byte              // of other frames
}

// readAll reads frames with the parser that net/http has.
func readAll(from io.Reader, listSize int) (frames []read, end error) {
	f := http2.NewFramer(io.Discard, from)
	f.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
	f.MaxHeaderListSize = uint32(listSize)
	f.SetMaxReadFrameSize(testFrame)
	for {
		frame, err := f.ReadFrame()
		if reset := (http2.StreamError{}); errors.As(err, &reset) {
			frames = append(frames, read{header: http2.FrameHeader{StreamID: reset.StreamID}, reset: true})
			continue
		}
		if err != nil {
			return frames, err
		}
		one := read{header: frame.Header()}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			one.fields, one.cut = slices.Clone(frame.Fields), frame.Truncated
		case *http2.DataFrame:
			one.rest = bytes.Clone(frame.Data())
		case *http2.UnknownFrame:
			one.rest = bytes.Clone(frame.Payload())
		}
		frames = append(frames, one)
	}
}

const testFrame, testHead = 1 << 10, 4 << 10

// noteOf returns the Note among fields; nil: there is none.
func noteOf(t *testing.T, fields []hpack.HeaderField) *Note {
	for _, f := range fields {
		if f.Name == noteName {
			n := &Note{}
			must.OK(t, json.Unmarshal([]byte(f.Value), n))
			return n
		}
	}
	return nil
}

// plainly returns fields without what may differ.
func plainly(fields []hpack.HeaderField) (all []hpack.HeaderField) {
	for _, f := range fields {
		if f.Sensitive = false; f.Name != noteName {
			all = append(all, f)
		}
	}
	return all
}

// sameBlock checks a header block that was passed on against the one that came.
func sameBlock(t *testing.T, came, passed read) {
	note := noteOf(t, passed.fields)
	switch {
	case note != nil && note.Refused():
		return // it leads nowhere
	case slices.Equal(passed.fields, baitReset):
		wrong := check(slices.Clone(came.fields), came.header.Flags.Has(flagEndStream))
		if !came.reset && !came.cut && (wrong == nil || !wrong.reset) && !came.header.Flags.Has(http2.FlagHeadersPriority) {
			t.Errorf("%v %q is reset", came.header, came.fields)
		}
		return
	case came.reset || came.cut:
		must.True(t, passed.reset, "rejected as it came, and passed on as %q", passed.fields)
		return
	case note != nil:
		for i := range passed.fields {
			if passed.fields[i].Name == ":path" {
				passed.fields[i].Value = string(note.Target)
			}
		}
	}
	if !passed.reset && !reflect.DeepEqual(plainly(came.fields), plainly(passed.fields)) || came.header.StreamID != passed.header.StreamID ||
		came.header.Flags&flagEndStream != passed.header.Flags&flagEndStream {
		t.Errorf("%v %q was passed on as %v %q", came.header, came.fields, passed.header, passed.fields)
	}
}

// opens reports whether a frame opens a stream.
func opens(all []read, i int) bool {
	newest := uint32(0)
	for _, f := range all[:i] {
		if f.header.Type == kindHeaders || f.reset {
			newest = max(newest, f.header.StreamID)
		}
	}
	return all[i].header.Type == kindHeaders && all[i].header.StreamID > newest
}

// FuzzReader feeds octets to a Reader. Whatever they are, net/http's parser reads from it
// what it reads without it: the same fields, the same other frames, in the same order, up
// to where either ends the connection. Where a request would have been rejected, one comes
// that the handler refuses.
func FuzzReader(f *testing.F) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, fields := range [][]string{good("/a%zz"), good("/b", "x", "y"), good("/c", "connection", "x"), good("/", "x", strings.Repeat("z", 3000)), {"t", "1"}, {":path", "/"}} {
		var b bytes.Buffer
		framer := http2.NewFramer(&b, nil)
		framer.AllowIllegalWrites = true
		_ = framer.WriteSettings()
		for stream := uint32(1); stream < 6; stream += 2 {
			block.Reset()
			for _, field := range pairs(fields) {
				_ = encoder.WriteField(field)
			}
			part := block.Bytes()
			n := min(len(part), 100*int(stream))
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: part[:n], EndHeaders: n == len(part), EndStream: stream == 1, PadLength: 10 * byte(stream-1), Priority: http2.PriorityParam{Weight: 1}})
			for part = part[n:]; len(part) > 0; part = part[n:] {
				n = min(len(part), testFrame)
				_ = framer.WriteContinuation(stream, n == len(part), part[:n])
			}
			_ = framer.WriteData(stream, false, []byte("body"))
			_ = framer.WritePriority(stream, http2.PriorityParam{})
			_ = framer.WriteRSTStream(stream, http2.ErrCodeCancel)
			_ = framer.WriteRawFrame(200, 0, stream, []byte("unknown"))
		}
		f.Add(b.Bytes())
	}
	for _, bait := range []string{baitOrder, baitIndex, baitSize} {
		f.Add([]byte(bait))
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		l := testLimit(testHead)
		l.Frame, l.Streams = testFrame, 1<<20
		broken := 0
		r := NewReader(wire{nil, io.MultiReader(strings.NewReader(http2.ClientPreface), bytes.NewReader(octets))}, l, func(*http.Request, error) { broken++ })
		must.Get(io.ReadFull(r, make([]byte, preface)))(t)
		passed, end := readAll(r, ListSize(testHead))
		came, cameEnd := readAll(bytes.NewReader(octets), testHead)
		for i, p := range passed {
			if i == len(came) { // net/http would have ended the connection
				if note := noteOf(t, p.fields); cameEnd == io.EOF || p.reset || note == nil || !note.Refused() {
					t.Errorf("after %v came %v %q", cameEnd, p.header, p.fields)
				}
				return
			}
			c := came[i]
			switch {
			case p.header.Type == kindHeaders || p.reset:
				sameBlock(t, c, p)
			case c.reset || c.header != p.header || !bytes.Equal(c.rest, p.rest):
				t.Errorf("%v was passed on as %v", c, p)
			}
			if note := noteOf(t, p.fields); note != nil && note.Last {
				return
			}
		}
		if code := http2.ConnectionError(0); len(passed) < len(came) && (!errors.As(end, &code) && end != http2.ErrFrameTooLarge || broken == 0 && opens(came, len(passed))) {
			t.Errorf("%v after %d of %d frames, %d reported", end, len(passed), len(came), broken)
		}
	})
}

// FuzzRequest sends fields of any kind to net/http's server: a request that it hands to a
// handler is the same when it comes through a Reader, and one that it rejects is reported,
// reaches the handler as refused, or has an odd target.
func FuzzRequest(f *testing.F) {
	for _, fields := range [][]string{
		good("/a%zz"), good("/", "te", "trailers"), good("/", "te", "x"), good("/", "host", "h"), good("a"), good("/\t"), good("*"), good("//a@b/%"),
		good("http://a%zz/"), good("/", "trailer", "a, b"), good("/", "cookie", "a", "cookie", "b"), good("/", "expect", "100-continue"),
		{":method", "CONNECT", ":authority", "a@b"}, {":method", "X Y", ":path", "/", ":scheme", "http"}, {":path", "/", ":scheme", "https", ":method", "G", "host", "", "host", "a@b"},
	} {
		f.Add(strings.Join(fields, "\n"))
	}
	l := testLimit(64 << 10)
	through, direct := newServer(f, &l), newServer(f, nil)
	f.Fuzz(func(t *testing.T, text string) {
		fields := strings.Split(text, "\n")
		if len(fields)%2 != 0 || len(text) > 10<<10 {
			return
		}
		ask := func(s *server) (string, *handled) {
			c := s.dial(t)
			defer c.Close()
			return c.ask(s, 1, fields...)
		}
		plain, want := ask(direct)
		end, got := ask(through)
		switch {
		case got == nil && (want == nil || slices.Contains(fields, "content-length")): // net/http takes any
			select {
			case <-through.broken:
			default:
				t.Errorf("%q: %s, and not reported", fields, end)
			}
		case end != "answered" || got == nil:
			t.Errorf("%q: %s, and without a Reader %s", fields, end, plain)
		case got.note != nil && got.note.Refused():
			if want != nil {
				t.Errorf("%q: refused for %q, and net/http takes it", fields, got.note.Fault)
			}
		case want == nil:
			must.True(t, got.note != nil && string(got.note.Target) == got.RequestURI,
				"%q: net/http %s, and the handler gets %v", fields, plain, got)
		case fmt.Sprint(want) != fmt.Sprint(got) || want.URL.String() != got.URL.String():
			t.Errorf("%q: %v, want %v", fields, got, want)
		}
	})
}
