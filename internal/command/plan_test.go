package command

import (
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/console"
	"heed/internal/testkit"
)

// What is wrong is said in a sentence with what to do next, before any request.
func TestPlan_WrongInput(t *testing.T) {
	dir := t.TempDir()
	list := testkit.Write(t, filepath.Join(dir, "list"), "http://127.0.0.1:1/\n")
	zip := testkit.Write(t, filepath.Join(dir, "list.gz"), "\x1f\x8bno gzip file")
	for _, c := range []struct{ stdin, args, want string }{
		{"", list, "--agent is required: the answer depends on the client's name\nAdd --agent with a User-Agent string or a product token, such as --agent ExampleBot"},
		{"", "--agent x " + dir, dir + " is a directory\nName the lists in it"},
		{"", "--agent x " + dir + "/none", "the list of URLs cannot be read: open " + dir + "/none: no such file or directory"},
		{"", "--agent x", "the lists name no page\nWrite one URL a line, such as https://example.org/page"},
		{"a\nb\nftp://h.test/\n", "--agent x -", "the lists name no page: standard input:1, standard input:2, standard input:3: is not the URL of a site; write it out, such as \"https://example.org/page\"\n" +
			"Write one URL a line, such as https://example.org/page, or JSON lines with a member url"},
		{"", "--agent x " + zip, zip + " cannot be read to its end: the gzip file is damaged: gzip: invalid header"},
		{"", "--agent x --sitemap h.test/map.xml", "--sitemap: \"h.test/map.xml\" is not the URL of a site; write it out, such as \"https://example.org/page\""},
		{"", "--agent x --purpose sale " + list, "--purpose: \"sale\" is not a purpose\nWrite one or more of search, agent, training, archive and tdm"},
		{"", "--agent x --profile lax " + list, "--profile: \"lax\""},
		{"", "--agent x --write " + list + " " + list, "--write: " + list + " exists already\nName another file, or move that one away"},
		{"", "--agent x --agent y --write new " + list, "--write is for one agent: several may fetch different pages\nName one --agent"},
		{"", "--agent x --site http://h.test/ " + list, "--site names the site of a log\nAdd --from-log, or write whole URLs into the list"},
		{"", "--agent x --client nobody " + list, "--client: there is no [[client]] called nobody in "},
	} {
		s := heed(t, c.stdin, append([]string{"plan", "--local"}, strings.Fields(c.args)...)...)
		if s.status != console.ExitUsage || !strings.HasPrefix(s.errors, "heed: "+c.want) {
			t.Errorf("heed plan %s: status %d, stderr %q, want %q", c.args, s.status, s.errors, c.want)
		}
	}
}
