package bypass

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// bodyServers are the servers that may take a body for the next request: those of
// the other tests, Python's with the version that keeps connections, and with
// HEED_TEST_FULL=1 some that the test command does not install.
func bodyServers() []server {
	all := []server{{"python11", startPython11}}
	for _, s := range servers {
		if s.name != "python" { // HTTP/1.0: each connection has one request
			all = append(all, s)
		}
	}
	if testkit.Full {
		all = append(all, server{"php", startPHP}, server{"webrick", startWEBrick},
			server{"lighttpd", startLighttpd}, server{"busybox", startBusybox})
	}
	return all
}

// bodyMethods are the methods that bodies are sent with; by default those that need none.
func bodyMethods() []string {
	all := []string{"GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "PATCH", "PROPFIND"}
	if testkit.Full {
		return all
	}
	return all[:2]
}

// framedBodies returns the fields and octets of every framing of a body that is a
// request for a disallowed page.
func framedBodies(site string) (all [][2]string) {
	request := "GET " + wanted + " HTTP/1.1\r\nHost: " + site + "\r\n\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", len(request))
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(request), request)
	for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
		all = append(all,
			[2]string{expect + length, request},
			[2]string{expect + "Transfer-Encoding: chunked\r\n", chunk + "\r\n"},
			[2]string{expect + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", chunk + "X-Sum: 1\r\n\r\n"},
			[2]string{expect + "Content-Length: 0\r\n", ""},
		)
	}
	return all
}

// No server executes a body that went through heed as a request, however careless
// it is with what it does not read.
func TestNoBodyIsExecutedAsARequest(t *testing.T) {
	t.Parallel()
	for _, s := range bodyServers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // most of the time goes by in waiting for answers that do not come
			r := newRig(t, s)
			for _, w := range []way{direct, plain, mitmH1, inTunnel, absolute} {
				sent, executed := r.sendBodies(w)
				t.Logf("%s, %s: %d of %d bodies were executed", r.name, w, executed, sent)
				must.True(t, w == direct || executed == 0,
					"%s, %s: %d of %d bodies were executed as requests", r.name, w, executed, sent)
			}
			r.recordsAgree()
			if n := r.witness.leaked.Load(); n > 0 {
				t.Errorf("%s: %d lines of a canary left the site", r.name, n)
			}
		})
	}
}

// sendBodies sends a body in every framing with every method, several at a time,
// and returns how many of them brought a canary.
func (r *rig) sendBodies(w way) (sent int, executed int64) {
	var found atomic.Int64
	var senders sync.WaitGroup
	slots := make(chan struct{}, 8)
	route := r.route(w)
	for _, method := range bodyMethods() {
		for _, body := range framedBodies(r.site) {
			sent++
			slots <- struct{}{}
			senders.Go(func() {
				defer func() { <-slots }()
				got := route.exchange(fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n%s\r\n%s",
					method, route.prefix(), paged, r.site, r.agent(), body[0], body[1]), silence)
				must.True(r.t, !got.unasked, "%s, %s: no connection: %v", r.name, w, got.err)
				if got.leaks() {
					found.Add(1)
				}
			})
		}
	}
	senders.Wait()
	return sent, found.Load()
}

func startPython11(t testing.TB, root string) string {
	return start(t, exec.Command(testkit.Program(t, "python3"), "-u", "-m", "http.server", "0",
		"--protocol", "HTTP/1.1", "--bind", "127.0.0.1", "--directory", root), regexp.MustCompile(`port (\d+)`))
}

// fullProgram returns the path of a program that only the full run needs.
func fullProgram(t testing.TB, name, debian string) string {
	for _, candidate := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	t.Fatalf("HEED_TEST_FULL=1 needs %s: apt-get install %s", name, debian)
	return ""
}

func startPHP(t testing.TB, root string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		return exec.Command(fullProgram(t, "php", "php-cli"), "-S", addr, "-t", root)
	})
}

func startWEBrick(t testing.TB, root string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(addr)
		return exec.Command(fullProgram(t, "ruby", "ruby-webrick"), "-run", "-e", "httpd", root, "-b", host, "-p", port)
	})
}

func startLighttpd(t testing.TB, root string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(addr)
		file := filepath.Join(t.TempDir(), "lighttpd.conf")
		conf := fmt.Sprintf("server.bind = %q\nserver.port = %s\nserver.document-root = %q\n", host, port, root)
		must.OK(t, os.WriteFile(file, []byte(conf), 0o600))
		return exec.Command(fullProgram(t, "lighttpd", "lighttpd"), "-D", "-f", file)
	})
}

func startBusybox(t testing.TB, root string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		return exec.Command(fullProgram(t, "busybox", "busybox"), "httpd", "-f", "-p", addr, "-h", root)
	})
}
