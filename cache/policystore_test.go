package cache

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// drawer is a PolicyStore for one test.
type drawer struct {
	mu   sync.Mutex
	kept map[string][2][]byte
}

func newDrawer() *drawer { return &drawer{kept: map[string][2][]byte{}} }

func (d *drawer) Load(key string) (record, snapshot []byte, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	both, ok := d.kept[key]
	return both[0], both[1], ok
}

func (d *drawer) Save(key string, record, snapshot []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept[key] = [2][]byte{record, snapshot}
	return true
}

func (d *drawer) Drop(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	familyOf := func(key string) string { return key[:strings.LastIndexByte(key, '\n')+1] }
	for other := range d.kept {
		if other == key || key == familyOf(key) && familyOf(other) == key {
			delete(d.kept, other)
		}
	}
	return true
}

// entries are an entry of every kind.
func entries() map[string]*entry {
	aside := after(said(200, "ETag", `"1"`))
	return map[string]*entry{
		"read":        after(said(200, "ETag", `"1"`, "Last-Modified", "x", "Cache-Control", "max-age=7200, stale-while-revalidate=60", "Vary", "User-Agent")),
		"absent":      after(said(404)),
		"denied":      after(said(403)),
		"confirmed":   after(said(200, "ETag", `"1"`), said(304)),
		"stale":       after(said(200, "ETag", `"1"`), said(503), said(503)),
		"unreachable": after(said(429, "Retry-After", "600")),
		"unconnected": after(notHome()),
		"closed":      next(nil, said(401), start, 0, rules.Strict),
		"set aside":   next(aside, said(503), start, 0, rules.Strict),
		"no-store":    after(said(200, "Cache-Control", "no-store")),
		"as a client": next(nil, answer{origin: site, as: "curl/8", url: "u", siteReply: siteReply{status: 200, note: "a remark"}}, start, 0, rules.Standard),
	}
}

// plain returns e and its sources as values, without what is built of the file.
func plain(e *entry) (bare entry, sources []rules.Source) {
	bare = *e
	for _, p := range []*rules.Policy{e.policy, e.lastGood} {
		if p == nil {
			continue
		}
		src := p.Source()
		if src.Err != nil {
			src.Err = fmt.Errorf("%s", src.Err) // its text counts
		}
		if src.Snapshot != nil {
			src.Note += fmt.Sprintf(" %+v", *src.Snapshot)
			src.Snapshot = nil
		}
		sources = append(sources, src)
	}
	bare.policy, bare.lastGood = nil, nil
	return bare, sources
}

// packed returns the Snapshot of a file.
func packed(o rules.Origin, file string) *rules.Snapshot {
	s := &rules.Snapshot{Origin: o}
	s.Pack([]byte(file))
	return s
}

// answerOf returns the Snapshot of the file that e has; nil for none.
func answerOf(e *entry) *rules.Snapshot {
	if file := e.copy(); file != nil {
		return file.Source().Snapshot
	}
	return nil
}

func TestHeed_NothingOfAnEntryIsForgotten(t *testing.T) {
	t.Parallel()
	used := map[string]bool{
		"version": true, "seen": true, // what the fleet has is asked anew after a restart
		"Own":          true, // that is of no site
		"NameNotAsked": true, // said of a copy for one client
	}
	for name, e := range entries() {
		got, err := readRecord(site, rules.Strict, encodeRecord(e, rules.Strict), encodeSnapshot(answerOf(e)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		bare, sources := plain(got)
		wantBare, wantSources := plain(e)
		must.Equal(t, bare, wantBare, name)
		must.Equal(t, fmt.Sprintf("%+v", sources), fmt.Sprintf("%+v", wantSources), "%s:\ngot  %+v\nwant %+v", name, sources, wantSources)
		for _, v := range []any{*e, e.policy.Source()} {
			for i := range reflect.TypeOf(v).NumField() {
				used[reflect.TypeOf(v).Field(i).Name] = used[reflect.TypeOf(v).Field(i).Name] || !reflect.ValueOf(v).Field(i).IsZero()
			}
		}
	}
	for field, once := range used {
		must.True(t, once, "no entry of this test has %s: what is kept of it is not known", field)
	}
}

// What may be told of a failure is known after a restart, too.
func TestHeed_PublicTextIsKept(t *testing.T) {
	t.Parallel()
	e := next(nil, answer{origin: site, siteReply: siteReply{status: 302, err: publicErrorf(errNetwork, "redirects in a circle")}}, start, 0, rules.Standard)
	again := must.Get(readRecord(site, rules.Standard, encodeRecord(e, rules.Standard), nil))(t)
	for _, e := range []*entry{e, again} {
		src := e.policy.Source()
		must.True(t, safetext.Public(src.Err) == "redirects in a circle" && src.Err.Error() == "redirects in a circle: "+errNetwork.Error(),
			"%v, public text %q", src.Err, safetext.Public(src.Err))
	}
}

func TestHeed_WhatIsNotOursToReadIsNotRead(t *testing.T) {
	t.Parallel()
	e := after(said(200))
	record := encodeRecord(e, rules.Standard)
	whole := encodeSnapshot(packed(site, file))
	elsewhere := encodeSnapshot(packed(numbered(1), file))
	for name, c := range map[string]struct{ record, snapshot []byte }{
		"another version":     {[]byte(strings.Replace(string(record), `"v":2`, `"v":1`, 1)), whole},
		"no record":           {[]byte("hello"), whole},
		"no file":             {record, nil},
		"no head":             {record, []byte("hello\n" + file)},
		"a file that changed": {record, append(whole[:len(whole):len(whole)], "Disallow: /\n"...)},
		"a file cut short":    {record, whole[:len(whole)-1]},
		"another site's file": {record, elsewhere},
	} {
		e, err := readRecord(site, rules.Standard, c.record, c.snapshot)
		must.True(t, err != nil, "%s: read as %+v", name, e)
	}
}

func TestHeed_ASnapshotIsWhatTheSiteSaid(t *testing.T) {
	t.Parallel()
	d := newDrawer()
	_, o := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.Redirect(w, r, "/moved", http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("ETag", `"7"`)
		w.Header().Set("Set-Cookie", "secret=1")
		w.Header().Set("Vary", strings.Repeat("x", maxFieldKept+1))
		_, _ = w.Write(zipped(file))
	})
	c, clock := newCache(t, Config{Store: d})
	c.Policy(t.Context(), o, "")
	_, text, ok := d.Load(storeKey(o, ""))
	must.Need(t, ok, "nothing was saved")
	s := must.Get(decodeSnapshot(text))(t)
	if body, err := s.Body(); s.Origin != o || s.Status != 200 || string(body) != file || err != nil || !s.FetchedAt.Equal(clock.Now()) {
		t.Errorf("%+v with %q, %v", s, body, err)
	}
	want := []string{o.RobotsURL(), o.String() + "/moved"}
	must.True(t, reflect.DeepEqual(s.Chain, want), "asked %q, want %q", s.Chain, want)
	if s.Header["Etag"][0] != `"7"` || s.Header["Content-Encoding"][0] != "gzip" || s.Header["Set-Cookie"] != nil || len(s.Header["Vary"]) != 0 {
		t.Errorf("header %q", s.Header)
	}
}

// restarted returns a cache over the same store, with the time of the last one.
func restarted(t *testing.T, d *drawer, clock *stepped) *Cache {
	t.Helper()
	c, now := newCache(t, Config{Store: d})
	now.now = clock.Now()
	return c
}

func TestHeed_ARestartAsksNoSiteAgain(t *testing.T) {
	t.Parallel()
	d := newDrawer()
	wellSite, well := newSite(t, status(200, "ETag", `"1"`))
	goneSite, gone := newSite(t, status(404))
	wallSite, wall := newSite(t, status(429, "Retry-After", "3600"))
	fussySite, fussy := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.UserAgent(), "curl") {
			w.WriteHeader(403)
			return
		}
		_, _ = io.WriteString(w, file)
	})
	ask := func(c *Cache) (states string) {
		for _, o := range []rules.Origin{well, gone, wall, fussy} {
			states += fmt.Sprint(c.Policy(t.Context(), o, "curl/8").Source().State, " ")
		}
		return states
	}
	first, clock := newCache(t, Config{Store: d})
	before := ask(first)
	clock.step(5 * time.Minute)
	must.Equal(t, ask(restarted(t, d, clock)), before, "before %s, after", before)
	for name, s := range map[string]*asked{"well": wellSite, "gone": goneSite, "wall": wallSite} {
		must.Equal(t, s.count.Load(), 1, "times %s was asked", name)
	}
	must.Equal(t, fussySite.count.Load(), 2, "times fussy was asked")
}

// A copy that was confirmed, or that is used while the site fails, is stored once; only
// its source changes.
func TestHeed_ACopyOnDiskIsRevalidatedAndUsedWhileTheSiteFails(t *testing.T) {
	t.Parallel()
	d := newDrawer()
	site, o := newSite(t, status(200, "ETag", `"1"`))
	c, clock := newCache(t, Config{Store: d})
	c.Policy(t.Context(), o, "")
	again := func(h http.HandlerFunc) rules.Source {
		t.Helper()
		site.turn(h)
		clock.step(2 * time.Hour)
		p := restarted(t, d, clock).Policy(t.Context(), o, "")
		must.Equal(t, p.Decide(nil, rules.NewTarget("/private/x")).Verdict, rules.Refuse, "by the rules of the copy")
		return p.Source()
	}
	src := again(func(w http.ResponseWriter, r *http.Request) {
		must.Equal(t, r.Header.Get("If-None-Match"), `"1"`, "asked with %v", r.Header)
		w.WriteHeader(304)
	})
	must.True(t, !src.Stale && src.FetchedAt.Equal(clock.Now()), "confirmed: %+v", src)
	fetched := clock.Now()
	for range 2 {
		src = again(status(503))
		must.True(t, src.Stale && src.FetchedAt.Equal(fetched) && src.Err != nil, "failing: %+v", src)
	}
}

func TestRFC9111_WhatMustNotBeStoredIsNot(t *testing.T) {
	t.Parallel()
	d := newDrawer()
	site, o := newSite(t, status(200))
	c, clock := newCache(t, Config{Store: d})
	c.Policy(t.Context(), o, "")
	must.Need(t, len(d.kept) == 1, "%d are kept", len(d.kept))
	clock.step(2 * time.Hour)
	site.turn(status(200, "Cache-Control", "no-store"))
	c.Policy(t.Context(), o, "")
	must.Equal(t, len(d.kept), 0, "are kept")
}

// Who has mended the network and starts heed again must not be told of its
// state of before.
func TestHeed_TroubleOfOurOwnIsForgottenAtTheRestart(t *testing.T) {
	t.Parallel()
	d := newDrawer()
	c, _ := newCache(t, Config{Store: d, Transport: transport(func(*http.Request) (*http.Response, error) {
		return nil, errNetwork
	})})
	src := c.Policy(t.Context(), numbered(1), "").Source()
	must.True(t, src.NoConnection && len(d.kept) == 0, "%d are kept, %+v", len(d.kept), src)
}

func TestHeed_AKeptFileThatPanicsIsFetchedAnew(t *testing.T) {
	t.Parallel()
	d := newDrawer()
	site, o := newSite(t, status(200))
	d.Save(storeKey(o, ""), nil, nil)
	c, _ := newCache(t, Config{Store: panicking{d}})
	src := c.Policy(t.Context(), o, "").Source()
	must.True(t, src.State == rules.Available && site.count.Load() == 1, "%d requests, %+v", site.count.Load(), src)
}

// panicking is a PolicyStore in which something is wrong.
type panicking struct{ *drawer }

func (panicking) Load(string) (record, snapshot []byte, ok bool) { panic("broken") }

func TestHeed_CachesThatShareMemoryShareItsBound(t *testing.T) {
	t.Parallel()
	m := NewMemory(100, 1<<30)
	tr := transport(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody}, nil
	})
	one := New(Config{Transport: tr, Memory: m})
	other := New(Config{Transport: tr, Memory: m, Route: "other"})
	same := New(Config{Transport: tr, Memory: m, Route: "other"})
	policy := other.Policy(t.Context(), numbered(0), "")
	must.True(t, one.Policy(t.Context(), numbered(0), "") != policy, "two ways share a policy")
	must.Equal(t, same.Policy(t.Context(), numbered(0), ""), policy, "one way has two policies")
	for n := range 200 {
		one.Policy(t.Context(), numbered(n), "")
		other.Policy(t.Context(), numbered(n), "")
	}
	n, _ := one.Size()
	count := 0
	for _, c := range []*Cache{one, other} {
		for range c.List() {
			count++
		}
	}
	must.True(t, n == 100 && count == 100, "%d places, %d policies", n, count)
}
