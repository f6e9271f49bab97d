package pacing

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// attack is a way in which a client may send requests closer together than the site asks
// for. It lasts until ctx ends; number distinguishes clients that try the same.
type attack func(ctx context.Context, b *bed, number int)

// No two requests to a site start closer to each other than its delay, in whatever way
// they are sent and broken off, and whatever the site does to its connections.
func TestHeed_NoWayToBeFaster(t *testing.T) {
	const delay = 500 * time.Millisecond
	for _, c := range []struct {
		name   string
		way    way
		site   http.Handler
		attack attack
	}{
		{"methods", plain, nil, methods},
		{"names under one group", h1, nil, names},
		{"spellings of the host", plain, nil, spellings},
		{"requests that are taken back", plain, nil, takenBack},
		{"streams that are taken back", h2, nil, takenBack},
		{"requests behind each other on one connection", plain, nil, pipelined},
		{"redirects", plain, redirecting(), methods},
		{"uploads that begin late", plain, nil, lateUploads},
		{"uploads that ask first", plain, nil, askingFirst},
		{"handshakes of WebSockets", plain, nil, webSockets},
		{"a site that drops its connections", plain, dropping(), methods},
		{"a site that drops its HTTP/2 streams", h2, dropping(), methods},
		{"a site that takes one stream at a time", h2, slowAtTimes(), methods},
		{"a client's own look at robots.txt", plain, nil, robotsToo},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			streams := 0
			if strings.HasSuffix(c.name, "one stream at a time") {
				streams = 1
			}
			b := newBed(t, testkit.GaugeOptions{Robots: delayed("0.5"), Handler: c.site, Streams: streams}, "max_wait = \"10m\"\n")
			b.way = c.way
			lasts := 6 * time.Second
			if testkit.Full {
				lasts = time.Minute
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var busy sync.WaitGroup
			for number := range 8 {
				busy.Go(func() { c.attack(ctx, b, number) })
			}
			testkit.Delay(lasts)
			// An attack that starves everybody does not come to this.
			b.site.Await(t, int(lasts/delay)/4, func(a testkit.Arrival) bool { return a.Target != "/robots.txt" })
			cancel()
			busy.Wait()
			arrived := testkit.Pages(lowered(b.site.Starts()), b.way.scheme()+"://site.test")
			testkit.Keep(t, c.name, arrived, delay)
		})
	}
}

// lowered has the sites under one spelling of their names.
func lowered(all []testkit.Arrival) []testkit.Arrival {
	for i, a := range all {
		host, _, _ := strings.Cut(strings.ToLower(a.Host), ":")
		all[i].Host = strings.TrimSuffix(host, ".")
	}
	return all
}

// page is an address that has not been requested before.
func (b *bed) page() string { return b.pageOf(b.way.scheme()) }

func (b *bed) pageOf(scheme string) string {
	return fmt.Sprintf("%s://site.test/page/%d", scheme, rand.Int64())
}

func methods(ctx context.Context, b *bed, number int) {
	c := b.client(b.way, number)
	for ctx.Err() == nil {
		method := []string{"GET", "HEAD", "OPTIONS", "DELETE", "PROPFIND"}[rand.IntN(5)]
		c.ask(ctx, method, b.page())
	}
}

func names(ctx context.Context, b *bed, number int) {
	c := b.client(b.way, number)
	for ctx.Err() == nil {
		c.agent = fmt.Sprintf("Robot%c/1.0", 'a'+rune(rand.IntN(26)))
		c.ask(ctx, http.MethodGet, b.page())
	}
}

func spellings(ctx context.Context, b *bed, number int) {
	c := b.client(b.way, number)
	for ctx.Err() == nil {
		spelled := []string{"http://site.test/", "http://SITE.test/", "http://site.test:80/", "http://site.test:/", "http://site.test:080/", "http://u:p@site.test/"}[rand.IntN(6)]
		c.ask(ctx, http.MethodGet, spelled+fmt.Sprint(rand.Int64()))
	}
}

func takenBack(ctx context.Context, b *bed, number int) {
	c := b.client(b.way, number)
	for ctx.Err() == nil {
		if number < 2 { // so that something comes through
			c.ask(ctx, http.MethodGet, b.page())
			continue
		}
		short, cancel := context.WithTimeout(ctx, rand.N(700*time.Millisecond))
		c.ask(short, http.MethodGet, b.page())
		cancel()
	}
}

// raw is an attack in octets: each connection sends texts, one after the other,
// and reads what comes until the site's heed closes it.
func raw(ctx context.Context, b *bed, send func(w io.Writer)) {
	for ctx.Err() == nil {
		c, err := b.dial(ctx)
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { c.Close() })
		go send(c)
		read := bufio.NewReader(c)
		for {
			resp, err := http.ReadResponse(read, nil)
			if err != nil {
				break
			}
			io.Copy(io.Discard, resp.Body)
			if resp.Close || resp.StatusCode >= http.StatusBadRequest {
				break
			}
		}
		stop()
		c.Close()
	}
}

func pipelined(ctx context.Context, b *bed, _ int) {
	raw(ctx, b, func(w io.Writer) {
		for range 20 {
			fmt.Fprintf(w, "GET %s HTTP/1.1\r\nHost: site.test\r\n\r\n", b.page())
		}
	})
}

// lateUploads say how much they upload, and begin with it a second later.
func lateUploads(ctx context.Context, b *bed, number int) {
	if number%2 == 0 {
		methods(ctx, b, number)
		return
	}
	raw(ctx, b, func(w io.Writer) {
		for ctx.Err() == nil {
			fmt.Fprintf(w, "POST %s HTTP/1.1\r\nHost: site.test\r\nContent-Length: 10\r\n\r\n", b.page())
			select {
			case <-ctx.Done():
			case <-time.After(rand.N(2 * time.Second)):
			}
			if _, err := io.WriteString(w, "0123456789"); err != nil {
				return
			}
		}
	})
}

func askingFirst(ctx context.Context, b *bed, _ int) {
	raw(ctx, b, func(w io.Writer) {
		for ctx.Err() == nil {
			fmt.Fprintf(w, "POST %s HTTP/1.1\r\nHost: site.test\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", b.page())
			select {
			case <-ctx.Done():
			case <-time.After(rand.N(time.Second)):
			}
			if _, err := io.WriteString(w, "5\r\n01234\r\n0\r\n\r\n"); err != nil {
				return
			}
		}
	})
}

func webSockets(ctx context.Context, b *bed, _ int) {
	raw(ctx, b, func(w io.Writer) {
		for range 20 {
			fmt.Fprintf(w, "GET %s HTTP/1.1\r\nHost: site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", b.page())
		}
	})
}

// robotsToo has every second client look at robots.txt all the time.
func robotsToo(ctx context.Context, b *bed, number int) {
	if number > 0 {
		methods(ctx, b, number)
		return
	}
	for c := b.client(b.way, number); ctx.Err() == nil; {
		c.ask(ctx, http.MethodGet, "http://site.test/robots.txt")
	}
}

// redirecting leads from every page to another.
func redirecting() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
}

// dropping breaks off every second request, as a site does that has closed a
// connection while a request was on its way: who sends it once more needs
// another turn.
func dropping() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rand.IntN(2) == 0 {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "ok")
	})
}

// slowAtTimes takes two seconds for every third answer.
func slowAtTimes() http.Handler {
	var count atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1)%3 == 1 {
			testkit.Delay(2 * time.Second)
		}
		io.WriteString(w, "ok")
	})
}

// A request whose connection the site drops is not sent once more before its next
// turn: where that is too far off, it is refused with a Retry-After.
func TestHeed_WhatWouldBeSentAgainTooLateIsRefused(t *testing.T) {
	t.Parallel()
	var once sync.Once
	b := newBed(t, testkit.GaugeOptions{Robots: delayed("3"), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/dropped" {
			once.Do(func() { panic(http.ErrAbortHandler) })
		}
		io.WriteString(w, "ok")
	})}, "max_wait = \"4s\"\n[[client]]\nname = \"hurried\"\nuser_agent = \"hurried/*\"\nmax_wait = \"100ms\"\n")
	c := b.client(plain, 0)
	c.get(t, "http://site.test/first") // and keeps a connection for later
	testkit.Delay(3 * time.Second)     // of the client: its next request need not wait
	c.agent = "hurried/1.0"
	a, err := c.ask(t.Context(), http.MethodGet, "http://site.test/dropped")
	must.Need(t, err == nil && a.StatusCode == http.StatusTooManyRequests && strings.Contains(a.Header.Get("Proxy-Status"), "http_request_error"),
		"%v, %v", a, err)
	seconds, _ := strconv.Atoi(a.Header.Get("Retry-After"))
	testkit.Delay(time.Duration(seconds) * time.Second) // the client keeps its Retry-After
	c.get(t, "http://site.test/dropped")
	testkit.Keep(t, "all", testkit.Pages(b.site.Starts(), "http://site.test"), 3*time.Second)
	ended := b.Await("of the request that was dropped", func(r testkit.Record) bool {
		return strings.HasSuffix(r.Text("url"), "/dropped") && r.Number("status") == http.StatusTooManyRequests
	})
	must.Contain(t, ended.Text("error"), "closed the connection", "the record says %v", ended)
}
