package cache

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func numbered(n int) rules.Origin {
	return rules.Origin{Scheme: "https", Host: fmt.Sprintf("host-%d.example.test", n), Port: 443}
}

// heap returns how many octets are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one found unused is gone after the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// put keeps e for o, as a fetch does.
func put(s *store, o rules.Origin, e *entry, now time.Time) *originSlot {
	p := s.pin(o, now)
	p.set("", e)
	s.unpin(p)
	return p
}

// rulesFile returns the entry of a site with many rules.
func rulesFile(count int, now time.Time) *entry {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range count {
		fmt.Fprintf(&b, "Disallow: /catalog/section-%d/\n", i)
	}
	a := said(200)
	a.body = []byte(b.String())
	return next(nil, a, now, 0, rules.Standard)
}

// Of large files, a hundredth of the memory has room for 100,000 rules.
func TestHeed_LargeFilesStayInMemoryCompact(t *testing.T) {
	t.Parallel()
	const sites = 6
	s := &store{Memory: NewMemory(0, sites*defaultMaxBytes/100)}
	now, e := start, rulesFile(100_000, start)
	for range 2 {
		for n := range sites {
			now = now.Add(time.Second)
			if p := s.find(numbered(n)); p == nil {
				put(s, numbered(n), e, now)
			} else {
				p.touch(now)
			}
		}
	}
	n, bytes := s.size()
	must.True(t, n == sites && bytes <= s.maxBytes, "%d of %d sites are in memory, in %d bytes", n, sites, bytes)
}

// Compressing a large file takes tens of milliseconds, for which no other request waits: not for a
// look-up, and not for a place for the rules of its own site.
func TestHeed_OthersAreServedWhileALargeFileIsCompressed(t *testing.T) {
	t.Parallel()
	s := &store{Memory: NewMemory(0, defaultMaxBytes/100)}
	first, second, newer := numbered(1), numbered(2), after(said(404))
	times := 0
	s.compact = func(p *rules.Policy) *rules.Policy {
		q := p.Compact()
		if times++; times > 1 {
			return q
		}
		if !s.mu.TryLock() {
			t.Error("all misses wait while a file is compressed")
			return q
		}
		s.mu.Unlock()
		for n := range 3 { // a miss of another site, and a site of which the file is compressed
			put(s, numbered(10+n), newer, start)
		}
		for _, o := range []rules.Origin{first, second} {
			slot := s.find(o)
			must.True(t, slot != nil && slot.entry("", start) != nil, "%s is not served", o)
		}
		if p == s.find(first).entry("", start).policy {
			put(s, first, newer, start)
		}
		return q
	}
	put(s, first, rulesFile(30_000, start), start)
	put(s, second, rulesFile(30_000, start), start.Add(time.Second)).touch(start.Add(time.Second))
	must.Need(t, times != 0, "nothing was compressed")
	must.Equal(t, s.find(first).entry("", start), newer, "what the site answered meanwhile was replaced by the file that was compressed")
	_, bytes := s.size()
	must.True(t, bytes <= s.maxBytes, "%d bytes are kept", bytes)
	sum := int64(0)
	for p := range s.slots {
		sum += p.size()
	}
	must.Equal(t, sum, s.bytes, "bytes counted as %d", s.bytes)
}

// A large file does not push out small ones that are in use.
func TestHeed_ALargeFilePushesOutFewSmallOnes(t *testing.T) {
	t.Parallel()
	s := &store{Memory: NewMemory(0, 8<<20)}
	now, small := start, after(said(404))
	count := 0
	for ; s.bytes+2000 < s.maxBytes; count++ {
		now = now.Add(time.Millisecond)
		put(s, numbered(count), small, now).touch(now)
	}
	for n := range 3 {
		now = now.Add(time.Second)
		put(s, rules.Origin{Scheme: "https", Host: fmt.Sprintf("large-%d.example.test", n), Port: 443}, rulesFile(60_000, now), now)
	}
	left := 0
	for n := range count {
		if s.find(numbered(n)) != nil {
			left++
		}
	}
	must.True(t, left >= count*9/10, "%d of %d small ones are left", left, count)
}

// Of places used at the same time, those go first that are the least trouble to
// have again.
func TestHeed_WhatIsCheapToHaveAgainGoesFirst(t *testing.T) {
	s := &store{Memory: NewMemory(1<<30, 1<<40)}
	now := start.Add(time.Hour)
	at := func(n int, e *entry, change func(p *originSlot)) *originSlot {
		p := put(s, numbered(n), e, now)
		if change != nil {
			change(p)
		}
		return p
	}
	file := next(nil, said(200), now, 0, rules.Standard)
	order := []*originSlot{
		at(0, after(said(404, "Cache-Control", "max-age=0")), nil), // long over, and no copy of anything
		at(1, next(nil, broken(), now, 0, rules.Standard), nil),
		at(2, file, func(p *originSlot) { p.persisted.Store(true) }),
		at(3, file, nil),
		at(4, file, func(p *originSlot) { p.reused.Store(true); p.persisted.Store(true) }),
		at(5, file, func(p *originSlot) { p.reused.Store(true) }),
	}
	for i, p := range order[1:] {
		must.True(t, p.value(now) >= order[i].value(now), "%s would be missed less than %s", p.key, order[i].key)
	}
	s.now = now
	drawn := map[*originSlot]int{} // at random, so that one sample may miss it
	for range 100 {
		drawn[s.victimLocked(nil)]++
	}
	must.True(t, drawn[order[0]] >= 50 && drawn[order[5]] == 0,
		"of 100 times the cheapest would go %d times, the dearest %d times", drawn[order[0]], drawn[order[5]])
}

func TestHeed_PlacesInUseAreNotGivenUp(t *testing.T) {
	s := &store{Memory: NewMemory(10, 1<<40)}
	e := after(said(404))
	var fetching []*originSlot
	for n := range 20 { // more than there is room for
		fetching = append(fetching, s.pin(numbered(n), start))
	}
	for n := range 100 {
		put(s, numbered(1000+n), e, start.Add(time.Hour))
	}
	for n, p := range fetching {
		must.Need(t, s.find(numbered(n)) == p, "place %d is gone while its fetch goes on", n)
	}
	for _, p := range fetching {
		p.set("", e)
		s.unpin(p)
	}
	n, _ := s.size()
	must.True(t, n <= 10, "%d places are left afterwards", n)
}

func TestHeed_APolicyBeyondTheBoundIsServedButNotKept(t *testing.T) {
	_, o := newSite(t, status(200))
	c, _ := newCache(t, Config{Memory: NewMemory(0, 1)})
	inState(t, c.Policy(t.Context(), o, "").Source(), rules.Available)
	n, bytes := c.Size()
	must.True(t, n == 0 && bytes == 0, "%d places of %d bytes are kept", n, bytes)
}

// go-cache counts lifetimes by the wall clock, and takes a negative one for
// ever: neither may reach a policy.
func TestHeed_ClockStepsNeitherReviveNorBury(t *testing.T) {
	site, o := newSite(t, status(200))
	c, clock := newCache(t, Config{})
	c.Policy(t.Context(), o, "")
	clock.step(-365 * 24 * time.Hour) // back: of unknown age, asked for again
	c.Policy(t.Context(), o, "")
	must.Equal(t, site.count.Load(), 2, "requests after it was set back")
	clock.step(10 * 24 * time.Hour) // forward, and the site is away: still there
	site.turn(status(503))
	src := c.Policy(t.Context(), o, "").Source()
	must.True(t, src.Stale && src.State == rules.Available, "set forward: %+v", src)
}

// The monotonic clock does not advance while a machine sleeps.
func TestHeed_AgeIsCountedByTheWallClock(t *testing.T) {
	c := New(Config{Transport: http.DefaultTransport})
	now := c.now()
	must.True(t, now == now.Round(0), "%s carries a monotonic reading", now)
}

func TestHeed_WhatAnEntryHoldsIsCounted(t *testing.T) {
	small := after(said(404)).size()
	n := after(said(200, "ETag", strings.Repeat("x", 1000))).size()
	must.True(t, n >= small+1000, "with a long ETag: %d bytes", n)
	e := after(said(200, "ETag", strings.Repeat("x", 100_000)))
	must.True(t, e.size() <= small+100 && e.validators == (validators{}), "with one too long to keep: %d bytes", e.size())
	a := broken()
	a.err = fmt.Errorf("handshake: %w", &tls.CertificateVerificationError{
		UnverifiedCertificates: []*x509.Certificate{{Raw: make([]byte, 10_000)}}, Err: errors.New("unknown authority"),
	})
	n = after(a).size()
	must.True(t, n >= small+10_000, "with the certificates of a failed handshake: %d bytes", n)
}

// BenchmarkLookup is what a look-up adds to every request: half a microsecond at
// the most, however many origins there are. It must not allocate, whatever the
// length of the host.
func BenchmarkLookup(b *testing.B) {
	c := New(Config{Transport: transport(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody}, nil
	})})
	for n := range 100_000 {
		put(c.store, numbered(n), next(nil, said(404), time.Now(), 0, rules.Standard), time.Now())
	}
	for _, count := range []int{1, 1000, 100_000} { // the last do not fit into the processor's caches
		b.Run(fmt.Sprintf("origins=%d", count), func(b *testing.B) {
			host := make([]byte, 0, 64) // a request has just brought it
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				host = append(strconv.AppendInt(append(host[:0], "host-"...), int64(n*7919%count), 10), ".example.test"...)
				c.Policy(b.Context(), rules.Origin{Scheme: "https", Host: unsafe.String(&host[0], len(host)), Port: 443}, "curl/8")
			}
		})
	}
	longest := rules.Origin{Scheme: "https", Host: strings.Repeat("label.", 41) + "test", Port: 8443}
	b.Run("longest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Policy(b.Context(), longest, "curl/8")
		}
	})
	b.Run("parallel", func(b *testing.B) {
		var origins []rules.Origin
		for n := range 1000 {
			origins = append(origins, numbered(n))
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for n := rand.IntN(1000); pb.Next(); n++ {
				c.Policy(b.Context(), origins[n*7919%1000], "curl/8")
			}
		})
	})
}

func TestHeed_ACachedLookUpDoesNotAllocate(t *testing.T) {
	_, o := newSite(t, status(403))
	c, _ := newCache(t, Config{})
	ctx := t.Context()
	for _, userAgent := range []string{"", "curl/8"} {
		c.Policy(ctx, o, userAgent)
		n := testing.AllocsPerRun(100, func() { c.Policy(ctx, o, userAgent) })
		must.True(t, n == 0, "%q: %v allocations", userAgent, n)
	}
}
