package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// watched is a running heed with an admin listener, and a site.
type watched struct {
	*testkit.Heed
	t           *testing.T
	site, admin string
	proxied     *http.Client
}

// watch starts a heed whose settings end with more.
func watch(t *testing.T, more string) *watched {
	t.Helper()
	site := testkit.NewOrigin(t, testkit.Site{Name: "site.test", Robots: "User-agent: *\nDisallow: /private\n", Files: map[string]string{"/page.html": "page"}})
	w := &watched{t: t, site: "http://site.test", admin: testkit.FreeAddr(t)}
	config := testkit.AnyPort + fmt.Sprintf("[admin]\nlisten = %q\n", w.admin) + more + "[upstream.resolve]\n"
	for name, address := range site.Resolve() {
		config += fmt.Sprintf("%q = %q\n", name, address)
	}
	w.Heed = testkit.Start(t, testkit.Options{Config: config})
	w.proxied = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.Addr})}}
	return w
}

// file returns the path of a file of the state directory.
func (w *watched) file(name string) string { return filepath.Join(w.State, name) }

// ask requests a page through heed, and returns the status.
func (w *watched) ask(path string) int {
	w.t.Helper()
	resp := must.Get(w.proxied.Get(w.site + path))(w.t)
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// page returns the status and the text of a page of the admin listener.
func (w *watched) page(method, path string) (int, string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel() // ends a stream
	r := must.Get(http.NewRequestWithContext(ctx, method, "http://"+w.admin+path, nil))(w.t)
	resp := must.Get(http.DefaultClient.Do(r))(w.t)
	defer resp.Body.Close()
	if strings.HasPrefix(path, "/live/") {
		return resp.StatusCode, ""
	}
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// run runs a program in the state directory and returns its output.
func (w *watched) run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.State, "HEED_STATE=" + w.State, testkit.RaceOptions}
	cmd.Dir = w.t.TempDir()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// heed runs a command of heed.
func (w *watched) heed(args ...string) (string, error) {
	return w.run(testkit.Binary(w.t), args...)
}

// held fails unless SQLite has its shared locks on both databases and on their indexes, in
// heed's process (https://sqlite.org/fileformat2.html, https://sqlite.org/walformat.html). The
// system lists locks page by page, so that one is missing where another ends meanwhile: a lock
// is lost when it is in none of five lists.
func (w *watched) held(after string) {
	w.t.Helper()
	var text []byte
	for name, octets := range map[string]string{"audit.db": "1073741826 1073742335", "audit.db-shm": "128 128", "policies.db": "1073741826 1073742335", "policies.db-shm": "128 128"} {
		info, err := os.Stat(w.file(name))
		must.OK(w.t, err, "after %s", after)
		line := regexp.MustCompile(fmt.Sprintf(`POSIX +ADVISORY +READ %d [0-9a-f]+:[0-9a-f]+:%d %s\n`, w.Pid(), info.Sys().(*syscall.Stat_t).Ino, octets))
		for try := 0; !line.Match(text); try++ {
			must.Need(w.t, try != 5, "after %s, heed has no lock on %s:\n%s", after, name, text)
			text, err = os.ReadFile("/proc/locks")
			must.Need(w.t, err == nil, "%v", err)
		}
	}
}

// dashboardPages are the patterns of its pages, with id in place of that of a decision.
func dashboardPages(t *testing.T, id string) (all [][2]string) {
	t.Helper()
	source := must.Get(os.ReadFile("../daemon/admin/dashboard/dashboard.go"))(t)
	for _, m := range regexp.MustCompile(`(?:page|HandleFunc)\("(?:(GET|POST) )?(/[^"]*)"`).FindAllStringSubmatch(string(source), -1) {
		path := strings.NewReplacer("{$}", "", "{id}", id, "{name}", "style.css", "{topic}", "record", "{action}", "forget").Replace(m[2])
		all = append(all, [2]string{m[1], path})
	}
	must.Need(t, len(all) >= 15, "the pages were not found in the source: %q", all)
	return all
}

// readers are command lines with FILE, one for each parameter that takes a file, of all
// commands.
func readers(t *testing.T) (all [][]string) {
	t.Helper()
	parser := must.Get(kong.New(grammarFor(nil), kong.Name("heed"), kong.Vars{"version": ""}))(t)
	// What a command needs beside the file.
	needs := map[string][]string{
		"run": {"--", "true"}, "why": {"http://site.test/page.html"}, "check": {"--agent", "x", "http://site.test/"},
		"audit diff": {"FILE"}, "audit export": {"--jsonl"}, "audit replay": {"--profile", "strict"}, "lint": {"robots.txt"},
		"study": {"FILE"}, "plan": {"--agent", "x"}, "identity publish": {"FILE"}, "identity verify": {"http://site.test/"}, "audit backup": {"copy.db"},
	}
	isFile := regexp.MustCompile(`FILE|^(file|log|logs|a|b|to|key)$`)
	for _, leaf := range parser.Model.Leaves(false) {
		var words []string
		for n := leaf; n.Parent != nil; n = n.Parent {
			words = append([]string{n.Name}, words...)
		}
		path := strings.Join(words, " ")
		if path == "cache warm" {
			continue // it takes the words of a record for names of sites, which it asks for
		}
		for _, p := range leaf.Positional {
			switch {
			case p.Name == "to":
				all = append(all, append(slices.Clone(words), "FILE"))
			case isFile.MatchString(p.Name):
				all = append(all, slices.Concat(words, []string{"FILE"}, needs[path]))
			}
		}
		for _, f := range leaf.Flags {
			if isFile.MatchString(f.PlaceHolder) && f.Name != "config" && !strings.Contains(f.Help, "Append") && !strings.Contains(f.Help, "Write") {
				all = append(all, slices.Concat(words, []string{"--" + f.Name, "FILE"}, needs[path]))
			}
		}
	}
	must.Need(t, len(all) >= 20, "few commands take a file: %q", all)
	return all
}

// Nothing that heed does, or that the manual recommends for the record, releases SQLite's
// locks on its files: another program that finds none takes itself for the last one, and
// removes their write-ahead logs.
func TestHeed_TheLocksOnItsDatabasesAreKept(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	record := w.file("audit.db")
	got := w.ask("/page.html")
	must.Need(t, got == 200, "%v", got)
	testkit.Until(t, "the policy is stored", func() bool {
		out, err := w.run("sqlite3", "-readonly", w.file("policies.db"), "SELECT count(*) FROM policy")
		return err == nil && out == "1\n"
	})
	w.held("the start")

	id := ""
	testkit.Until(t, "the record has the decision", func() bool {
		out, err := w.run("sqlite3", "-readonly", record, "SELECT id FROM decisions")
		id = strings.TrimSpace(out)
		return err == nil && id != ""
	})
	for _, p := range dashboardPages(t, id) {
		w.page(p[0], p[1])
		w.held("page " + p[1])
	}

	links := t.TempDir()
	symbolic, hard := filepath.Join(links, "symbolic.db"), filepath.Join(filepath.Dir(w.State), "hard.db")
	must.OK(t, os.Symlink(record, symbolic))
	must.OK(t, os.Link(record, hard))
	for _, line := range readers(t) {
		for _, path := range []string{record, symbolic, hard} {
			args := strings.Split(strings.ReplaceAll(strings.Join(line, "\n"), "FILE", path), "\n")
			out, err := w.heed(args...)                                            // some cannot do anything with a record
			if slices.Contains(args, "--policies") && err != nil && path != hard { // SQLite finds no log beside that name
				t.Errorf("%q: %s", args, out)
			}
			w.held(strings.Join(args, " "))
		}
	}

	settings := must.Get(os.ReadFile(w.File))(t)
	for _, reload := range []string{"", "[access]\nusers = \"" + record + "\"\n", "[https]\nca_cert = \"" + hard + "\"\nca_key = \"" + symbolic + "\"\n", "[upstream]\nca_file = \"" + record + "-shm\"\n", "[cache]\nfile = \"" + hard + "\"\n"} {
		text := strings.Replace(string(settings), "[admin]", reload+"[admin]", 1)
		if strings.HasPrefix(reload, "[upstream]") {
			text = strings.Replace(string(settings), "[upstream.resolve]", reload+"[upstream.resolve]", 1)
		}
		testkit.Write(t, w.File, text)
		out, err := w.heed("reload")
		w.held(fmt.Sprintf("a reload with %q (%s, %v)", reload, out, err))
	}

	// The readers that the manual recommends open the file as they always do.
	for _, reader := range [][]string{
		{"sqlite3", record, "SELECT count(*) FROM decisions"},
		{"sqlite3", w.file("policies.db"), "SELECT count(*) FROM policy"},
		{"/usr/bin/python3", "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(c.execute('SELECT count(*) FROM decisions').fetchone()); c.close()", record},
	} {
		out, err := w.run(reader[0], reader[1:]...)
		must.Need(t, err == nil && strings.ContainsAny(out, "123456789"), "%q: %s, %v", reader, out, err)
		w.held(strings.Join(reader, " "))
		must.Is(t, w.ask("/page.html"), 200, "after %q", reader)
	}
	got, text := w.page("GET", "/readyz")
	must.True(t, got == 200, "/readyz: %d, %s", got, text)
	out, err := w.heed("audit", "verify")
	must.True(t, err == nil && strings.HasPrefix(out, "whole "), "%s, %v", out, err)
	n := w.descriptors()
	must.True(t, n <= 40, "heed has %d files open", n)
}

// descriptors returns the number of files that heed has open.
func (w *watched) descriptors() int {
	all := must.Get(os.ReadDir("/proc/" + strconv.Itoa(w.Pid()) + "/fd"))(w.t)
	return len(all)
}
