// Package programs runs programs and libraries that fetch, in the environment of heed
// run, against a site that they could reach without heed, in a network namespace: each gets
// an allowed page, over http and https, is refused a disallowed one, is named in the record,
// and sends nothing past heed.
//
// Browsers, Emacs, R, Ruby and yt-dlp run with
//
//	HEED_TEST_FULL=1 go test -count=1 ./internal/tools/testkit/programs
package programs

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// TestMain lets several tests run at the same time: they wait more than they compute.
func TestMain(m *testing.M) {
	testkit.InNamespace()
	testkit.Main(m, 4)
}

// program is one program or library.
type program struct {
	name  string
	needs string // a command in the PATH
	agent string // part of the User-Agent of its entries; empty: it sends none
	shell string // fetches the URLs in "$@" and prints them; for each of them where one is true
	each  bool   // shell is run for each URL, in $1
	page  string // the name of its pages; empty: page.html
	only  string // the scheme of the URLs; empty: http and https
	full  bool   // it runs in the long form only
	nss   bool   // it needs heed's CA in the NSS database of its user

	// proves are the libraries of the manual's table that it stands for; nil: that of its name.
	proves []string

	drives bool // it sends requests to a service on this machine that it starts
}

// programs need what the manual names, and nothing else: the same options.
var programs = []program{
	{name: "PHP streams", needs: "php", agent: "phpstream", shell: `php -d user_agent=phpstream/1.0 "$SOURCE/streams.php" "$@"`},
	{name: "PHP curl", needs: "php", agent: "phpcurl", shell: `php "$SOURCE/curl.php" "$@"`},
	{name: "aria2", needs: "aria2c", agent: "aria2", shell: `aria2c -q --ca-certificate="$SSL_CERT_FILE" -o page "$1"; cat page; rm -f page`, each: true},
	{name: "lftp", needs: "lftp", agent: "lftp", shell: `lftp -e 'set ssl:ca-file '"$SSL_CERT_FILE"'; set net:max-retries 1; cat '"$1"'; exit'`, each: true},
	{name: "links", needs: "links", agent: "Links", shell: `P=${http_proxy#http://}; links -http-proxy $P -https-proxy $P -source "$1"`, each: true},
	{name: "lynx", needs: "lynx", agent: "Lynx", shell: `lynx -source "$1"`, each: true},
	{name: "wget2", needs: "wget2", agent: "wget2", shell: `wget2 -q -O - "$1"`, each: true, only: "http"},
	{name: "HTTrack", needs: "httrack", agent: "HTTrack", shell: `httrack -q -s0 -r1 -O mirror -P ${http_proxy#http://} "$1"; cat mirror/*.test/page.html; rm -rf mirror`, each: true, only: "http"},
	{name: "w3m", needs: "w3m", agent: "w3m", shell: `w3m -dump_source "$1"`, each: true},
	{name: "requests", needs: "python3", agent: "python-requests", shell: `/usr/bin/python3 -c 'import requests, sys
for u in sys.argv[1:]: print(requests.get(u).text)' "$@"`},
	{name: "httplib2", needs: "python3", agent: "Python-httplib2", shell: `/usr/bin/python3 -c 'import httplib2, sys
for u in sys.argv[1:]: print(httplib2.Http().request(u)[1].decode())' "$@"`},
	{name: "urllib", needs: "python3", agent: "Python-urllib", shell: `/usr/bin/python3 -c 'import sys, urllib.request
for u in sys.argv[1:]:
    try: print(urllib.request.urlopen(u).read().decode())
    except OSError as e: print(e)' "$@"`},
	{name: "httpx", needs: "python3", agent: "python-httpx", full: true, shell: `/usr/bin/python3 -c 'import httpx, sys
for u in sys.argv[1:]: print(httpx.get(u).text)' "$@"`},
	{name: "Go", needs: "go", agent: "Go-http-client", proves: []string{"net/http's default client"}, shell: `"$CLIENTS/fetch-go" "$1"`, each: true},
	{name: "curl", needs: "curl", agent: "curl", shell: `curl -sS "$@"`},
	{name: "wget", needs: "wget", agent: "Wget", shell: `wget -q -O - "$@"`},
	{name: "Node's fetch", proves: []string{"fetch"}, needs: "node", agent: "node", shell: `"$NODE" -e '(async () => { for (const u of process.argv.slice(1)) console.log(await (await fetch(u)).text()) })()' "$@"`},
	{name: "LWP", needs: "perl", agent: "libwww-perl", shell: `perl -MLWP::UserAgent -e 'print LWP::UserAgent->new->get($_)->decoded_content for @ARGV' "$@"`},
	{name: "Ruby Mechanize", needs: "ruby", agent: "Mechanize", full: true, shell: `ruby -rmechanize -e 'm, proxy = Mechanize.new, URI(ENV["http_proxy"]); m.set_proxy(proxy.host, proxy.port)
ARGV.each { |u| begin; puts m.get(u).body; rescue Mechanize::ResponseCodeError => e; puts e; end }' "$@"`},
	{name: "mechanize", needs: "python3", agent: "Python-urllib", shell: `/usr/bin/python3 "$SOURCE/mechanized.py" "$@"`},
	{name: "aiohttp", needs: "python3", agent: "aiohttp", shell: `/usr/bin/python3 "$SOURCE/async.py" "$@"`},
	{name: "Scrapy", needs: "scrapy", agent: "Scrapy", shell: `scrapy runspider "$SOURCE/spider.py" -a urls="$(echo "$@" | tr ' ' ,)"`},

	{name: "Emacs", needs: "emacs", agent: "Emacs", shell: `emacs -Q --batch -l "$SOURCE/fetch.el" "$@"`, full: true},
	{name: "Ruby", proves: []string{"Net::HTTP", "open-uri"}, needs: "ruby", agent: "Ruby", shell: `ruby "$SOURCE/fetch.rb" "$@"`, full: true},
	{name: "R", proves: []string{"httr"}, needs: "Rscript", agent: "curl", shell: `Rscript "$SOURCE/fetch.R" "$@"`, full: true},
	{name: "httr2", needs: "Rscript", agent: "httr2", shell: `Rscript -e 'library(httr2); for (u in commandArgs(TRUE)) cat(resp_body_string(req_perform(req_error(request(u), is_error = function(r) FALSE))))' "$@"`, full: true},
	{name: "wkhtmltopdf", needs: "wkhtmltopdf", agent: "wkhtmltopdf", shell: `wkhtmltopdf -q "$1" page.pdf; pdftotext page.pdf -; rm -f page.pdf`, each: true, full: true},
	{name: "Mojo", proves: []string{"Mojolicious"}, needs: "perl", agent: "Mojolicious", shell: `perl -MMojo::UserAgent -e 'print Mojo::UserAgent->new->get($_)->res->body for @ARGV' "$@"`, full: true},
	{name: "HTTP::Tiny", needs: "perl", agent: "HTTP-Tiny", shell: `perl -MHTTP::Tiny -e 'print HTTP::Tiny->new(verify_SSL => 1)->get($_)->{content} for @ARGV' "$@"`, full: true},
	{name: "Faraday", needs: "ruby", agent: "Faraday", shell: `ruby -rfaraday -e 'ARGV.each { |u| puts Faraday.get(u).body }' "$@"`, full: true},
	{name: "Excon", needs: "ruby", agent: "excon", shell: `ruby -rexcon -e 'ARGV.each { |u| puts Excon.get(u).body }' "$@"`, full: true},
	{name: "HTTParty", needs: "ruby", agent: "Ruby", shell: `ruby -rhttparty -e 'ARGV.each { |u| puts HTTParty.get(u).body }' "$@"`, full: true},
	{name: "RestClient", needs: "ruby", agent: "rest-client", shell: `ruby -rrest-client -e 'ARGV.each { |u| RestClient.proxy = ENV["http_proxy"]; puts RestClient.get(u) { |r| r.body } }' "$@"`, full: true},
	{name: "Typhoeus", needs: "ruby", agent: "Typhoeus", shell: `ruby -rtyphoeus -e 'ARGV.each { |u| puts Typhoeus.get(u).body }' "$@"`, only: "http", full: true},
	{name: "pycurl", needs: "python3", agent: "PycURL", shell: `/usr/bin/python3 -c 'import pycurl, sys
for u in sys.argv[1:]:
    c = pycurl.Curl(); c.setopt(pycurl.URL, u); c.perform()' "$@"`, only: "http", full: true},
	{name: "feedparser", needs: "python3", agent: "feedparser", shell: `/usr/bin/python3 -c 'import feedparser, sys
for u in sys.argv[1:]: print(feedparser.parse(u))' "$@"`, page: "feed.xml", full: true},
	{name: "MechanicalSoup", needs: "python3", agent: "MechanicalSoup", shell: `/usr/bin/python3 -c 'import mechanicalsoup, sys
for u in sys.argv[1:]: print(mechanicalsoup.StatefulBrowser().open(u).text)' "$@"`, full: true},
	{name: "lua-http", needs: "lua5.1", agent: "lua-http", shell: `echo 'for _, u in ipairs({...}) do local h, s = require("http.request").new_from_uri(u):go(); print(s:get_body_as_string()) end' | lua5.1 - "$@"`, full: true},
	{name: "needle", needs: "node", agent: "Needle", shell: `NODE_USE_ENV_PROXY=0 NODE_PATH="$MODULES" "$NODE" -e 'process.argv.slice(1).forEach(u => require("needle")("get", u).then(r => console.log(String(r.body))))' "$@"`, full: true},
	{name: "request", needs: "node", shell: `NODE_USE_ENV_PROXY=0 NODE_PATH="$MODULES" "$NODE" --no-deprecation -e 'process.argv.slice(1).forEach(u => require("request")(u, (e, r, b) => console.log(e || b)))' "$@"`, full: true},
	{name: "phin", needs: "node", shell: `NODE_PATH="$MODULES" "$NODE" -e 'process.argv.slice(1).forEach(u => require("phin")(u).then(r => console.log(String(r.body)), e => console.log(String(e))))' "$@"`, full: true},
	{name: "yt-dlp", needs: "yt-dlp", agent: "Mozilla", shell: `yt-dlp --compat-options no-certifi -q -o - "$1"`, each: true, page: "page.mp4", full: true},
	{name: "WhatWeb", needs: "whatweb", agent: "WhatWeb", shell: `whatweb --color=never "$1" | sed -n 's/.*200 OK.*Title.A page.*/` + allowed + `/p'`, each: true, only: "http", full: true},
	{name: "single-file", needs: "chromium", agent: "Chrome", shell: `"$NODE" "$MODULES/.bin/single-file" --browser-executable-path=/usr/bin/chromium --browser-arg=--no-sandbox --dump-content "$1"`, each: true, nss: true, drives: true, full: true},
	{name: "Selenium", needs: "chromedriver", agent: "Chrome", shell: `/usr/bin/python3 "$SOURCE/selenium_chromium.py" "$@"`, nss: true, drives: true, full: true},
	{name: "Playwright", needs: "chromium", agent: "Chrome", shell: `"$NODE" "$SOURCE/browse.mjs" playwright-core "$@"`, nss: true, full: true},
	{name: "Puppeteer", needs: "chromium", agent: "Chrome", shell: `"$NODE" "$SOURCE/browse.mjs" puppeteer-core "$@"`, nss: true, full: true},
}

const (
	allowed = "the page of the site"
	secret  = "what no robot may read"
)

// sites are those that the programs fetch from.
func sites(name string) []testkit.Site {
	page, private := "<!doctype html><title>A page</title><p>"+allowed+"\n", "<!doctype html><title>A page</title><p>"+secret+"\n"
	return []testkit.Site{{
		Name: name, Robots: "User-agent: *\nDisallow: /private\n",
		Files: map[string]string{"/page.html": page, "/private/page.html": private, "/page.mp4": page, "/private/page.mp4": private,
			"/feed.xml": `<rss version="2.0"><channel><title>` + allowed + `</title></channel></rss>`, "/private/feed.xml": `<rss version="2.0"><channel><title>` + secret + `</title></channel></rss>`},
		Config: "location ~ mp4$ { types { } default_type video/mp4; }\n",
	}, {Name: "broken.test", Config: "location = /robots.txt { return 503; }"}}
}

// bed is a heed with the sites behind it.
type bed struct {
	*testkit.Heed
	origin *testkit.Origin
	home   string
	site   string // its name
}

// beds counts the beds.
var beds atomic.Int32

func newBed(t *testing.T) *bed {
	t.Helper()
	number := int(beds.Add(1)) - 1
	name := testkit.ReachableName(t, number)
	o := testkit.NewOrigin(t, sites(name)...)
	o.Reachable(number)
	return &bed{testkit.Start(t, testkit.Options{Config: o.Config("")}), o, t.TempDir(), name}
}

// trust puts heed's CA into the NSS database that browsers of the user read.
func (b *bed) trust(t *testing.T) {
	t.Helper()
	dir := filepath.Join(b.home, ".pki/nssdb")
	script := `mkdir -p "$1" && certutil -N -d "sql:$1" --empty-password && certutil -A -d "sql:$1" -t C,, -n heed -i "$2"`
	if out, err := exec.Command("sh", "-c", script, "sh", dir, filepath.Join(b.State, "ca.pem")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// entry contains the fields of one line of the log.
type entry struct {
	URL, Verdict, Reason string
	Status               int
	UserAgent            string `json:"user_agent"`
}

// run runs a shell script behind heed run and returns what it printed, the summary, and
// the entries.
func (b *bed) run(t *testing.T, script string, args ...string) (stdout, stderr string, entries []entry) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(testkit.Binary(t), append([]string{"run", "--config", b.File, "--log", log, "--", "sh", "-c", script, "sh"}, args...)...)
	var errs strings.Builder
	cmd.Dir, cmd.Stderr = t.TempDir(), &errs
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+b.origin.CA.File, "HOME="+b.home, "HEED_STATE="+b.State, testkit.RaceOptions, "SOURCE="+filepath.Join(testkit.Root(t), "internal/tools/testkit/testdata/clients"),
		"NODE="+testkit.Node(t), "MODULES="+filepath.Join(testkit.Root(t), ".build/clients/node_modules"), "CLIENTS="+testkit.Clients(t), "BROWSERS="+filepath.Join(testkit.Root(t), ".build/browsers"))
	testkit.NotOrphaned(cmd)
	out, _ := cmd.Output() // many programs fail when one of their pages is refused
	for line := range strings.Lines(testkit.Read(t, log)) {
		var e entry
		must.OK(t, json.Unmarshal([]byte(line), &e))
		entries = append(entries, e)
	}
	return string(out), errs.String(), entries
}

func TestProgramsBehindHeedRun(t *testing.T) {
	for _, p := range programs {
		if p.full && !testkit.Full {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			testkit.Program(t, p.needs)
			b := newBed(t)
			if p.nss {
				b.trust(t)
			}
			schemes := []string{"http", "https"}
			if p.only != "" {
				schemes = []string{p.only}
			}
			var urls []string
			for _, scheme := range schemes {
				page := cmp.Or(p.page, "page.html")
				urls = append(urls, scheme+"://"+b.site+"/"+page, scheme+"://"+b.site+"/private/"+page)
			}
			script := p.shell
			if p.each {
				script = `fetch() { ` + p.shell + `; }; for url; do fetch "$url"; done`
			}
			stdout, stderr, entries := b.run(t, script, urls...)
			if n := strings.Count(stdout, allowed); n < len(schemes) || strings.Contains(stdout, secret) {
				t.Errorf("the allowed page arrived %d times, of %d:\n%s\n%s", n, len(schemes), stdout, stderr)
			}
			for i, url := range urls {
				want := entry{URL: url, Verdict: "allow", Reason: "no-rule", Status: 200}
				if i%2 == 1 {
					want.Verdict, want.Reason, want.Status = "refuse", "rule", 403
				}
				if !slices.ContainsFunc(entries, func(e entry) bool {
					ok := strings.Contains(e.UserAgent, p.agent)
					e.UserAgent = ""
					return ok && e == want
				}) {
					t.Errorf("no entry is %+v by %q:\n%+v\n%s", want, p.agent, entries, stderr)
				}
			}
			own := 0
			for _, e := range entries {
				if _, at, _ := strings.Cut(e.URL, "://"); strings.HasPrefix(at, "localhost:") && e.Reason != "origin-unreachable" { // before it listens
					own++
					must.True(t, e.Reason == "own-service" && e.Status < 400, "its own service is judged: %+v", e)
				}
			}
			must.Equal(t, p.drives, own > 0, "%d requests to its own service", own)
			for _, hit := range b.origin.Hits() {
				must.True(t, (hit.Target == "/robots.txt" || hit.Via != "") && !strings.HasPrefix(hit.Target, "/private"),
					"the site was asked for %+v", hit)
			}
		})
	}
}

// Scrapy requests again what heed answers with 503, as often as it is set to, and gives up.
// A refusal by a rule is not requested again.
func TestScrapyRetriesWhatMayHelp(t *testing.T) {
	t.Parallel()
	testkit.Program(t, "scrapy")
	b := newBed(t)
	_, stderr, entries := b.run(t, `scrapy runspider "$SOURCE/spider.py" -a urls=http://broken.test/page.html,http://`+b.site+`/private/page.html`)
	count := map[string]int{}
	for _, e := range entries {
		count[e.URL+" "+e.Reason]++
	}
	must.True(t, count["http://broken.test/page.html robots-unreachable"] == 3 && count["http://"+b.site+"/private/page.html rule"] == 1,
		"recorded %v\n%s", count, stderr)
}

// A program that PHP was set to run first is still run, and a directory of ini files that
// the user names is still read.
func TestPHPKeepsItsAutoPrependFile(t *testing.T) {
	t.Parallel()
	testkit.Program(t, "php")
	b := newBed(t)
	ini := filepath.Join(b.home, "ini")
	must.OK(t, os.Mkdir(ini, 0o700))
	first := testkit.Write(t, filepath.Join(b.home, "first.php"), `<?php $mine = 'ran first'; echo $mine, "\n";`)
	testkit.Write(t, filepath.Join(ini, "mine.ini"), "auto_prepend_file = "+first+"\nuser_agent = mine/1.0\n")
	program := testkit.Write(t, filepath.Join(b.home, "program.php"), `<?php echo $mine, ' ', isset($heed_prepended) ? 'left over' : 'clean', "\n", file_get_contents($argv[1]);`)
	script := `PHP_INI_SCAN_DIR=:"$1" exec "$2" run --config "$3" -- php "$4" "$5"` // the outer run's variable gives way to the user's
	stdout, stderr, _ := b.run(t, script, ini, testkit.Binary(t), b.File, program, "https://"+b.site+"/page.html")
	must.True(t, strings.HasPrefix(stdout, "ran first\nran first clean\n") && strings.Contains(stdout, allowed),
		"it printed\n%s\n%s", stdout, stderr)
}

// An R_PROFILE of the user's is still read, in the environment in which R reads it.
func TestRKeepsTheProfileOfTheUser(t *testing.T) {
	if !testkit.Full {
		t.Skip("internal/tools/testkit/programs: R with a profile of the user's")
	}
	t.Parallel()
	testkit.Program(t, "Rscript")
	b := newBed(t)
	profile := testkit.Write(t, filepath.Join(b.home, "site.R"), "mine <- 'kept'\n")
	stdout, stderr, _ := b.run(t, `R_PROFILE="$1" exec "$2" run --config "$3" -- Rscript -e 'cat(mine)'`, profile, testkit.Binary(t), b.File)
	must.True(t, stdout == "kept", "it printed %q\n%s", stdout, stderr)
}

// Each library of which the manual says that it needs only heed run is run here, or the manual
// names it among those that are not.
func TestWhatTheManualPromisesIsRun(t *testing.T) {
	text := testkit.Read(t, filepath.Join(testkit.Root(t), "internal/output/manual/languages.md"))
	head, table, _ := strings.Cut(text, "gives up after\n")
	width := len(head) - strings.LastIndex(head, "\n") - 1 // up to the last column
	table, rest, _ := strings.Cut(table, "\n\n")
	_, rest, _ = strings.Cut(strings.ReplaceAll(rest, "\n", " "), "Not tried there: ")
	untried, _, found := strings.Cut(rest, ". ")
	must.Need(t, found, "the manual has another form")
	var promised, missing []string
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		cell := line[min(len(line), len("    language  ")):min(len(line), width)]
		cell = strings.NewReplacer(", from Node 22.21 or 24 on", "", ", of every JVM", "", " (file_get_contents, fopen)", "").Replace(cell)
		for name := range strings.FieldsFuncSeq(cell, func(r rune) bool { return r == ',' || r == ';' }) {
			if name = strings.TrimSpace(name); name != "" {
				promised = append(promised, name)
			}
		}
	}
	for _, name := range promised {
		if !slices.ContainsFunc(programs, func(p program) bool {
			return p.name == name || p.name == "PHP "+name || slices.Contains(p.proves, name)
		}) {
			missing = append(missing, name)
		}
	}
	must.True(t, len(promised) >= 30 && strings.Join(missing, ", ") == untried,
		"of %q\nnot run are   %s\nthe manual has %s", promised, strings.Join(missing, ", "), untried)
}
