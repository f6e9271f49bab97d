//go:build unix

package command

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// Under systemd stderr is a socket of the journal, which JOURNAL_STREAM names: lines of the
// log have a priority there, in text and in JSON. A variable that names another stream, as
// one that a parent process left behind, changes nothing.
func TestHeed_LogLinesHaveAPriorityInTheJournal(t *testing.T) {
	for _, c := range []struct {
		name, format, line string
		named              bool // JOURNAL_STREAM names stderr
	}{
		{"text", "text", `^<6>time=.* msg=decision .*reason=origin-unreachable`, true},
		{"json", "json", `^<6>{"time":.*"msg":"decision".*"reason":"origin-unreachable"`, true},
		{"another stream", "text", `^time=.* msg=decision `, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ends := must.Get(syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0))(t)
			read, write := os.NewFile(uintptr(ends[0]), "journal"), os.NewFile(uintptr(ends[1]), "stderr")
			defer read.Close()
			var id syscall.Stat_t
			must.OK(t, syscall.Fstat(ends[1], &id))
			if !c.named {
				id.Ino++
			}
			file := testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), "listen = \"127.0.0.1:0\"\n[log]\nformat = \""+c.format+"\"\n")
			state := testkit.StateDir(t)
			heed := exec.Command(testkit.Binary(t), "serve", "--config", file)
			heed.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + state, "HEED_STATE=" + state, testkit.RaceOptions, fmt.Sprintf("JOURNAL_STREAM=%d:%d", id.Dev, id.Ino)}
			heed.Stderr = write
			testkit.NotOrphaned(heed)
			must.OK(t, heed.Start())
			write.Close()
			defer heed.Wait()
			defer heed.Process.Signal(syscall.SIGTERM)

			lines, want, asked := bufio.NewScanner(read), regexp.MustCompile(c.line), false
			for lines.Scan() {
				text := lines.Text()
				if addr, ok := strings.CutPrefix(text, "heed listens on http://"); ok {
					asked = true
					go askThrough(addr)
				}
				if want.MatchString(text) {
					return
				}
			}
			t.Errorf("no line matches %s (asked: %v)", c.line, asked)
		})
	}
}

// askThrough requests a page of a site that does not answer through the proxy at addr.
func askThrough(addr string) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr})}}
	if resp, err := client.Get("http://127.0.0.1:1/page"); err == nil {
		resp.Body.Close()
	}
}
