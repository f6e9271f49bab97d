//go:build !race

package cache

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// These tests measure the memory that one goroutine fills: the race detector would
// find nothing in them and multiplies what they take. all.sh runs them without it.

// answers are what sites answer a flood with.
var answers = map[string]func(host string) (*http.Response, error){
	"no file": func(string) (*http.Response, error) { return response(404, ""), nil },
	"no name": func(host string) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	},
	"failing": func(string) (*http.Response, error) { return response(503, ""), nil },
	"reset":   func(string) (*http.Response, error) { return nil, errors.New("connection reset") },
	"usual": func(host string) (*http.Response, error) {
		return response(200, fileOf(host, 30), "ETag", `"`+host+`"`, "Last-Modified", "Sat, 21 Nov 2026 12:00:00 GMT"), nil
	},
	"short": func(host string) (*http.Response, error) { return response(200, fileOf(host, 1)), nil },
	"long":  func(host string) (*http.Response, error) { return response(200, fileOf(host, 1000)), nil },
}

func response(status int, body string, fields ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

func fileOf(host string, lines int) string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for n := range lines {
		fmt.Fprintf(&b, "Disallow: /%s/folder-%d/\n", host, n)
	}
	return b.String()
}

// What the bound counts is what the policies take, whatever they are.
func TestHeed_WhatIsCountedIsWhatIsHeld(t *testing.T) {
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			const bound = 4 << 20
			before := heap()
			c, clock := newCache(t, Config{Memory: NewMemory(0, bound), Transport: transport(func(r *http.Request) (*http.Response, error) {
				return answer(r.URL.Host)
			})})
			n := 0
			for last := -1; ; n++ {
				clock.step(time.Millisecond)
				c.Policy(t.Context(), numbered(n), "")
				if count, _ := c.Size(); count <= last { // it is full
					break
				} else {
					last = count
				}
			}
			_, counted := c.Size()
			held := heap() - before
			t.Logf("%d origins: %d bytes counted, %d held", n, counted, held)
			must.True(t, held <= counted+counted/10 && held >= counted/3, "%d bytes are counted, %d held", counted, held)
			runtime.KeepAlive(c)
		})
	}
}

// A walk through names that were never requested before neither fills the memory nor
// drives out the sites in steady use. HEED_TEST_FULL=1 makes it a million names.
func TestHeed_AMillionNamesAreBounded(t *testing.T) {
	config := Config{}
	names, working, room := 20_000, 200, int64(12<<20)
	if testkit.Full {
		names, working, room = 1_000_000, 1000, defaultMaxBytes
	}
	config.Memory = NewMemory(0, room)
	bound := room
	kinds := []string{"no file", "no name", "failing", "usual", "short", "short"}
	refetched := 0
	seen := map[string]bool{}
	before := heap()
	config.Transport = transport(func(r *http.Request) (*http.Response, error) {
		if strings.HasPrefix(r.URL.Host, "working-") {
			if seen[r.URL.Host] {
				refetched++
			}
			seen[r.URL.Host] = true
			return answers["usual"](r.URL.Host)
		}
		return answers[kinds[rand.IntN(len(kinds))]](r.URL.Host)
	})
	c, clock := newCache(t, config)
	inUse := func(n int) rules.Origin {
		return rules.Origin{Scheme: "https", Host: fmt.Sprintf("working-%d.test", n), Port: 443}
	}
	uses, most := 0, int64(0)
	for n := range names {
		clock.step(time.Millisecond)
		c.Policy(t.Context(), numbered(rand.IntN(1<<40)), "curl/8")
		if n%10 == 0 { // each of them every ten seconds, while a thousand names a second come
			c.Policy(t.Context(), inUse(uses%working), "curl/8")
			uses++
		}
		if n%(names/20) == names/20-1 {
			_, counted := c.Size()
			held := heap() - before
			most = max(most, held)
			must.True(t, counted <= bound && held <= bound+bound/10,
				"after %d names: %d bytes counted, %d held, bound %d", n+1, counted, held, bound)
		}
	}
	there := 0
	for n := range working {
		if p := c.store.find(inUse(n)); p != nil && p.entry("", clock.Now()) != nil {
			there++
		}
	}
	count, _ := c.Size()
	t.Logf("%d names: at most %d bytes held, bound %d; %d origins kept; of %d in steady use %d are there, fetched again %d times in %d uses",
		names, most, bound, count, working, there, refetched, uses)
	must.True(t, there >= working*99/100 && refetched <= uses/100,
		"%d of %d in use are there; fetched again %d times in %d uses", there, working, refetched, uses)
}
