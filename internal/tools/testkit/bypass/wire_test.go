package bypass

import (
	"bufio"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"heed/internal/tools/testkit/must"
)

// trick is a request in octets, or several, from testdata/requests.txt.
type trick struct {
	name string
	text string
}

// tricks reads testdata/requests.txt. A line "== NAME" begins a trick; each
// line of it is sent with CRLF at its end, and the escapes of a Go string stand
// for octets; a line that ends in "\" is joined to the next without CRLF. These
// words are replaced:
//
//	%P  the text before the path: "http://SITE", "https://SITE" or nothing
//	%H  the site's name   %U  the same in upper case   %W  the site's port on 127.0.0.1   %S  the scheme
//	%T  a disallowed target   %O  an allowed one   %A  the rest of a head: a
//	    User-Agent of its own, and the empty line
func tricks(t testing.TB) (all []trick) {
	t.Helper()
	f := must.Get(os.Open("testdata/requests.txt"))(t)
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		line := scan.Text()
		name, begins := strings.CutPrefix(line, "== ")
		switch {
		case begins:
			all = append(all, trick{name: name})
		case strings.HasPrefix(line, "# "), len(all) == 0:
		case strings.HasSuffix(line, `\`):
			all[len(all)-1].text += strings.TrimSuffix(line, `\`)
		default:
			all[len(all)-1].text += line + `\r\n`
		}
	}
	return all
}

// bytes are what is sent for a trick on a route.
func (k trick) bytes(r route, port string, agent func() string) string {
	scheme := "http"
	if r.way == mitmH1 || r.way == absolute {
		scheme = "https"
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(k.text, `"`, `\"`) + `"`)
	if err != nil {
		panic("testdata/requests.txt: " + k.name + ": " + err.Error())
	}
	for strings.Contains(text, "%A") {
		text = strings.Replace(text, "%A", "User-Agent: "+agent()+"\r\n\r\n", 1)
	}
	return strings.NewReplacer("%P", r.prefix(), "%H", r.name, "%U", strings.ToUpper(r.name), "%W", port, "%S", scheme,
		"%T", "/private/canary.html", "%O", "/open/page.html").Replace(text)
}

// No request that breaks the rules of HTTP, or stretches them, brings back what
// robots.txt disallows either.
func TestHeed_NoTrickGetsRound(t *testing.T) {
	t.Parallel()
	all := tricks(t)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // most of the time goes by in waiting for answers that do not come
			r := newRig(t, s)
			for _, w := range []way{direct, plain, mitmH1, inTunnel, absolute} {
				got := r.play(w, all)
				t.Logf("%s, %s: %d tricks: %d canaries came back, %d refused by heed, %d silent, %d brought an allowed page",
					r.name, w, len(all), got.leaks, got.refused, got.silent, got.page)
				must.True(t, got.page != 0, "%s, %s: nothing comes through at all", r.name, w)
			}
			r.playH2()
			r.recordsAgree()
		})
	}
}

// played is what came of all tricks in one way.
type played struct{ leaks, refused, silent, page int }

// play sends all tricks in one way, several at a time.
func (r *rig) play(w way, all []trick) (sum played) {
	r.t.Helper()
	addr := r.witness.http
	if w == mitmH1 || w == absolute {
		addr = r.witness.https
	}
	_, port, _ := net.SplitHostPort(addr)
	var mu sync.Mutex
	var players sync.WaitGroup
	slots := make(chan struct{}, 24) // most of them wait
	for _, k := range all {
		slots <- struct{}{}
		players.Go(func() {
			defer func() { <-slots }()
			route := r.route(w)
			got := route.exchange(k.bytes(route, port, r.agent), silence)
			mu.Lock()
			defer mu.Unlock()
			must.True(r.t, !got.unasked, "%s, %s: no connection: %v", w, k.name, got.err)
			must.True(r.t, !got.leaks() || w == direct,
				"%s, %s: the canary came back for %q:\n%.300s", r.name, w, k.name, got.text)
			sum.add(got)
		})
	}
	players.Wait()
	return sum
}

func (p *played) add(got reply) {
	switch {
	case got.leaks():
		p.leaks++
	case strings.Contains(got.text, pageToken):
		p.page++
	case got.silent():
		p.silent++
	case got.refused():
		p.refused++
	}
}

// h2Trick is a request in HTTP/2 that no library would send.
type h2Trick struct {
	name   string
	fields []field // in place of, or beside, those of an ordinary request
	body   string
}

const (
	wanted = "/private/canary.html"
	paged  = "/open/page.html"
)

// h2Tricks are sent over an intercepted connection. A field replaces the
// ordinary one of its name; with "+" before the name it is added.
func h2Tricks(site string) []h2Trick {
	smuggled := "GET " + wanted + " HTTP/1.1\r\nHost: " + site + "\r\n\r\n"
	path := func(p string) []field { return []field{{":path", p}} }
	with := func(name, value string) []field { return []field{{":path", paged}, {name, value}} }
	return []h2Trick{
		{"ordinary", path(paged), ""},
		{"two paths", []field{{":path", paged}, {"+:path", wanted}}, ""},
		{"path after the fields", []field{{":path", paged}, {"x", "y"}, {"+:path", wanted}}, ""},
		{"absolute path", path("https://" + site + wanted), ""},
		{"absolute path of another site", path("https://free.test" + wanted), ""},
		{"path without slash", path("private/canary.html"), ""},
		{"path is empty", path(""), ""},
		{"path is a star", path("*"), ""},
		{"path with a line end", path(paged + " HTTP/1.1\r\nHost: " + site + "\r\n\r\n" + smuggled), ""},
		{"path with a space", path(paged + " " + wanted), ""},
		{"path with a tab", path("/open/..\t/private/canary.html"), ""},
		{"path with raw octets", path("/caf\xc3\xa9/canary.html"), ""},
		{"path with NUL", path(wanted + "\x00"), ""},
		{"path with a fragment", path(wanted + "#x"), ""},
		{"two slashes and a host", path("//" + site + wanted), ""},
		{"method with a line end", []field{{":path", paged}, {":method", "GET " + wanted + " HTTP/1.1\r\nx: y\r\n\r\nGET"}}, ""},
		{"method with a space", []field{{":path", paged}, {":method", "GET " + wanted}}, ""},
		{"lower-case method", []field{{":path", wanted}, {":method", "get"}}, ""},
		{"HEAD", []field{{":path", wanted}, {":method", "HEAD"}}, ""},
		{"CONNECT", []field{{":path", wanted}, {":method", "CONNECT"}}, ""},
		{"extended CONNECT", []field{{":path", wanted}, {":method", "CONNECT"}, {"+:protocol", "websocket"}}, ""},
		{"scheme http", []field{{":path", wanted}, {":scheme", "http"}}, ""},
		{"scheme with a path", []field{{":path", paged}, {":scheme", "https://" + site + wanted + "?"}}, ""},
		{"scheme is empty", []field{{":path", wanted}, {":scheme", ""}}, ""},
		{"authority of another site", []field{{":path", wanted}, {":authority", "free.test"}}, ""},
		{"authority with a path", []field{{":path", "/x"}, {":authority", site + wanted + "?"}}, ""},
		{"authority with userinfo", []field{{":path", wanted}, {":authority", "free.test@" + site}}, ""},
		{"authority is empty", []field{{":path", wanted}, {":authority", ""}}, ""},
		{"two authorities", []field{{":path", wanted}, {":authority", "free.test"}, {"+:authority", site}}, ""},
		{"Host of another site", with("host", "free.test"), ""},
		{"other site with our Host", []field{{":path", wanted}, {":authority", "free.test"}, {"host", site}}, ""},
		{"authority in upper case", []field{{":path", wanted}, {":authority", strings.ToUpper(site)}}, ""},
		{"authority with a dot", []field{{":path", wanted}, {":authority", site + "."}}, ""},
		{"authority with the port", []field{{":path", wanted}, {":authority", site + ":443"}}, ""},
		{"field with a line end", with("x", "y\r\n\r\n"+smuggled), ""},
		{"field name with a line end", with("x\r\n\r\nGET "+wanted+" HTTP/1.1\r\nx", "y"), ""},
		{"field name with a colon", with("x: y", "z"), ""},
		{"field name in upper case", with("X-Original-URL", wanted), ""},
		{"original URL", with("x-original-url", wanted), ""},
		{"rewrite URL", with("x-rewrite-url", wanted), ""},
		{"method override", with("x-http-method-override", "GET"), ""},
		{"transfer coding", with("transfer-encoding", "chunked"), "0\r\n\r\n" + smuggled},
		{"length shorter than the body", with("content-length", "0"), smuggled},
		{"length longer than the body", with("content-length", "4000"), smuggled},
		{"length that is none", with("content-length", "+1"), smuggled},
		{"connection", with("connection", "keep-alive, host"), ""},
		{"upgrade", with("upgrade", "h2c"), smuggled},
		{"te", with("te", "trailers, chunked"), smuggled},
		{"GET with a body", path(paged), smuggled},
		{"POST", []field{{":path", paged}, {":method", "POST"}}, smuggled},
		{"expect", with("expect", "100-continue"), smuggled},
	}
}

// playH2 sends each trick on a separate connection, several at a time, and asks for a
// disallowed page behind it.
func (r *rig) playH2() {
	r.t.Helper()
	refused, page := 0, 0
	all := h2Tricks(r.site)
	var mu sync.Mutex
	var players sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, k := range all {
		slots <- struct{}{}
		players.Go(func() {
			defer func() { <-slots }()
			a := &h2Asker{route: r.route(mitmH2)}
			defer a.close()
			got := a.send(merge(r.site, r.agent(), k.fields), k.body)
			next := a.ask(wanted, r.agent())
			mu.Lock()
			defer mu.Unlock()
			switch {
			case got.leaks(), next.leaks():
				r.t.Errorf("%s, h2: the canary came back for %q:\n%.300s", r.name, k.name, got.text+next.text)
			case strings.Contains(got.text, pageToken):
				page++
			case got.refused():
				refused++
			}
		})
	}
	players.Wait()
	r.t.Logf("%s, h2: %d tricks, %d refused by heed, %d brought an allowed page", r.name, len(all), refused, page)
	must.True(r.t, page != 0, "%s, h2: nothing comes through at all", r.name)
}

// merge puts fields into an ordinary request.
func merge(site, agent string, fields []field) []field {
	request := []field{{":method", "GET"}, {":scheme", "https"}, {":authority", site}, {":path", ""}}
	var more []field
	for _, f := range fields {
		replaced := false
		for i := range request {
			if request[i].name == f.name {
				request[i].value, replaced = f.value, true
			}
		}
		if !replaced {
			more = append(more, field{strings.TrimPrefix(f.name, "+"), f.value})
		}
	}
	return append(append(request, field{"user-agent", agent}), more...)
}
