package http1

import (
	"maps"
	"net/http"
	"reflect"
	"testing"

	"heed/internal/tools/testkit/must"
)

// What concerns the client's connection, or heed itself, does not reach a site; what
// the client sends to the site does.
func TestRemoveHopByHop(t *testing.T) {
	for _, c := range []struct {
		name       string
		have, want http.Header
	}{
		{"credentials for the proxy", http.Header{"Proxy-Authorization": {"Basic eDp5"}, "Authorization": {"Basic eDp5"}},
			http.Header{"Authorization": {"Basic eDp5"}}},
		{"fields that Connection names, over several lines", http.Header{"Connection": {"close, X-One", " x-two ,,"}, "X-One": {"1"}, "X-Two": {"2"}, "X-Three": {"3"}},
			http.Header{"X-Three": {"3"}}},
		{"the User-Agent, which is judged", http.Header{"Connection": {"user-agent, Cookie"}, "User-Agent": {"Bot/1"}, "Cookie": {"a=b"}},
			http.Header{"User-Agent": {"Bot/1"}}},
		{"the codings that the client takes, without trailers", http.Header{"Te": {"gzip"}, "Transfer-Encoding": {"chunked"}, "Keep-Alive": {"9"}},
			http.Header{}},
		{"trailers", http.Header{"Te": {"gzip, Trailers"}}, http.Header{"Te": {"trailers"}}},
		{"a WebSocket handshake", http.Header{"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"WebSocket"}, "Sec-Websocket-Key": {"k"}},
			http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Key": {"k"}}},
		{"another upgrade", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"h2c"}}, http.Header{}},
	} {
		if RemoveHopByHop(c.have); !reflect.DeepEqual(c.have, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.have, c.want)
		}
	}
}

// Two requests with the same Via each get one entry, and none sees the other's.
func TestVia_AppendsWithoutChangingWhatWasThere(t *testing.T) {
	v := NewVia("heed-1")
	before := make([]string, 1, 4)
	before[0] = "1.1 other"
	one, two, empty := http.Header{"Via": before}, http.Header{"Via": before}, http.Header{}
	v.Add(one, 1, 0)
	v.Add(two, 2, 0)
	v.Add(empty, 1, 1)
	for _, c := range []struct {
		got  http.Header
		want []string
	}{{one, []string{"1.1 other", "1.0 heed-1"}}, {two, []string{"1.1 other", "2 heed-1"}}, {empty, []string{"1.1 heed-1"}}} {
		must.Same(t, c.got["Via"], c.want)
	}
}

// A request has come through the proxy when a member of Via bears its name, not when
// a comment or a longer name contains it.
func TestInVia(t *testing.T) {
	for via, want := range map[string]bool{
		"1.1 heed-1": true, "1.0 fred, 1.1 heed-1 (comment)": true, "HTTP/2  heed-1": true,
		"1.1 heed-12": false, "1.1 other (heed-1)": false, "heed-1": false, "": false,
	} {
		must.Equal(t, InVia(http.Header{"Via": {"1.1 a", via}}, "heed-1"), want, "%q", via)
	}
}

// A field that decides how a message is taken does not follow its body.
func TestCleanTrailer(t *testing.T) {
	h := http.Header{"Checksum": {"1"}, "Content-Length": {"2"}, "User-Agent": {"Bot"}, "Connection": {"x"}, "Proxy-Authorization": {"y"}, "Host": {"z"}}
	if CleanTrailer(h); len(h) != 1 || h.Get("Checksum") != "1" {
		t.Errorf("left: %v", h)
	}
	CleanTrailer(nil)
}

// A trailer that was announced and did not come is not waited for.
func TestDropUnsent(t *testing.T) {
	h := http.Header{"Came": {""}, "Missing": nil}
	if DropUnsent(h); !maps.EqualFunc(h, http.Header{"Came": {""}}, func(a, b []string) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("left: %v", h)
	}
}

// Trailers that the head did not announce are received where the body has chunks.
func TestExpectTrailer(t *testing.T) {
	chunked, announced, plain := &http.Request{TransferEncoding: []string{"chunked"}}, &http.Request{Trailer: http.Header{"X": nil}, TransferEncoding: []string{"chunked"}}, &http.Request{}
	for _, r := range []*http.Request{chunked, announced, plain} {
		ExpectTrailer(r)
	}
	must.True(t, chunked.Trailer != nil && plain.Trailer == nil && len(announced.Trailer) == 1,
		"%v, %v, %v", chunked.Trailer, plain.Trailer, announced.Trailer)
}

// A client gets trailers in place of the length when it accepts them; another client
// of HTTP/1 gets the length.
func TestAnnounceTrailer(t *testing.T) {
	for _, c := range []struct {
		name    string
		request http.Request
		length  int64
		chunks  bool // the length is given up
		trailer bool
	}{
		{"accepted", http.Request{Method: "GET", ProtoMajor: 1, Header: http.Header{"Te": {"trailers"}}}, 5, true, true},
		{"not accepted", http.Request{Method: "GET", ProtoMajor: 1}, 5, false, false},
		{"in chunks anyway", http.Request{Method: "GET", ProtoMajor: 1}, -1, true, true},
		{"HTTP/2", http.Request{Method: "GET", ProtoMajor: 2}, 5, false, true},
		{"HEAD", http.Request{Method: "HEAD", ProtoMajor: 1}, 5, false, true},
	} {
		resp := &http.Response{ContentLength: c.length, Header: http.Header{}, Trailer: http.Header{"Checksum": nil, "Host": nil}}
		AnnounceTrailer(&c.request, resp)
		must.True(t, (resp.ContentLength < 0) == c.chunks && (resp.Trailer != nil) == c.trailer,
			"%s: length %d, trailer %v", c.name, resp.ContentLength, resp.Trailer)
		_, ok := resp.Trailer["Host"]
		must.True(t, !ok, "%s: Host may follow", c.name)
	}
}

// A site cannot speak in this proxy's name; what other proxies say passes.
func TestStripSpoofedStatus(t *testing.T) {
	for _, c := range []struct{ name, have, want string }{
		{"another proxy's", `cdn; error=dns_error`, `cdn; error=dns_error`},
		{"ours, as a string", `"heed-1"; details="a \"b\", c"`, ``},
		{"ours, as a token", `heed-1; details="no", cdn`, `cdn`},
		{"ours in another case", `HEED-1`, ``},
		{"ours in a parameter", `cdn;details="heed-1, \"heed-1\""`, `cdn;details="heed-1, \"heed-1\""`},
		{"ours in a longer string", `"Refused by heed-1"; details="not heed's"`, `"Refused by heed-1";details="not heed's"`},
		{"ours in a longer token", `cdn; error=http_request_denied, heed-1-not;x`, `cdn;error=http_request_denied, heed-1-not;x`},
		{"ours after another's", `cdn; error=dns_error, "heed-1"`, `cdn;error=dns_error`},
		{"another's in a form of its own", `cdn-1; received-status=503 ,  "b"`, `cdn-1; received-status=503 ,  "b"`},
		{"ours in what cannot be parsed", `"heed-1`, ``},
		{"ours with what cannot be parsed", `heed-1; error="`, ``},
	} {
		h := http.Header{"Proxy-Status": {c.have}}
		if StripSpoofedStatus(h, "heed-1"); h.Get("Proxy-Status") != c.want {
			t.Errorf("%s: %q, want %q", c.name, h.Get("Proxy-Status"), c.want)
		}
	}
	lines := http.Header{"Proxy-Status": {`cdn;details="a`, `b", "heed-1"`}}
	if StripSpoofedStatus(lines, "heed-1"); lines.Get("Proxy-Status") != `cdn;details="a, b"` {
		t.Errorf("a string over two lines: %q", lines["Proxy-Status"])
	}
}
