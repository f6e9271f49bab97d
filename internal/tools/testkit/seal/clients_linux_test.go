package seal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// client is a program without proxy settings, as a command of the shell: $1 is the URL, and
// $SEAL_DIR the directory with the programs of the test.
type client struct {
	name, needs string // the program, and its Debian package
	command     string
	plainOnly   bool // it has no https
	path        string
	always      bool // it is run by default as well
}

// The page that each client requests, allowed and not allowed, unless it names another.
const page = "page.html"

var clients = []client{
	{name: "curl", needs: "curl", command: `curl -sS "$1"`, always: true},
	{name: "curl without its variables", needs: "curl", command: `env -u SSL_CERT_FILE -u CURL_CA_BUNDLE curl -sS "$1"`, always: true},
	{name: "wget", needs: "wget", command: `wget -q -O - "$1"`},
	{name: "git", needs: "git", command: `git ls-remote "${1%/info/refs}"`, path: "repo.git/info/refs"},
	{name: "npm", needs: "npm", command: `npm view thing version --fetch-retries 0 --registry "${1%thing}" --cache "$HOME/.npm"`, path: "thing"},
	{name: "pip", needs: "python3-pip", command: `/usr/bin/python3 -m pip download --isolated --no-cache-dir --retries 0 --trusted-host site.test --no-deps -d "$HOME" --index-url "${1%/thing/}" thing`, path: "simple/thing/"},
	{name: "apt", needs: "apt", command: `rm -f "$HOME/got"; /usr/lib/apt/apt-helper -o APT::Sandbox::User= download-file "$1" "$HOME/got"`},
	{name: "Chromium", needs: "chromium", command: `chromium --headless --no-sandbox --disable-gpu --ignore-certificate-errors --user-data-dir="$HOME/chromium" --dump-dom "$1"`},
	{name: "Java", needs: "default-jdk-headless", command: `JAVA_TOOL_OPTIONS=$(echo "$JAVA_TOOL_OPTIONS" | tr ' ' '\n' | grep -vi 'proxy' | tr '\n' ' ') java "$SEAL_DIR/Fetch.java" "$1"`},
	{name: "Go", needs: "golang", command: `"$SEAL_DIR/dialer" "$1"`, always: true},
	{name: "Ruby", needs: "ruby", command: `ruby -ropen-uri -e 'puts URI.open(ARGV[0], proxy: false).read' "$1"`},
	{name: "PHP", needs: "php-cli", command: `php -r 'echo file_get_contents($argv[1], false, stream_context_create(["ssl" => ["cafile" => getenv("SSL_CERT_FILE")]]));' "$1"`},
	{name: "R", needs: "r-base-core", command: `Rscript -e 'writeLines(readLines(commandArgs(TRUE)[1]))' "$1"`},
	{name: "Scrapy", needs: "python3-scrapy", command: `/usr/bin/python3 -m scrapy fetch --nolog -s ROBOTSTXT_OBEY=False -s RETRY_ENABLED=False "$1"`},
	{name: "aiohttp", needs: "python3-aiohttp", command: `/usr/bin/python3 -c 'import aiohttp, asyncio, sys
async def main():
    async with aiohttp.ClientSession() as s, s.get(sys.argv[1]) as r: print(await r.text())
asyncio.run(main())' "$1"`, always: true},
	{name: "http.client", needs: "python3", command: `/usr/bin/python3 -c 'import http.client, sys, urllib.parse
u = urllib.parse.urlsplit(sys.argv[1])
c = (http.client.HTTPSConnection if u.scheme == "https" else http.client.HTTPConnection)(u.netloc)
c.request("GET", u.path); print(c.getresponse().read())' "$1"`},
	{name: "Node", needs: "nodejs", command: `node -e 'fetch(process.argv[1]).then(r => r.text()).then(console.log)' "$1"`},
	{name: "Mechanize", needs: "python3-mechanize", command: `/usr/bin/python3 -c 'import mechanize, sys
b = mechanize.Browser(); b.set_handle_robots(False); b.set_proxies({}); print(b.open(sys.argv[1]).read())' "$1"`},
	{name: "LWP", needs: "libwww-perl", command: `perl -MLWP::UserAgent -e 'print LWP::UserAgent->new->get($ARGV[0])->decoded_content' "$1"`},
	{name: "HTTrack", needs: "httrack", command: `rm -rf "$HOME/httrack"; httrack "$1" -O "$HOME/httrack" -r1 -s0 -q`},
	{name: "aria2", needs: "aria2", command: `rm -f "$HOME/got"; aria2c -d / -o "$HOME/got" "$1"`},
	{name: "lftp", needs: "lftp", command: `lftp -c "set net:max-retries 1; cat $1"`},
	{name: "Emacs", needs: "emacs-nox", command: `emacs -Q --batch --eval '(with-current-buffer (url-retrieve-synchronously (car command-line-args-left)) (princ (buffer-string)))' "$1"`},
	{name: "pycurl", needs: "python3-pycurl", command: `/usr/bin/python3 -c 'import pycurl, sys
c = pycurl.Curl(); c.setopt(pycurl.URL, sys.argv[1]); c.perform()' "$1"`},
	{name: "Tornado with curl", needs: "python3-tornado, python3-pycurl", command: `/usr/bin/python3 -c 'import sys
from tornado import httpclient, ioloop
httpclient.AsyncHTTPClient.configure("tornado.curl_httpclient.CurlAsyncHTTPClient")
print(ioloop.IOLoop.current().run_sync(lambda: httpclient.AsyncHTTPClient().fetch(sys.argv[1])).body)' "$1"`},
	{name: "Typhoeus", needs: "ruby-typhoeus", command: `ruby -rtyphoeus -e 'puts Typhoeus.get(ARGV[0]).body' "$1"`},
	{name: "html-xml-utils", needs: "html-xml-utils", command: `rm -f "$HOME/got"; hxcopy "$1" "$HOME/got"`},
	{name: "w3m", needs: "w3m", command: `w3m -dump "$1"`},
	{name: "Lynx", needs: "lynx", command: `lynx -dump "$1"`},
	{name: "wget2", needs: "wget2", command: `wget2 --tries=1 --no-robots -qO- "$1"`},
	{name: "PHP curl", needs: "php-curl", command: `php -r 'curl_exec(curl_init($argv[1]));' "$1"`},
	{name: "R curl", needs: "r-cran-curl", command: `Rscript -e 'cat(readLines(curl::curl(commandArgs(TRUE)[1]), warn = FALSE))' "$1"`},
	{name: "R httr", needs: "r-cran-httr", command: `Rscript -e 'cat(httr::content(httr::GET(commandArgs(TRUE)[1]), "text", encoding = "UTF-8"))' "$1"`},
	{name: "Ruby Mechanize", needs: "ruby-mechanize", command: `ruby -rmechanize -e 'puts Mechanize.new.get(ARGV[0]).body' "$1"`},
	{name: "http.rb", needs: "ruby-http", command: `ruby -rhttp -e 'puts HTTP.get(ARGV[0])' "$1"`},
	{name: "treq", needs: "python3-treq", command: `/usr/bin/python3 -c 'import sys, treq
from twisted.internet import task
async def main(_):
    print(await (await treq.get(sys.argv[1])).text())
task.react(lambda r: __import__("twisted.internet.defer", fromlist=["x"]).ensureDeferred(main(r)))' "$1"`},
	{name: "Tornado", needs: "python3-tornado", command: `/usr/bin/python3 -c 'import sys
from tornado import httpclient, ioloop
print(ioloop.IOLoop.current().run_sync(lambda: httpclient.AsyncHTTPClient().fetch(sys.argv[1])).body)' "$1"`},
	{name: "httping", needs: "httping", command: `httping -c 1 -G "$1"`, plainOnly: true},
	{name: "Elixir", needs: "elixir, erlang-inets, erlang-ssl", command: `elixir -e ':inets.start; :ssl.start
[url] = System.argv
opts = [ssl: [verify: :verify_peer, cacertfile: String.to_charlist(System.get_env("SSL_CERT_FILE")), customize_hostname_check: [match_fun: :public_key.pkix_verify_hostname_match_fun(:https)]]]
IO.inspect(:httpc.request(:get, {String.to_charlist(url), []}, opts, []))' "$1"`},
	{name: "Tcl", needs: "tcl, tcl-tls", command: `printf '%s\n' 'package require http; package require tls' 'http::register https 443 [list tls::socket -autoservername true -require true -cafile $env(SSL_CERT_FILE)]' 'puts [http::data [http::geturl [lindex $argv 0]]]' >"$HOME/get.tcl"; tclsh "$HOME/get.tcl" "$1"`},
	{name: "superagent", needs: "nodejs, npm's superagent", command: `node -e 'require("superagent").get(process.argv[1]).then(r => console.log(r.text))' "$1"`},
	{name: "bent", needs: "nodejs, npm's bent", command: `node -e 'require("bent")("string")(process.argv[1]).then(console.log)' "$1"`},
	{name: "wreck", needs: "nodejs, npm's @hapi/wreck", command: `node -e 'require("@hapi/wreck").get(process.argv[1]).then(r => console.log(String(r.payload)))' "$1"`},
	{name: "ky", needs: "nodejs, npm's ky", command: `node --input-type=module -e 'const ky = (await import(process.env.NODE_PATH + "/ky/distribution/index.js")).default; console.log(await ky(process.argv[1], {retry: 0}).text())' "$1"`},
	{name: "got-scraping", needs: "nodejs, npm's got-scraping", command: `node --input-type=module -e 'const { gotScraping } = await import(process.env.NODE_PATH + "/got-scraping/dist/index.js"); console.log((await gotScraping(process.argv[1], {retry: {limit: 0}, throwHttpErrors: false})).body)' "$1"`},
	{name: "Crawlee", needs: "nodejs, npm's @crawlee/http", command: `cd "$HOME"; CRAWLEE_PERSIST_STORAGE=0 CRAWLEE_STORAGE_DIR="$HOME/crawlee" node -e 'const { HttpCrawler } = require("@crawlee/http"); new HttpCrawler({retryOnBlocked: false, maxRequestRetries: 0, requestHandler: ({ body }) => console.log(String(body))}).run([process.argv[1]])' "$1"`},
	{name: "a socket of Bash", needs: "bash", command: `bash -c 'exec 3<>/dev/tcp/site.test/80; printf "GET %s HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n" "${1#http://site.test}" >&3; cat <&3' x "$1"`, plainOnly: true, always: true},
}

// variables are those that name a proxy.
const variables = "-u http_proxy -u https_proxy -u all_proxy -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY -u npm_config_proxy -u npm_config_https_proxy -u NODE_USE_ENV_PROXY"

// Each client of the manual's table requests a page that robots.txt allows and one that it
// does not allow, over http and https, with no variable that names a proxy: the first comes
// from the site through heed, the second never reaches it. By default some of them run, with
// HEED_TEST_FULL=1 all.
func TestClients_NeedNoVariableUnderASeal(t *testing.T) {
	page := strings.Repeat("<p>the page", 10)
	refs := "0123456789abcdef0123456789abcdef01234567\trefs/heads/main\n"
	thing := `{"name":"thing","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"thing","version":"1.0.0"}}}`
	files := map[string]string{}
	for _, dir := range []string{"/", "/private/"} {
		files[dir+"page.html"], files[dir+"repo.git/info/refs"], files[dir+"thing"] = page, refs, thing
		files[dir+"simple/thing/index.html"] = "<a href='thing-1.0.tar.gz'>thing</a>"
	}
	origin := testkit.NewOrigin(t, testkit.Site{Name: "site.test", Robots: "User-agent: *\nDisallow: /private\n", Files: files, Config: "index index.html; types { text/html html; }"})
	o := newOutside(t)
	trusted := testkit.Write(t, filepath.Join(o.dir, "site-ca.pem"), testkit.Read(t, origin.CA.File))
	patient := "[limits]\nhandshake_time = \"5m\"\n" // Elixir, on a busy machine, compiles first what shakes hands
	testkit.Write(t, o.config, strings.ReplaceAll(origin.Config(patient), origin.CA.File, trusted))
	for _, file := range []string{trusted, o.config} {
		must.OK(t, os.Chmod(file, 0o644))
	}
	build := exec.Command("go", "build", "-o", filepath.Join(o.dir, "dialer"), "./testdata/dialer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	testkit.Write(t, filepath.Join(o.dir, "Fetch.java"), testkit.Read(t, "testdata/Fetch.java"))
	must.OK(t, os.Chmod(filepath.Join(o.dir, "Fetch.java"), 0o644))
	for _, c := range clients {
		if !c.always && !testkit.Full {
			continue
		}
		for user, uid := range users() {
			t.Run(c.name+" of "+user, func(t *testing.T) { c.isHeld(t, o, uid, origin) })
		}
	}
}

// isHeld runs the client sealed, as a user, and compares what came to the site.
func (c client) isHeld(t *testing.T, o *outside, uid uint32, origin *testkit.Origin) {
	for _, scheme := range []string{"http", "https"} {
		if scheme == "https" && c.plainOnly {
			continue
		}
		for _, dir := range []string{"/", "/private/"} {
			path := page
			if c.path != "" {
				path = c.path
			}
			url := scheme + "://site.test" + dir + path
			before := len(origin.Hits())
			out, errs, err := o.run(uid, []string{"-q"}, "sh", "-c", "exec env "+variables+" sh -c '"+strings.ReplaceAll(c.command, "'", `'\''`)+"' client \"$1\"", "sh", url)
			var seen []string
			for _, hit := range origin.Hits()[before:] {
				if strings.HasPrefix(hit.Target, "/testkit-mark-") || strings.HasPrefix(hit.Agent, "heed/") {
					continue
				}
				if seen = append(seen, hit.Scheme+" "+hit.Target); hit.Via == "" {
					t.Errorf("%s: the site was reached without heed: %+v", url, hit)
				}
			}
			came := strings.Contains(strings.Join(seen, " ")+" ", dir+strings.SplitN(path, "?", 2)[0])
			t.Logf("%s: at the site %q, %v", url, seen, err)
			if allowed := dir == "/"; came != allowed {
				t.Errorf("%s came to the site: %v, want %v (%v; is the package %s installed?)\n%.600s\n%.900s", url, came, allowed, err, c.needs, out, errs)
			}
			for _, target := range seen {
				must.Lack(t, target, " /private", "%s: the site was asked for", url)
			}
		}
	}
}

// A client whose proxy support is broken fails in a sealed run with variables, and the summary
// names what helps: without them it gets its page, and none that it may not get.
func TestABrokenProxySupport_NeedsARunWithoutVariables(t *testing.T) {
	testkit.Program(t, "wget2")
	o := newOutside(t)
	get := []string{"wget2", "--tries=1", "--no-robots", "-qO-"}
	out, errs, _ := o.run(ordinaryUser(), nil, append(get, "https://site.test/a")...)
	if strings.Contains(out, "the page") || !strings.Contains(errs, "\n  a program began TLS with the proxy: its proxy support is broken; `heed run --sealed --no-env -- CMD`") {
		t.Errorf("with variables: %q\n%s", out, errs)
	}
	for path, want := range map[string]bool{"a": true, "private": false} {
		out, errs, _ := o.run(ordinaryUser(), []string{"--no-env"}, append(get, "https://site.test/"+path)...)
		if strings.Contains(out, "the page") != want || strings.Contains(errs, "--no-env") || !strings.Contains(errs, "heed: 1 request came through, to site.test") {
			t.Errorf("%s without variables: %q\n%s", path, out, errs)
		}
	}
	// WhatWeb connects to the proxy for https, and ends the connection without a word.
	silent := []string{"bash", "-c", `curl -sS "$1"; at=${https_proxy#*//}; : <>"/dev/tcp/${at%:*}/${at#*:}"`, "bash", "http://site.test/a"}
	want := "\n  1 connection to the proxy ended before anything was sent: the proxy support of a program may be broken, as that of WhatWeb for https; `heed run --sealed --no-env -- CMD`"
	commands := [][]string{silent}
	if testkit.Full {
		testkit.Program(t, "whatweb")
		commands = append(commands, []string{"whatweb", "--color=never", "http://site.test/a", "https://site.test/a"})
	}
	for _, c := range commands {
		out, errs, _ := o.run(ordinaryUser(), nil, c...)
		must.True(t, strings.Contains(errs, "heed: 1 request came through, to site.test: 1 allowed") && strings.Contains(errs, want),
			"%s, beside a request that succeeded: %q\n%s", c[0], out, errs)
		_, errs, _ = o.run(ordinaryUser(), []string{"--no-env"}, c...)
		must.True(t, !strings.Contains(errs, "--no-env"), "%s without variables: %s", c[0], errs)
	}
	out, _, _ = o.run(ordinaryUser(), []string{"--no-env", "--quiet"}, "env")
	must.True(t, !strings.Contains(strings.ToLower(out), "proxy=") && !strings.Contains(out, "SSL_CERT_FILE") && strings.Contains(out, "SEAL_PORT="),
		"the environment is %s", out)
	o.reachedOnlyThroughHeed(t)
}

// ordinaryUser returns a user without rights.
func ordinaryUser() uint32 { return users()["user"] }
