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
func TestHub_AFaultInAPageEndsNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := hub{interval: time.Millisecond, log: slog.New(slog.NewTextHandler(&log, nil))}
	defer h.close()
	made := 0
	p, ok := h.enter("overview", func(context.Context) ([]byte, error) {
		if made++; made == 1 {
			panic("a fault")
		}
		return []byte("state"), nil
	})
	if !ok {
		t.Fatal("no stream")
	}
	text, changed, _ := h.last(p)
	for text == nil {
		<-changed
		text, changed, _ = h.last(p)
	}
	if string(text) != "state" || !strings.Contains(log.String(), "a live page could not be made") {
		t.Errorf("%q; the log: %s", text, log.String())
	}
}
