package dashboard

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// read returns the data of the events of a stream, as a browser reads it (WHATWG HTML
// §9.2.6).
func read(stream []byte) (all []string) {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(stream))
	var data []string
	for line := range strings.SplitSeq(text, "\n") {
		switch name, value, _ := strings.Cut(line, ":"); {
		case line == "" && data != nil:
			all, data = append(all, strings.Join(data, "\n")), nil
		case name == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return all
}

// Whatever a page contains is the data of one event: nothing in it begins another field or
// another event.
func FuzzEvent(f *testing.F) {
	for _, text := range []string{"", "<p>a</p>", "a\nb\r\nc\rd\r\r\n\n", "a\rdata: <b>\r\revent: x\r\rid: 1\n", ":\n\n", "\r", " a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
		if got := read(event([]byte(text))); len(got) != 1 || got[0] != want {
			t.Errorf("%q is read as %q", text, got)
		}
	})
}

// A fault in making a page is logged; heed and the streams of the page go on.
func TestLivePage_AFaultEndsNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	made := 0
	p := livePage{log: slog.New(slog.NewTextHandler(&log, nil)), make: func(context.Context) ([]byte, error) {
		if made++; made == 1 {
			panic("a fault")
		}
		return []byte("state"), nil
	}}
	if text := p.state(); text != nil || !strings.Contains(log.String(), "a live page could not be made") {
		t.Errorf("%q; the log: %s", text, log.String())
	}
	p.made = time.Time{}
	if text := p.state(); string(text) != "state" {
		t.Errorf("%q after the fault", text)
	}
	p.made = time.Now().Add(time.Hour)
	if p.state(); made != 2 {
		t.Errorf("a state that another viewer has made just now is made again")
	}
}
