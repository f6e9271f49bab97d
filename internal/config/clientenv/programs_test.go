package clientenv

import (
	"os"
	"path/filepath"
	"testing"

	"heed/internal/tools/testkit/must"
)

// Which programs ignore the proxy variables depends on their versions, on what they run and,
// where an option names a proxy, on their command line.
func TestProgramsThatIgnoreTheVariables(t *testing.T) {
	for _, c := range []struct {
		command []string
		version string
		want    bool
	}{
		{[]string{"node", "crawl.js"}, "18.20.4", true},
		{[]string{"nodejs", "crawl.js"}, "20.20.2", true},
		{[]string{"node", "crawl.js"}, "22.20.0", true},
		{[]string{"node", "crawl.js"}, "22.21.0", false},
		{[]string{"node", "crawl.js"}, "23.1.0", true},
		{[]string{"node", "crawl.js"}, "24.0.1", false},
		{[]string{"node", "crawl.js"}, "", false}, // not known
		{[]string{"node", "/usr/bin/npm", "install"}, "18.20.4", false},
		{[]string{"node", "--no-warnings", "/usr/share/nodejs/npm/bin/npm-cli.js", "install"}, "18.20.4", false},
		{[]string{"npm install"}, "18.20.4", false}, // as it names itself
		{[]string{"node", "/opt/pnpm.cjs"}, "20.20.2", false},
		{[]string{"node", "crawl.js", "npm"}, "20.20.2", true},
		{[]string{"/usr/bin/tclsh8.6", "x.tcl"}, "", true},
		{[]string{"ab", "-n", "1", "http://site.test/"}, "", true},
		{[]string{"ab", "-X", "127.0.0.1:3128", "http://site.test/"}, "", false},
		{[]string{"httping", "-x127.0.0.1:3128", "http://site.test/"}, "", false},
		{[]string{"httrack", "-P", "127.0.0.1:3128", "https://site.test/"}, "", true}, // https bypasses it
		{[]string{"curl", "https://site.test/"}, "8.5.0", false},
		{[]string{"./crawl"}, "", false},
	} {
		p, _ := ProgramOf(map[bool]string{true: "node", false: c.command[0]}[c.command[0] == "npm install"])
		got := !p.Spares(c.command, []string{"127.0.0.1:3128"}) && p.Ignores(c.version)
		must.True(t, got == c.want, "%q of version %q: %v", c.command, c.version, got)
	}
	node := filepath.Join(t.TempDir(), "node")
	must.OK(t, os.WriteFile(node, []byte("#!/bin/sh\necho v20.20.2\n"), 0o755))
	must.Equal(t, VersionOf(t.Context(), node, nil), "20.20.2", "the version")
}
