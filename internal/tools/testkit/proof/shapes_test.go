package proof

import (
	"bufio"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// rawSite answers each request on a connection of its own with what the last
// segment of its path says, in bytes.
func rawSite(t *testing.T) (addr string) {
	t.Helper()
	return testkit.RawSite(t, answerRaw)
}

func answerRaw(c net.Conn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	n, _ := io.Copy(io.Discard, r.Body)
	body := strings.Repeat("x", 1000)
	switch path := r.URL.Path; {
	case path == "/robots.txt":
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 32\r\nConnection: close\r\n\r\nUser-agent: *\nDisallow: /private")
	case strings.HasSuffix(path, "/head"), strings.HasSuffix(path, "/whole"):
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n")
		if r.Method != "HEAD" {
			fmt.Fprint(c, body)
		}
	case strings.HasSuffix(path, "/half"):
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\nConnection: close\r\n\r\n"+body)
	case strings.HasSuffix(path, "/half-chunked"):
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3e8\r\n"+body+"\r\n")
	case strings.HasSuffix(path, "/endless"):
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
		for _, err := fmt.Fprint(c, body); err == nil; _, err = fmt.Fprint(c, body) {
		}
	case strings.HasSuffix(path, "/nothing"):
	case strings.HasSuffix(path, "/garbage"):
		fmt.Fprint(c, "this is no HTTP\r\n\r\n")
	case strings.HasSuffix(path, "/not-modified"):
		fmt.Fprint(c, "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nConnection: close\r\n\r\n")
	case strings.HasSuffix(path, "/early"):
		fmt.Fprint(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	case strings.HasSuffix(path, "/teapot"):
		fmt.Fprint(c, "HTTP/1.1 418 Short and stout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	case strings.HasSuffix(path, "/proxy-auth"):
		fmt.Fprint(c, "HTTP/1.1 407 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	case strings.HasSuffix(path, "/upgrade"):
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
		_, _ = io.ReadFull(c, make([]byte, 7))
	default:
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%d", len(fmt.Sprint(n)), n)
	}
}

// told is what the record says of one exchange.
type told struct {
	verdict, reason, err      string
	status, in, out           int64
	fromSite, truncated, ends bool
}

// toldOf returns what the record says of the exchange about target.
func toldOf(t *testing.T, db *sql.DB, target string) (w told) {
	t.Helper()
	var status, in, out sql.NullInt64
	var fromSite, truncated sql.NullBool
	var err sql.NullString
	if e := db.QueryRow("SELECT verdict, reason, status, from_site, bytes_in, bytes_out, truncated, error FROM decisions WHERE target = ?", target).
		Scan(&w.verdict, &w.reason, &status, &fromSite, &in, &out, &truncated, &err); e != nil {
		t.Errorf("%s: %v", target, e)
	}
	w.status, w.in, w.out, w.fromSite, w.truncated, w.err, w.ends = status.Int64, in.Int64, out.Int64, fromSite.Bool, truncated.Bool, err.String, status.Valid
	return w
}

// shape is an exchange that ends in its own way.
type shape struct {
	name    string // the last segment of its target
	request string // "": GET
	headers string
	body    string
	read    int64 // octets that the client takes before it leaves; 0: all

	want told // in and out are least ones where it is truncated
}

var shapes = []shape{
	{name: "whole", want: told{verdict: "allow", status: 200, fromSite: true, out: 1000}},
	{name: "head", request: "HEAD", want: told{verdict: "allow", status: 200, fromSite: true}},
	{name: "upload", request: "POST", headers: "Content-Length: 100000\r\n", body: strings.Repeat("y", 100_000), want: told{verdict: "allow", status: 200, fromSite: true, in: 100_000, out: 6}},
	{name: "chunks", request: "PUT", headers: "Transfer-Encoding: chunked\r\n", body: "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", want: told{verdict: "allow", status: 200, fromSite: true, in: 11, out: 2}},
	{name: "half", want: told{verdict: "allow", status: 200, fromSite: true, out: 1000, truncated: true, err: "site: "}},
	{name: "half-chunked", want: told{verdict: "allow", status: 200, fromSite: true, out: 1000, truncated: true, err: "site: "}},
	{name: "endless", read: 5000, want: told{verdict: "allow", status: 200, fromSite: true, out: 5000, truncated: true, err: "client: "}},
	{name: "nothing", want: told{verdict: "allow", status: 502, err: "site: "}},
	{name: "garbage", want: told{verdict: "allow", status: 502, err: "site: "}},
	{name: "not-modified", want: told{verdict: "allow", status: 304, fromSite: true}},
	{name: "early", want: told{verdict: "allow", status: 200, fromSite: true, out: 2}},
	{name: "teapot", want: told{verdict: "allow", status: 418, fromSite: true}},
	{name: "proxy-auth", want: told{verdict: "allow", status: 502, err: "site: "}},
	{name: "upgrade", headers: "Connection: Upgrade\r\nUpgrade: websocket\r\n", read: 5, want: told{verdict: "allow", status: 101, fromSite: true, in: 7, out: 5}},
}

// exchange plays s, and returns the status that the client saw and the octets of
// the body that it read.
func (s *shape) exchange(c *testkit.Conn, prefix, target string) (status int, octets int64) {
	method := "GET"
	if s.request != "" {
		method = s.request
	}
	c.Send(method + " " + prefix + target + " HTTP/1.1\r\nHost: raw.test\r\nUser-Agent: ShapeBot/1.0\r\n" + s.headers + "\r\n" + s.body)
	resp := c.Head(method)
	for resp.StatusCode == 103 {
		resp = c.Head(method)
	}
	var body io.Reader = resp.Body
	if resp.StatusCode == 101 {
		c.Send("goodbye")
		body = c.R
	}
	if s.read > 0 {
		octets, _ = io.CopyN(io.Discard, body, s.read)
	} else {
		octets, _ = io.Copy(io.Discard, body)
	}
	c.Close()
	return resp.StatusCode, octets
}

// However an exchange ends, the record says what happened: which status the
// client saw, whose it was, how many octets went either way, whether all came, and
// who broke it off.
func TestHeed_TheOutcomeIsWhatHappened(t *testing.T) {
	t.Parallel()
	addr, dir := rawSite(t), t.TempDir()
	path := filepath.Join(dir, "audit.db")
	h := testkit.Start(t, testkit.Options{Config: testkit.AnyPort + fmt.Sprintf(
		"[log]\nlevel = \"warn\"\n[audit]\nfile = %q\n[pacing]\nretry_after = \"observe\"\n[upstream]\nresolve = { \"raw.test:80\" = %q }\n", path, addr)})
	seen := map[string]int64{}
	for _, way := range []string{"plain", "tunnel"} {
		for i := range shapes {
			s := &shapes[i]
			c, prefix, target := testkit.Dial(t, h.Addr), "http://raw.test", "/"+way+"/"+s.name
			if way == "tunnel" {
				c, prefix = c.Connect("raw.test:80"), ""
			}
			status, octets := s.exchange(c, prefix, target)
			if seen[target] = octets; int64(status) != s.want.status {
				t.Errorf("%s: the client saw %d, not %d", target, status, s.want.status)
			}
		}
	}
	h.Signal(os.Interrupt)
	h.Exit()
	verify(t, path)
	db := view(t, path)
	for target, octets := range seen {
		compare(t, toldOf(t, db, target), target, octets)
	}
}

// compare holds what the record says against the shape, and the octets that the
// client read.
func compare(t *testing.T, got told, target string, octets int64) {
	t.Helper()
	for i := range shapes {
		s := &shapes[i]
		if !strings.HasSuffix(target, "/"+s.name) {
			continue
		}
		want := s.want
		if !got.ends || got.verdict != want.verdict || got.status != want.status || got.fromSite != want.fromSite || got.truncated != want.truncated ||
			got.in != want.in || !strings.HasPrefix(got.err, want.err) || want.err == "" && got.err != "" {
			t.Errorf("%s:\n got %+v\nwant %+v", target, got, want)
		}
		must.True(t, got.out >= octets && (got.truncated || got.out == octets),
			"%s: %d octets are recorded, the client read %d", target, got.out, octets)
	}
}
