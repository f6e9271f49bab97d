package transparent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// open starts a request whose answer is read as it comes. body may be nil; its
// length is not told.
func (w *world) open(m way, s *shape, body io.Reader) *http.Response {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*testkit.Patience)
	w.t.Cleanup(cancel)
	scheme := map[bool]string{true: "https", false: "http"}[m.https()]
	req := must.Get(http.NewRequestWithContext(ctx, s.verb(), scheme+"://"+s.host()+s.path(), body))(w.t)
	req.Header = http.Header{"X-Shape": {s.name}, "User-Agent": nil}
	c, prefix := w.reach(m, s.host())
	if m == h2 {
		return must.Get(c.HTTP2().RoundTrip(req))(w.t)
	}
	c.SetDeadline(time.Now().Add(3 * testkit.Patience))
	go func() { // both directions at once
		if prefix != "" {
			req.URL.Scheme, _, _ = strings.Cut(prefix, "://")
			_ = req.WriteProxy(c) // the answer shows whether it arrived
		} else {
			_ = req.Write(c)
		}
	}()
	return must.Get(http.ReadResponse(c.R, req))(w.t)
}

// An event stream's head comes before its first event, each event before the
// next is made; a long poll is answered whenever the site answers.
func TestTransparency_NothingIsHeldBack(t *testing.T) {
	next := make(chan string)
	events := &shape{name: "live events", unseen: true, site: served, serve: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.(http.Flusher).Flush()
		for event := range next {
			if event == "" {
				return
			}
			io.WriteString(rw, event)
			rw.(http.Flusher).Flush()
		}
	}}
	asked := make(chan bool)
	poll := &shape{name: "long poll", unseen: true, site: served, serve: func(rw http.ResponseWriter, r *http.Request) {
		asked <- true
		io.WriteString(rw, <-next)
	}}
	w := newWorld(t, []*shape{events, poll})
	for _, m := range everyWay {
		t.Run(string(m), func(t *testing.T) {
			resp := w.in(t).open(m, events, nil) // the head has come, the site has said nothing yet
			for i := range 5 {
				event := fmt.Sprintf("data: %d\n\n", i)
				next <- event
				got := make([]byte, len(event))
				_, err := io.ReadFull(resp.Body, got)
				must.Need(t, err == nil && string(got) == event, "%q, %v", got, err)
			}
			next <- ""
			rest, err := io.ReadAll(resp.Body)
			must.True(t, len(rest) == 0 && err == nil, "the end is %q, %v", rest, err)
			go func() {
				<-asked
				next <- "news"
			}()
			resp = w.in(t).open(m, poll, nil)
			news, err := io.ReadAll(resp.Body)
			must.True(t, string(news) == "news" && err == nil, "the poll brought %q, %v", news, err)
		})
	}
}

// pattern is n octets in which a shift or a gap would show.
func pattern(n int64) io.Reader { return io.LimitReader(&loop{}, n) }

// loop repeats block for ever.
type loop struct{ at int }

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, block[l.at:])
	l.at = (l.at + n) % len(block)
	return n, nil
}

// block is random; its length fits no buffer.
var block = func() []byte {
	b := make([]byte, 1<<20+7)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}()

func sum(t *testing.T, r io.Reader) string {
	t.Helper()
	h := sha256.New()
	n, err := io.Copy(h, r)
	must.OK(t, err, "after %d octets", n)
	return fmt.Sprintf("%d octets %x", n, h.Sum(nil))
}

// highest is the most memory that heed has held so far, in KiB.
func highest(t *testing.T, pid int) (kib int) {
	t.Helper()
	text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t)
	_, line, _ := strings.Cut(string(text), "VmHWM:")
	must.Get(fmt.Sscanf(line, "%d kB", &kib))(t)
	return kib
}

// Large bodies arrive byte for byte, both ways, and heed holds no more memory
// for many megabytes than for eight.
func TestTransparency_LargeBodiesTakeNoMemory(t *testing.T) {
	const warm, room = 8 << 20, 48 << 10
	large := int64(72 << 20)
	var size atomic.Int64
	size.Store(warm)
	down := &shape{name: "large download", unseen: true, site: served, serve: func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(rw, pattern(size.Load()))
	}}
	up := &shape{name: "large upload", unseen: true, site: served, method: "PUT", serve: func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, sum(t, r.Body))
	}}
	w := newWorld(t, []*shape{down, up})
	ways := []way{plain, h2}
	if testkit.Full {
		ways, large = everyWay, 200<<20
	}
	round := func(m way) {
		t.Helper()
		want := sum(t, pattern(size.Load()))
		must.Equal(t, sum(t, w.in(t).open(m, down, nil).Body), want, "%s, down", m)
		got, err := io.ReadAll(w.in(t).open(m, up, pattern(size.Load())).Body)
		must.True(t, string(got) == want && err == nil, "%s, up: %s, %v, want %s", m, got, err, want)
	}
	for _, m := range ways {
		round(m)
	}
	before := highest(t, w.heed.Pid())
	size.Store(large)
	for _, m := range ways {
		round(m)
	}
	after := highest(t, w.heed.Pid())
	t.Logf("%d KiB after bodies of %d MiB, %d KiB after bodies of %d MiB", before, warm>>20, after, large>>20)
	must.True(t, after <= before+room, "heed held %d KiB more", after-before)
}

// A client that does not read one stream keeps neither its other streams nor
// another client from anything, and heed holds no more of what is not read than
// the windows of HTTP/2 let in.
func TestTransparency_ASlowReaderStopsNoOtherClient(t *testing.T) {
	const size, room = 100 << 20, 100 << 10 // the race detector wants its share
	down := &shape{name: "unread download", unseen: true, site: served, serve: func(rw http.ResponseWriter, r *http.Request) { io.Copy(rw, pattern(size)) }}
	page := &shape{name: "page beside", unseen: true, site: served, serve: func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "page") }}
	w := newWorld(t, []*shape{down, page})
	for _, m := range secure { // the site's side is HTTP/2, shared by all
		w.in(t).open(m, page, nil).Body.Close()
	}
	before := highest(t, w.heed.Pid())
	c, _ := w.reach(h2, served)
	client := c.HTTP2()
	ask := func(s *shape) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+served+"/page", nil)
		req.Header = http.Header{"X-Shape": {s.name}, "User-Agent": nil}
		return must.Get(client.RoundTrip(req))(t)
	}
	var unread []*http.Response
	for range 3 {
		unread = append(unread, ask(down))
	}
	for i := range 20 {
		body, err := io.ReadAll(ask(page).Body)
		must.Need(t, string(body) == "page" && err == nil, "page %d beside: %q %v", i, body, err)
		for _, m := range secure {
			body, err := io.ReadAll(w.in(t).open(m, page, nil).Body)
			must.Need(t, string(body) == "page" && err == nil, "page %d of another client, %s: %q %v", i, m, body, err)
		}
	}
	after := highest(t, w.heed.Pid())
	t.Logf("%d KiB before, %d KiB with 3 unread streams of %d MiB", before, after, size>>20)
	must.True(t, after <= before+room, "heed held %d KiB more", after-before)
	want := sum(t, pattern(size))
	must.Equal(t, sum(t, unread[0].Body), want, "read late")
	for _, resp := range unread[1:] {
		resp.Body.Close()
	}
}

// Requests that are sent ahead on one connection are answered in their order,
// with what each would have got by itself.
func TestTransparency_Pipelining(t *testing.T) {
	named := func(names ...string) (shapes []*shape) {
		for _, s := range slices.Concat(requests, answers, bodies) {
			if slices.Contains(names, s.name) {
				shapes = append(shapes, s)
			}
		}
		return shapes
	}
	shapes := named("get", "head", "post", "post trailers", "204", "304", "chunks", "no chunks", "large chunks", "trailers", "another reason", "early hints", "404", "length 0")
	w := newWorld(t, shapes)
	for _, m := range byBytes {
		t.Run(string(m), func(t *testing.T) {
			w := w.in(t)
			var want []*answer
			for _, s := range shapes {
				a := w.direct(m, s)
				w.last(s)
				want = append(want, a)
			}
			c, prefix := w.reach(m, scripted)
			var all strings.Builder
			for _, s := range shapes {
				all.WriteString(w.inText(prefix, s))
			}
			c.Send(all.String())
			for i, s := range shapes {
				got := w.hear(c, s, nil, func() {})
				w.last(s)
				if got.status != want[i].status || got.phrase != want[i].phrase || got.body != want[i].body ||
					fmt.Sprint(got.trailer) != fmt.Sprint(want[i].trailer) {
					t.Errorf("%s: %d %s, %d octets, %v; directly %d %s, %d octets, %v", s.name, got.status, got.phrase, len(got.body), got.trailer,
						want[i].status, want[i].phrase, len(want[i].body), want[i].trailer)
				}
			}
		})
	}
}
