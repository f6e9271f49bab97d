package transparent

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"heed/internal/tools/testkit"
)

// framed are shapes of a site that speaks HTTP/2 (and, over plain HTTP, net/http's
// HTTP/1.1).
var framed = []*shape{
	{name: "h2 page", site: served, serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "page")
	}},
	{name: "h2 head", site: served, method: "HEAD", serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "77")
		w.Header().Set("Content-Type", "text/plain")
	}},
	{name: "h2 204", site: served, serve: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }},
	{name: "h2 304", site: served, serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"x"`)
		w.WriteHeader(304)
	}},
	{name: "h2 stream", site: served, serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 20 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	}},
	{name: "h2 upload", site: served, method: "POST", body: strings.Repeat("up ", 100000), serve: func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, n)
	}},
	{name: "h2 trailers", site: served, method: "POST", body: "hello", chunked: true, trailers: []string{"X-Up: 1"}, fields: []string{"TE: trailers"}, serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Down")
		w.Header().Set("Content-Type", "text/plain")
		io.Copy(w, r.Body)
		w.Header().Set("X-Down", "2 "+r.Trailer.Get("X-Up"))
	}, changed: func(m way, a *answer, _ *arrival) {
		if a.major == 2 && m != h2 { // HTTP/1.1 has trailers after chunks only; the client asked for trailers
			delete(a.header, "content-length")
		}
	}},
	{name: "grpc", site: served, method: "POST", body: "\x00\x00\x00\x00\x02hi", fields: []string{"TE: trailers", "Content-Type: application/grpc", "grpc-timeout: 1S"}, ways: secure, serve: func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		io.WriteString(w, "\x00\x00\x00\x00\x02ho")
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "fine")
	}},
	{name: "grpc without a message", site: served, method: "POST", body: "\x00\x00\x00\x00\x00", fields: []string{"TE: trailers", "Content-Type: application/grpc"}, ways: secure, serve: func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", "12")
	}},
	{name: "h2 early hints", site: served, serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(103)
		w.Header().Set("Link", "</b.css>")
		w.WriteHeader(103)
		w.Header().Del("Link")
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "page")
	}},
	{name: "h2 cookies", site: served, fields: []string{"Cookie: a=1; b=2; c=3"}, serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(200)
	}},
	{name: "h2 reset", site: served, serve: func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}},
}

// nginxSite is what nginx serves.
var nginxSite = testkit.Site{
	Name: static, Robots: robots,
	Files: map[string]string{
		"/page.html": "<p>" + strings.Repeat("a page of nginx ", 2000), "/empty.txt": "", "/data.bin": everyOctet,
	},
	Redirects: map[string]string{"/old": "/page.html?a=b"},
	Config: `
		gzip on; gzip_proxied any; gzip_min_length 100; gzip_types text/html text/plain;
		location = /gone { return 410; }
		location = /teapot { add_header X-Always yes always; return 418 "short"; }
		location = /busy { add_header Retry-After 7 always; return 503; }
		location = /cookies { add_header Set-Cookie "a=1"; add_header Set-Cookie "b=2; Path=/"; return 200 "ok"; }
		location = /cached { expires max; add_header Vary Accept; return 200 "ok"; }
		location = /closing { keepalive_timeout 0; return 200 "ok"; }
		location = /locked { auth_basic "the site"; auth_basic_user_file ` + "/dev/null" + `; }
		location = /limited { client_max_body_size 10; }
`,
}

// files are what nginx does by itself.
var files = []*shape{
	{name: "nginx page", site: static, target: "/page.html"},
	{name: "nginx head", site: static, method: "HEAD", target: "/page.html"},
	{name: "nginx gzip", site: static, target: "/page.html", fields: []string{"Accept-Encoding: gzip"}},
	{name: "nginx head of gzip", site: static, method: "HEAD", target: "/page.html", fields: []string{"Accept-Encoding: gzip"}},
	{name: "nginx empty file", site: static, target: "/empty.txt"},
	{name: "nginx every octet", site: static, target: "/data.bin"},
	{name: "nginx not found", site: static, target: "/none?x=y"},
	{name: "nginx redirect", site: static, target: "/old"},
	{name: "nginx gone", site: static, target: "/gone"},
	{name: "nginx teapot", site: static, target: "/teapot"},
	{name: "nginx busy", site: static, target: "/busy"},
	{name: "nginx cookies", site: static, target: "/cookies"},
	{name: "nginx caching", site: static, target: "/cached"},
	{name: "nginx closing", site: static, target: "/closing"},
	{name: "nginx locked", site: static, target: "/locked"},
	{name: "nginx range", site: static, target: "/data.bin", fields: []string{"Range: bytes=10-19"}},
	{name: "nginx ranges", site: static, target: "/data.bin", fields: []string{"Range: bytes=0-9,20-29,-5"}},
	{name: "nginx range past the end", site: static, target: "/data.bin", fields: []string{"Range: bytes=999999-"}},
	{name: "nginx range of gzip", site: static, target: "/page.html", fields: []string{"Range: bytes=0-99", "Accept-Encoding: gzip"}},
	{name: "nginx if-range that fails", site: static, target: "/data.bin", fields: []string{"Range: bytes=0-9", "If-Range: \"other\""}},
	{name: "nginx if-none-match", site: static, target: "/data.bin", fields: []string{"If-None-Match: *"}},
	{name: "nginx not modified since", site: static, target: "/data.bin", fields: []string{"If-Modified-Since: Tue, 15 Nov 2044 08:12:31 GMT"}},
	{name: "nginx if-match that fails", site: static, target: "/data.bin", fields: []string{"If-Match: \"other\""}},
	{name: "nginx method refused", site: static, method: "POST", target: "/page.html", body: "x=1"},
	{name: "nginx delete refused", site: static, method: "DELETE", target: "/page.html"},
	{name: "nginx options", site: static, method: "OPTIONS", target: "/page.html"},
	{name: "nginx too large", site: static, method: "POST", target: "/limited", body: strings.Repeat("x", 100), ways: byBytes},
	{name: "nginx expect", site: static, method: "POST", target: "/cookies", body: "x=1", waits: true, fields: []string{"Expect: 100-continue"}, ways: []way{plain, inTunnel}},
	{name: "nginx http 1.0", site: static, target: "/page.html", version: "HTTP/1.0", ways: []way{plain, inTunnel}},
	{name: "nginx large request", site: static, target: "/page.html", fields: []string{"X-Large: " + strings.Repeat("l", 7000)}},
	{name: "nginx request that is too large", site: static, ways: []way{plain, inTunnel}, target: "/page.html", fields: []string{"X-Large: " + strings.Repeat("l", 20000)}},
}
