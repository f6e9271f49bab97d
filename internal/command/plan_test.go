package command

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// What is wrong is said in a sentence with what to do next, before any request.
func TestPlan_WrongInput(t *testing.T) {
	dir := t.TempDir()
	list := testkit.Write(t, filepath.Join(dir, "list"), "http://127.0.0.1:1/\n")
	write := func(name, text string) string { return testkit.Write(t, filepath.Join(dir, name), text) }
	settings := write("proxy.toml", "[[client]]\nname = \"news\"\nfrom = [\"127.0.0.1\"]\n[[client]]\nname = \"shop\"\nfrom = [\"127.0.0.2\"]\n")
	var cut bytes.Buffer
	zipped := gzip.NewWriter(&cut)
	_, _ = zipped.Write([]byte("http://127.0.0.1:1/\n")) // into a buffer
	_ = zipped.Close()
	zip := testkit.Write(t, filepath.Join(dir, "list.gz"), "\x1f\x8bno gzip file")
	for _, c := range []struct{ stdin, args, want string }{
		{"", list, "--agent is required: the answer depends on the client's name\nAdd --agent with a User-Agent string or a product token, such as --agent ExampleBot"},
		{"", "--agent x " + dir, dir + " is a directory\nName the lists in it"},
		{"", "--agent x " + dir + "/none", "the list of URLs cannot be read: open " + dir + "/none: no such file or directory\nName a file with one URL a line; a sitemap is named with --sitemap URL"},
		{"", "--agent x http://h.test/", "the list of URLs cannot be read: open http://h.test/: no such file or directory\nA list is a file with one URL a line; to judge URLs of the command line: heed check --agent NAME URL"},
		{"", "--agent x", "the lists name no page\nStandard input was empty. Name a file with one URL a line: heed plan --agent ExampleBot urls.txt"},
		{"", "--agent x " + write("empty", ""), "the lists name no page\nWrite one URL a line, such as https://example.org/page"},
		{"", "--agent x " + write("array.json", "[{\"url\":\"http://h.test/\"}]\n"), "the lists name no page: " + dir + "/array.json:1: the line begins a JSON array; write one object or one URL a line"},
		{"", "--agent x " + write("quoted", "\"http://h.test/\"\n'http://h.test/'\n"), "the lists name no page: " + dir + "/quoted:1, " + dir + "/quoted:2: the URL is in quotes; write it without them"},
		{"", "--agent x " + write("map.xml", "<urlset>\n"), "the lists name no page: " + dir + "/map.xml:1: the line is XML or HTML; name a sitemap by its URL, with --sitemap"},
		{"", "--agent x " + write("head.csv", "title,url\n"), "the lists name no page: " + dir + "/head.csv:1: the line looks like the head of a CSV file; write the column of URLs alone"},
		{"", "--agent x " + write("tabs", "http://h.test/\ttitle\n"), "the lists name no page: " + dir + "/tabs:1: it contains a control character, such as a tab between columns"},
		{"", "--agent x " + write("latin1", "{\"url\":\"http://h.test/\xe4\"}\n{\"url\":\"http://h.test/\\ud800\"}\n"), "the lists name no page: " + dir + "/latin1:1, " + dir + "/latin1:2: the JSON object is not UTF-8, or has half of a surrogate pair"},
		{"", "--agent x " + write("cut.gz", cut.String()[:cut.Len()/2]), dir + "/cut.gz cannot be read to its end: the gzip file ends too early; copy it again"},
		{"127.0.0.1:80/page\n", "--agent x -", "the lists name no page: standard input:1: \"127.0.0.1:80/page\" is not the URL of a site; write it out"},
		{"", "--agent x --from-log " + list, "the logs name no page: " + dir + "/list:1: no time in brackets\nName an access log or a record of heed (heed help accesslogs); a list of URLs needs no --from-log"},
		{"", "--agent x --from-log " + dir + "/none", "--from-log: the log cannot be read: stat " + dir + "/none: no such file or directory\nName an access log or a record"},
		{"", "--agent x --write " + dir + "/none/new " + list, "--write: the file cannot be written: open " + dir + "/none/new: no such file or directory\nName a file in a directory that exists"},
		{"", "--agent x --client shp --config " + settings + " " + list, "--client: there is no [[client]] called shp in " + settings + "\nThose it has are news, shop"},
		{"a\nb\nftp://h.test/\n", "--agent x -", "the lists name no page: standard input:1, standard input:2, standard input:3: is not the URL of a site; write it out, such as \"https://example.org/page\"; the first is \"a\"\n" +
			"Write one URL a line, such as https://example.org/page, or JSON lines with a member url"},
		{"", "--agent x " + zip, zip + " cannot be read to its end: the gzip file is damaged: gzip: invalid header"},
		{"", "--agent x --sitemap h.test/map.xml", "--sitemap: \"h.test/map.xml\" is not the URL of a site; write it out, such as \"https://example.org/page\""},
		{"", "--agent x --purpose sale " + list, "--purpose: \"sale\" is not a purpose\nWrite one or more of search, agent, training, archive and tdm"},
		{"", "--agent x --profile lax " + list, "--profile: \"lax\""},
		{"", "--agent x --write " + list + " " + list, "--write: " + list + " exists already\nName another file, or move that one away"},
		{"", "--agent x --agent y --write new " + list, "--write is for one agent: several may fetch different pages\nName one --agent"},
		{"", "--agent x --site http://h.test/ " + list, "--site names the site of a log\nAdd --from-log, or write whole URLs into the list"},
		{"", "--agent x --client nobody " + list, "--client: there is no [[client]] called nobody in the built-in settings\nIt has no [[client]]: add one, or name another file with --config"},
	} {
		s := heed(t, c.stdin, append([]string{"plan", "--local"}, strings.Fields(c.args)...)...)
		must.True(t, s.status == console.ExitUsage && strings.HasPrefix(s.errors, "heed: "+c.want),
			"heed plan %s: status %d, stderr %q, want %q", c.args, s.status, s.errors, c.want)
	}
}

// The files of a plan that names no page are not left behind: the corrected command writes
// them.
func TestPlan_LeavesNoFileOfAPlanWithoutPages(t *testing.T) {
	dir := t.TempDir()
	list, allowed, refused := testkit.Write(t, filepath.Join(dir, "list"), "h.test/\n"), filepath.Join(dir, "allowed"), filepath.Join(dir, "refused")
	for range 2 {
		s := heed(t, "", "plan", "--local", "--agent", "x", "--write", allowed, "--write-refused", refused, list)
		must.True(t, s.status == console.ExitUsage && strings.HasPrefix(s.errors, "heed: the lists name no page: "),
			"status %d, stderr %q", s.status, s.errors)
	}
}

// What a crawl through heed requested is a plan of the same pages: from its record, its exports
// and its log, over http as over https, with what heed refused.
func TestPlan_OfWhatHeedRecordedHasTheSamePages(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, someRules) }))
	defer site.Close()
	h := testkit.Serve(t, "[log]\nformat = \"json\"\n")
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr})}}
	for path, status := range map[string]int{"/open": 200, "/private/x": 403} {
		resp := must.Get(client.Get(site.URL + path))(t)
		resp.Body.Close()
		must.Equal(t, resp.StatusCode, status, "%s: %s", path, resp.Status)
		h.AwaitURL(site.URL + path)
	}
	h.Signal(syscall.SIGTERM)
	h.Exit()
	record := filepath.Join(h.State, "audit.db")
	files := map[string]string{"record": record, "log": testkit.Write(t, filepath.Join(t.TempDir(), "log"), h.Stderr())}
	for _, form := range []string{"--csv", "--jsonl"} {
		s := heed(t, "", "audit", "export", form, record)
		files["export "+form] = testkit.Write(t, filepath.Join(t.TempDir(), "export"), s.out)
	}
	for name, file := range files {
		allowed, refused := filepath.Join(t.TempDir(), "allowed"), filepath.Join(t.TempDir(), "refused")
		s := heed(t, "", "plan", "--agent", "Go-http-client", "--local", "--from-log", file, "--write", allowed, "--write-refused", refused)
		must.True(t, strings.Contains(s.out, "1 allowed") && strings.Contains(s.out, "1 refused by rule"),
			"%s: %+v", name, s)
		if got := testkit.Read(t, allowed) + testkit.Read(t, refused); !strings.Contains(got, site.URL+"/open\n") || !strings.Contains(got, site.URL+"/private/x") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
