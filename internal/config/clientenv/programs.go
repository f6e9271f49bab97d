package clientenv

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heed/internal/base/memo"
)

// Placeholders in the settings of programs, for values that differ between machines.
const (
	ProxyPlaceholder  = "HEED"   // host:port of heed
	BundlePlaceholder = "BUNDLE" // the path of a file with heed's CA and the other roots
)

// Program is a kind of program that fetches, with its own settings, for where the
// variables do not suffice.
type Program struct {
	Kind  string   // what the kind is called
	Names []string // base names of its commands, in lower case and without version numbers
	Proxy string   // what makes it use heed
	Trust string   // what makes it trust heed's CA; empty: as for other programs
	Usual bool     // worth a line for a command of no known kind
	Wraps bool     // it runs other programs, whose settings count as well

	// Ignores reports whether a version of it ignores the proxy variables; empty is a
	// version that is not known. Nil: no version does.
	Ignores func(version string) bool
	// spares are the programs in its language that read variables of their own, by the base
	// names of their files.
	spares []string
	// option is set when an option with heed's address makes a program use heed that ignores
	// the variables.
	option bool
}

// always is the Ignores of programs whose versions all do.
func always(string) bool { return true }

// nodeIgnores is the Ignores of Node.
func nodeIgnores(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major < 22 || major == 22 && minor < 21 || major == 23
}

// Spares reports whether a process of the kind, by its command line, reads variables of its
// own all the same, or is given the address of heed there, one of proxies.
func (p *Program) Spares(command, proxies []string) bool {
	if p.option && slices.ContainsFunc(proxies, func(proxy string) bool {
		return slices.ContainsFunc(command, func(word string) bool { return strings.HasSuffix(word, proxy) })
	}) {
		return true
	}
	for i, word := range command {
		if i == 0 { // "npm install", as npm names itself
			word, _, _ = strings.Cut(word, " ")
		} else if strings.HasPrefix(word, "-") {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(word), filepath.Ext(word)), "-cli")
		if slices.Contains(p.spares, name) {
			return true
		}
		if i > 0 {
			return false
		}
	}
	return false
}

// versionTime is the most that a program may take to print its version.
const versionTime = 10 * time.Second

// VersionOf returns the first version number that the program at path prints in an environment
// when it is asked for its version; empty when there is none.
func VersionOf(ctx context.Context, path string, environ []string) string {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, cmp.Or(map[string]string{"go": "version"}[filepath.Base(path)], "--version"))
	cmd.Env = environ
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput() // the status of a program of a run may be collected by another
	return versionNumber().FindString(string(out))
}

var versionNumber = memo.Expression(`\d+(\.\d+)+`)

// OtherPrograms is the kind of all programs that are not in Programs.
var OtherPrograms = Program{
	Kind:  "Others",
	Proxy: "a proxy set in the program's own settings, a program without proxy support, or one that delegates to a running service ignores the variables: heed run --sealed holds it (Linux), and a network whose only exit is heed (heed help containers)",
	Trust: "SSL_CERT_FILE=BUNDLE; the program's own option for a CA file (libcurl: CURLOPT_CAINFO), or `heed ca install`, which a browser that it starts needs",
}

// Programs are the kinds of programs with settings of their own.
var Programs = []Program{
	// Node 24 gives its process the name MainThread.
	{Kind: "Node.js", Names: []string{"node", "nodejs", "mainthread", "npm", "npx", "yarn", "pnpm"}, Usual: true,
		Ignores: nodeIgnores, spares: []string{"npm", "npx", "yarn", "pnpm", "corepack"},
		Proxy: "before 22.21, and 23, it ignores proxy variables: use a newer version, which NODE_USE_ENV_PROXY=1 must reach, or give its client an agent such as undici's EnvHttpProxyAgent; superagent and wreck bypass with every version; got-scraping needs proxyUrl, Crawlee a ProxyConfiguration (and retryOnBlocked: false)",
		Trust: "NODE_EXTRA_CA_CERTS=BUNDLE; a browser that it starts (Playwright, Puppeteer) needs `heed ca install`"},
	{Kind: "Java", Names: []string{"java", "jshell", "mvn", "gradle", "sbt", "kotlin", "scala"}, Usual: true,
		Proxy: "JAVA_TOOL_OPTIONS must reach the JVM (it prints \"Picked up\" when it does); HttpClient needs .proxy(ProxySelector.getDefault()) where another selector was set",
		Trust: "JAVA_TOOL_OPTIONS as `heed run` sets it, or the CA in its trust store: `heed ca install`"},
	{Kind: "Python", Names: []string{"python", "pip", "uv", "scrapy"}, Usual: true,
		Proxy: "requests and httpx need trust_env left on, aiohttp needs trust_env=True, Scrapy its HttpProxyMiddleware, urllib3 a ProxyManager in place of its PoolManager, Tornado curl_httpclient with proxy_host; Twisted and treq have a proxy for http alone",
		Trust: "SSL_CERT_FILE=BUNDLE REQUESTS_CA_BUNDLE=BUNDLE; pycurl needs setopt(pycurl.CAINFO, \"BUNDLE\"); a browser that it starts (Selenium, Playwright) needs `heed ca install`"},
	{Kind: "Perl", Names: []string{"perl"}, Usual: true,
		Proxy: "PERL_LWP_ENV_PROXY=1 and MOJO_PROXY=1 must reach it; a proxy or no_proxy that the program sets has precedence",
		Trust: "PERL_LWP_SSL_CA_FILE=BUNDLE MOJO_CA_FILE=BUNDLE SSL_CERT_FILE=BUNDLE"},
	{Kind: "Go", Names: []string{"go"}, Usual: true,
		Proxy: "a Transport of its own needs Proxy: http.ProxyFromEnvironment; localhost and loopback addresses always bypass the proxy"},
	{Kind: "curl", Names: []string{"curl"}, Usual: true,
		Proxy: "--noproxy, -q and .curlrc can switch the proxy off; curl --proxy http://HEED switches it on",
		Trust: "curl --cacert BUNDLE"},
	{Kind: "wget", Names: []string{"wget"}, Usual: true,
		Proxy: "--no-proxy and .wgetrc can switch the proxy off; wget -e use_proxy=yes switches it on",
		Trust: "wget --ca-certificate=BUNDLE"},
	{Kind: "wget2", Names: []string{"wget2"},
		Proxy: "--no-proxy switches the proxy off; for https, version 1.99 begins TLS with the proxy and fails: use wget or curl",
		Trust: "wget2 --ca-certificate=BUNDLE"},
	{Kind: "aria2", Names: []string{"aria2c"},
		Proxy: "aria2c --all-proxy=http://HEED", Trust: "aria2c --ca-certificate=BUNDLE"},
	{Kind: "yt-dlp", Names: []string{"yt-dlp", "youtube-dl"},
		Proxy: "yt-dlp --proxy http://HEED", Trust: "yt-dlp --compat-options no-certifi"},
	{Kind: "lftp", Names: []string{"lftp"},
		Proxy: "lftp -e 'set http:proxy http://HEED; set https:proxy http://HEED'", Trust: "lftp -e 'set ssl:ca-file BUNDLE'"},
	{Kind: "links", Names: []string{"links"},
		Proxy: "links -http-proxy HEED -https-proxy HEED", Trust: "SSL_CERT_FILE=BUNDLE"},
	{Kind: "lynx", Names: []string{"lynx"},
		Proxy: "no_proxy and lynx.cfg can switch the proxy off", Trust: "SSL_CERT_FILE=BUNDLE"},
	{Kind: "HTTrack", Names: []string{"httrack"}, Ignores: always,
		Proxy: "httrack -P HEED for http; https bypasses every proxy in 3.49 and earlier: heed run --sealed holds it (Linux), and a network whose only exit is heed (heed help containers)"},
	{Kind: "ApacheBench", Names: []string{"ab"}, Ignores: always, option: true,
		Proxy: "ab -X HEED for http; for https, ab begins TLS with the proxy and fails"},
	{Kind: "Siege", Names: []string{"siege"}, Ignores: always,
		Proxy: "siege -R FILE, a file with the lines proxy-host = and proxy-port = of HEED"},
	{Kind: "BusyBox", Names: []string{"busybox"},
		Proxy: "busybox wget -Y off switches the proxy off; for https it closes its side of the connection and cannot use a proxy: use wget or curl"},
	{Kind: "Emacs", Names: []string{"emacs"},
		Proxy: "a value of url-proxy-services that the program sets replaces the variables",
		Trust: "(setq gnutls-trustfiles (list (getenv \"SSL_CERT_FILE\")))"},
	{Kind: "Lua", Names: []string{"lua", "luajit"}, Ignores: always,
		Proxy: "LuaSocket: require('socket.http').PROXY = 'http://HEED' for http; LuaSec's https has no proxy support"},
	{Kind: "Tcl", Names: []string{"tclsh", "wish", "expect"}, Ignores: always,
		Proxy: "the package autoproxy of Tcllib: autoproxy::init, and autoproxy::tls_socket for https",
		Trust: "autoproxy::tls_socket -cafile BUNDLE"},
	{Kind: "Erlang, Elixir", Names: []string{"beam.smp", "erl", "elixir", "mix", "iex"}, Ignores: always,
		Proxy: "httpc:set_options([{proxy, {{Host, Port}, []}}, {https_proxy, {{Host, Port}, []}}]) with the host and port of HEED",
		Trust: "{ssl, [{verify, verify_peer}, {cacertfile, \"BUNDLE\"}]}"},
	{Kind: "Ruby", Names: []string{"ruby", "bundle", "rake"}, Usual: true,
		Proxy: "Mechanize needs agent.set_proxy(host, port) of HEED, http.rb HTTP.via(host, port); Net::HTTP reads the variables, unless it is given nil as its proxy address",
		Trust: "SSL_CERT_FILE=BUNDLE; Typhoeus needs cainfo: \"BUNDLE\""},
	{Kind: "httping", Names: []string{"httping"}, Ignores: always, option: true,
		Proxy: "httping -x HEED"},
	{Kind: "PHP", Names: []string{"php", "composer"}, Usual: true,
		Proxy: "http_proxy, https_proxy and PHP_INI_SCAN_DIR as `heed run` sets them, without php -n and -d auto_prepend_file, and in a file, not in php -r; a stream context of the program's own needs 'proxy' => 'tcp://HEED' and 'request_fulluri' => true",
		Trust: "php -d curl.cainfo=BUNDLE -d openssl.cafile=BUNDLE"},
	{Kind: "R", Names: []string{"r", "rscript"}, Usual: true,
		Proxy: "http_proxy and https_proxy must reach R; options(download.file.method) must be libcurl, curl or wget",
		Trust: "R_PROFILE as `heed run` sets it, without --vanilla and --no-site-file; or httr::set_config(httr::config(cainfo = \"BUNDLE\"))"},
	{Kind: "Browsers", Names: []string{"chromium", "chromium-browser", "chrome", "google-chrome", "google-chrome-stable", "firefox", "firefox-esr", "msedge", "microsoft-edge"}, Usual: true,
		Proxy: "--proxy-server=HEED (Chromium), or the browser's settings; with `heed serve`, HEED is 127.0.0.1:3128",
		Trust: "`heed ca install`"},
	{Kind: "sudo, su, env -i, ssh", Names: []string{"sudo", "su", "env", "doas", "ssh", "systemd-run", "nix", "nix-shell"}, Usual: true, Wraps: true,
		Proxy: "they drop the variables: run heed inside (sudo heed run -- CMD), or keep them (sudo -E)"},
	{Kind: "Containers", Names: []string{"docker", "podman", "kubectl", "flatpak", "snap", "bwrap"}, Usual: true, Wraps: true,
		Proxy: "they see neither the variables nor this machine's loopback address: run heed inside"},
}

// ProgramOf returns the kind of a command, by the base name of its path; OtherPrograms and
// false when it is not known. A version number at the end of the name does not matter.
func ProgramOf(command string) (Program, bool) {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(command)), ".exe")
	for _, name := range []string{name, strings.TrimRight(name, "0123456789.-")} {
		i := slices.IndexFunc(Programs, func(p Program) bool { return slices.Contains(p.Names, name) })
		if i >= 0 {
			return Programs[i], true
		}
	}
	return OtherPrograms, false
}
