package command

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// cure is what helps a kind of client that went round the proxy.
type cure struct {
	commands []string // beginnings of the names such clients are started by
	kind     string
	what     string
}

// cures are told when no request of a run came through.
var cures = []cure{
	{[]string{"node", "npm", "npx", "yarn", "pnpm"}, "Node.js",
		"before 22.21 and 24 it ignores proxy variables: use a newer one, or give its client an agent such as undici's EnvHttpProxyAgent"},
	{[]string{"java", "jshell", "mvn", "gradle", "sbt", "kotlin", "scala"}, "Java",
		"JAVA_TOOL_OPTIONS must reach the JVM (it prints \"Picked up\" when it does); HttpClient needs .proxy(ProxySelector.getDefault()) where another selector was set"},
	{[]string{"python", "pip", "uv", "scrapy"}, "Python",
		"requests and httpx need trust_env left on, aiohttp needs trust_env=True, Scrapy its HttpProxyMiddleware"},
	{[]string{"go"}, "Go",
		"a Transport of its own needs Proxy: http.ProxyFromEnvironment; localhost and loopback addresses always go round"},
	{[]string{"curl", "wget"}, "curl and wget",
		"--noproxy, --no-proxy, -q and their files (.curlrc, .wgetrc) can switch the proxy off"},
	{[]string{"chrom", "google-chrome", "firefox", "msedge"}, "Browsers",
		"use `heed serve` and set 127.0.0.1:3128 as the proxy: --proxy-server=127.0.0.1:3128, or the browser's settings"},
	{[]string{"sudo", "su", "env", "doas", "ssh", "systemd-run", "nix"}, "sudo, su, env -i, ssh",
		"they drop the variables: run heed inside (sudo heed run -- CMD), or keep them (sudo -E)"},
	{[]string{"docker", "podman", "kubectl", "flatpak", "snap", "bwrap"}, "Containers",
		"they see neither the variables nor this machine's loopback address: run heed inside"},
	{nil, "Others",
		"a proxy set in the program's own settings, a program that knows no proxy, or one that hands the work to a service already running cannot be held by variables"},
}

// printCures says that nothing was judged and what may help, the cure for the
// command at hand first.
func printCures(w io.Writer, command string) {
	name := strings.ToLower(filepath.Base(command))
	fits := func(c cure) bool {
		return slices.ContainsFunc(c.commands, func(begin string) bool { return strings.HasPrefix(name, begin) })
	}
	fmt.Fprintf(w, "heed: no request came through, so nothing %s did was judged\n", printable(filepath.Base(command)))
	fmt.Fprintln(w, "If it should have asked a site, it went round the proxy:")
	ordered := slices.Clone(cures)
	slices.SortStableFunc(ordered, func(a, b cure) int {
		switch {
		case fits(a) == fits(b):
			return 0
		case fits(a):
			return -1
		}
		return 1
	})
	for _, c := range ordered {
		fmt.Fprintf(w, "  %s: %s\n", c.kind, c.what)
	}
}
