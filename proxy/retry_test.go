package proxy

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// systemPython is the Python that Debian's packages of its libraries are for.
const systemPython = "/usr/bin/python3"

// convalescent is a rig whose ill.test has no robots.txt to give at first, and
// says when it will.
func convalescent(t *testing.T) (r *rig, asked *atomic.Int32) {
	asked = &atomic.Int32{}
	s := newSite(t, http.NotFound)
	s.serve(t, "ill.test", &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/robots.txt":
			s.note(r)
			fmt.Fprintln(w, "the page")
		case asked.Add(1) == 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, robots)
		}
	})})
	return newRigBefore(t, s), asked
}

// program runs a client behind the rig and returns what it said.
func (r *rig) program(name string, args ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 3*testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "http_proxy=http://"+r.addr, "HTTP_PROXY=http://"+r.addr, "no_proxy=", "NO_PROXY=")
	cmd.Dir = r.t.TempDir()
	out, err := cmd.CombinedOutput()
	must.Need(r.t, err == nil,
		"%s: %v (if it is missing, run `sh internal/tools/testkit/all.sh` once: it installs what the tests need)\n%s", name, err, out)
	return string(out)
}

// A refusal that time cures is a 503 with a true Retry-After, so that clients
// recover which know how to retry, without a line of theirs about heed.
func TestHeed_Urllib3RetriesAndRecovers(t *testing.T) {
	t.Parallel()
	r, asked := convalescent(t)
	out := r.program(systemPython, "-c", `
import os, urllib3
http = urllib3.ProxyManager(os.environ["http_proxy"], retries=urllib3.Retry(3, status_forcelist=[503]))
answer = http.request("GET", "http://ill.test/page", headers={"User-Agent": "tester/1"})
print(answer.status, answer.data.decode())
answer = http.request("GET", "http://ill.test/private", headers={"User-Agent": "tester/1"})
print(answer.status, answer.reason)
`)
	if !strings.Contains(out, "200 the page") || !strings.Contains(out, "403 Refused by heed: robots.txt line 3 Disallow: /private") {
		t.Errorf("it says:\n%s", out)
	}
	must.Equal(t, asked.Load(), 2, "times robots.txt was asked for: Retry-After was not true")
	must.Equal(t, fmt.Sprint(r.site.reached()), "[GET /page]", "reached the site")
}
