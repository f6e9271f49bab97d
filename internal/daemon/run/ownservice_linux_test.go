package run

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// closed answers every page, and disallows all of them.
const closed = `
import http.server, os, sys
class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"User-agent: *\nDisallow: /\n")
    def log_message(self, *words): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Site)
open("port.part", "w").write(str(server.server_port))
os.rename("port.part", "port")
server.serve_forever()
`

// Requests of a command to its own server on this machine are recorded and not judged,
// plain or in a tunnel, also when the server has lost its parent. The same pages of a
// server that is not the command's are refused, and so are those of its own once that has
// ended: nothing listens at its port, and the connection is closed without an answer.
func TestACommandsOwnServiceIsNoSite(t *testing.T) {
	testkit.Serve(t, "")
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /\n")
	}))
	t.Cleanup(foreign.Close)
	dir := t.TempDir()
	script := testkit.Write(t, filepath.Join(dir, "closed.py"), closed)
	log := filepath.Join(dir, "log")
	shell := `cd ` + dir + `
		serve() { rm -f port; (python3 ` + script + ` & echo $! >pid); until test -e port; do sleep 0.01; done; port=$(cat port); }
		get() { curl -sS -o /dev/null -w '%{http_code} ' "$@"; }
		serve
		get http://localhost:$port/1; get http://127.0.0.1:$port/2; get -p http://localhost:$port/3
		get ` + foreign.URL + `/4; get -p ` + foreign.URL + `/5
		kill $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done
		get http://localhost:$port/6`
	_, stdout, stderr := heedRun(t, "", "--log", log, "--", "sh", "-c", shell)
	if want := "200 200 200 403 403 000 "; stdout != want {
		t.Errorf("the answers are %q, want %q\n%s", stdout, want, stderr)
	}
	must.Contain(t, stderr, ": a local service of the command itself", "the summary does not name the service")
	var got []string
	for line := range strings.Lines(testkit.Read(t, log)) {
		var e struct{ Verdict, Reason, Judged string }
		must.OK(t, json.Unmarshal([]byte(line), &e))
		got = append(got, e.Verdict+" "+e.Reason+" "+e.Judged)
	}
	own := "allow own-service no"
	want := []string{own, own, own, "refuse rule path", "refuse rule path", "refuse origin-unreachable path"}
	must.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "recorded")
}

// A program that looks for a free port of this machine finds one, plain, in a tunnel or by the
// status of its CONNECT, and the record has its requests as failed; what another program serves is answered as ever.
func TestAFreePortOfThisMachineLooksFree(t *testing.T) {
	testkit.Serve(t, "")
	_, stdout, stderr := heedRun(t, "", "--", "python3", "-c", `
import os, socket, urllib.request, urllib.error
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
for url in f"http://localhost:{port}/json", f"http://127.0.0.1:{port}/json", f"https://localhost:{port}/":
    try: print(urllib.request.urlopen(url).status)
    except urllib.error.HTTPError as e: print("taken:", e.code)
    except OSError as e: print("free")
at = urllib.request.urlsplit(os.environ["https_proxy"])
with socket.create_connection((at.hostname, at.port)) as s:
    s.sendall(b"CONNECT localhost:%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % port)
    print(s.recv(100).split()[1].decode())
print(urllib.request.urlopen("`+testkit.Page(t)+`").status)
`)
	must.True(t, stdout == "free\nfree\nfree\n502\n200\n", "it found %q\n%s", stdout, stderr)
	must.True(t, strings.HasPrefix(stderr, "heed: 5 requests came through") && strings.Contains(stderr, "4 failed"),
		"the summary is\n%s", stderr)
}
