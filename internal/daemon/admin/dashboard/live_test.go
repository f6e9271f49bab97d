package dashboard

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
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
		got := read(event([]byte(text)))
		must.True(t, len(got) == 1 && got[0] == want, "%q is read as %q", text, got)
	})
}

// A fault in making a page is logged; heed and the streams of the page go on.
func TestLivePage_AFaultEndsNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	made := 0
	p := livePage{turn: make(chan struct{}, 1), log: slog.New(slog.NewTextHandler(&log, nil)), make: func(context.Context) ([]byte, error) {
		if made++; made == 1 {
			panic("a fault")
		}
		return []byte("state"), nil
	}}
	now := func() []byte {
		text, _ := p.state(t.Context(), t.Context())
		return text
	}
	if text := now(); text != nil || !strings.Contains(log.String(), "a live page could not be made") {
		t.Errorf("%q; the log: %s", text, log.String())
	}
	p.made = time.Time{}
	must.Equal(t, string(now()), "state", "after the fault")
	p.made = time.Now().Add(time.Hour)
	if now(); made != 2 {
		t.Errorf("a state that another viewer has made just now is made again")
	}
}

// slowPage is a live page whose state takes until made is closed, or the page ends.
type slowPage struct {
	*Dashboard
	making, made chan struct{}
	admitted     atomic.Bool
	stream       http.HandlerFunc
}

func newSlowPage() *slowPage {
	p := &slowPage{making: make(chan struct{}), made: make(chan struct{})}
	p.admitted.Store(true)
	p.Dashboard = New(Options{Log: slog.New(slog.DiscardHandler), Now: time.Now, Admitted: func(context.Context) bool { return p.admitted.Load() }})
	p.stream = p.Dashboard.stream(func(ctx context.Context) ([]byte, error) {
		p.making <- struct{}{}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.made:
			return []byte("state"), nil
		}
	})
	return p
}

// writable is an answer of which the time for writing can be set.
type writable struct{ *httptest.ResponseRecorder }

func (writable) SetWriteDeadline(time.Time) error { return nil }

// watch opens the page. The func it returns waits for the end of the stream, and returns it.
func (p *slowPage) watch(ctx context.Context) (all func() string) {
	w, ended := writable{httptest.NewRecorder()}, make(chan struct{})
	go func() {
		defer close(ended)
		p.stream(w, httptest.NewRequestWithContext(ctx, "GET", "/live/x", nil))
	}()
	return func() string {
		<-ended
		return w.Body.String()
	}
}

// While a state is made, a viewer who leaves is not counted any more, and one who is not
// admitted any more when it is made does not get it.
func TestStream_AViewerLeavesWhileAStateIsMade(t *testing.T) {
	t.Parallel()
	p := newSlowPage()
	defer p.Close()
	first := p.watch(t.Context())
	<-p.making
	ctx, leave := context.WithCancel(t.Context())
	second := p.watch(ctx)
	leave()
	if second(); p.viewers.Load() != 1 {
		t.Errorf("%d viewers after the second one has left", p.viewers.Load())
	}
	p.admitted.Store(false)
	close(p.made)
	must.Equal(t, first(), "", "a viewer who is not admitted any more")
}

// Close ends the making of a state, and with it the streams that wait for it.
func TestStream_CloseEndsWhatMakesAState(t *testing.T) {
	t.Parallel()
	p := newSlowPage()
	first := p.watch(t.Context())
	<-p.making
	p.Close()
	must.Equal(t, first(), "", "a stream that was closed")
}
