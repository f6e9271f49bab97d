package doctor

import (
	"cmp"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"heed/internal/clientenv"
	"heed/internal/console"
)

// proxyLine makes most programs use heed. It has a placeholder of clientenv.
const proxyLine = "http_proxy=http://HEED https_proxy=http://HEED"

// runtimeKind is a runtime or library that fetches, and the settings it needs.
type runtimeKind struct {
	name    string
	program string   // in the PATH; its settings in the table of clientenv are those not set below
	needs   []string // a command that succeeds when it can be tried; nil: the program is enough
	without string   // printed when needs fails; empty: nothing is printed
	version []string // prints the version; nil in the tables: program --version
	fetch   []string // {} is replaced by the URL; fails for any answer other than success

	source, sourceName string   // of a program to build first; empty: there is none
	build              []string // in the folder of the source; nil: it is run as it is

	proxy string // what makes it use heed
	trust string // what makes it trust heed's CA
}

// videoSuffix makes a path one of a video, which the site serves with that type.
const videoSuffix = ".mp4"

// runtimes are tried and printed in this order.
var runtimes = completed(slices.Concat(languages, libraries))

// completed sets what kinds have in common with others.
func completed(kinds []runtimeKind) []runtimeKind {
	for i := range kinds {
		k := &kinds[i]
		if k.version == nil {
			k.version = []string{k.program, "--version"}
		}
		settings, _ := clientenv.ProgramOf(k.program)
		k.proxy, k.trust = cmp.Or(k.proxy, settings.Proxy), cmp.Or(k.trust, settings.Trust)
	}
	return kinds
}

// languages are programs and languages, with the libraries that most of their programs use.
var languages = []runtimeKind{
	{name: "curl", program: "curl", fetch: []string{"curl", "-sS", "-f", "{}"}, proxy: proxyLine, trust: "CURL_CA_BUNDLE=BUNDLE"},
	{name: "wget", program: "wget", fetch: []string{"wget", "-nv", "-t", "1", "-O", "-", "{}"},
		proxy: proxyLine, trust: "wget --ca-certificate=BUNDLE"},
	{name: "python3 urllib", program: "python3", fetch: []string{"python3", "-c", pythonUrllib, "{}"}, proxy: proxyLine, trust: "SSL_CERT_FILE=BUNDLE"},
	python("requests", pythonRequests, proxyLine, "REQUESTS_CA_BUNDLE=BUNDLE"),
	{name: "node", program: "node", fetch: []string{"node", "-e", nodeFetch, "{}"},
		proxy: "NODE_USE_ENV_PROXY=1 " + proxyLine, trust: "NODE_EXTRA_CA_CERTS=BUNDLE"},
	{name: "java", program: "java", needs: []string{"javac", "-version"}, without: "java: only a JDK, with javac, can be tried",
		version: []string{"java", "-version"}, fetch: []string{"java", "-cp", ".", "Fetch", "{}"},
		source: javaFetch, sourceName: "Fetch.java", build: []string{"javac", "Fetch.java"},
		proxy: "JAVA_TOOL_OPTIONS='-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts='",
		trust: `keytool -importcert -noprompt -cacerts -storepass changeit -alias heed -file "$(heed ca path)"`},
	{name: "go", program: "go", version: []string{"go", "version"}, fetch: []string{"./fetch", "{}"},
		source: goFetch, sourceName: "fetch.go", build: []string{"go", "build", "-o", "fetch", "fetch.go"},
		proxy: proxyLine, trust: "SSL_CERT_FILE=BUNDLE"},
	{name: "git", program: "git", fetch: []string{"git", "ls-remote", "{}"}, proxy: proxyLine, trust: "GIT_SSL_CAINFO=BUNDLE"},
	{name: "perl LWP", program: "perl", needs: []string{"perl", "-MLWP::UserAgent", "-MLWP::Protocol::https", "-e", "1"},
		without: "perl: LWP, or its LWP::Protocol::https, is not installed",
		version: []string{"perl", "-MLWP", "-e", "print LWP->VERSION"}, fetch: []string{"perl", "-MLWP::UserAgent", "-e", perlFetch, "{}"},
		proxy: "PERL_LWP_ENV_PROXY=1 " + proxyLine, trust: "PERL_LWP_SSL_CA_FILE=BUNDLE"},
	{name: "ruby", program: "ruby", fetch: []string{"ruby", "-ropen-uri", "-e", "puts URI.open(ARGV[0]).read", "{}"},
		proxy: proxyLine, trust: "SSL_CERT_FILE=BUNDLE"},
	{name: "php curl", program: "php", needs: []string{"php", "-r", "exit(function_exists('curl_init') ? 0 : 1);"},
		without: "php curl: its curl extension is not installed",
		fetch:   []string{"php", "-r", phpCurl, "{}"}},
	{name: "php streams", program: "php", fetch: []string{"php", "fetch.php", "{}"}, source: phpStream, sourceName: "fetch.php"},
	{name: "R", program: "Rscript", fetch: []string{"Rscript", "-e", rDownload, "{}"}, proxy: proxyLine, trust: "CURL_CA_BUNDLE=BUNDLE"},
	{name: "R curl", program: "Rscript", needs: []string{"Rscript", "-e", "library(curl)"}, version: []string{"Rscript", "-e", "cat(format(packageVersion('curl')))"},
		fetch: []string{"Rscript", "-e", rCurl, "{}"}, proxy: proxyLine},
	{name: "R httr", program: "Rscript", needs: []string{"Rscript", "-e", "library(httr)"}, version: []string{"Rscript", "-e", "cat(format(packageVersion('httr')))"},
		fetch: []string{"Rscript", "-e", rHttr, "{}"}, proxy: proxyLine},
	{name: "aria2c", program: "aria2c", fetch: []string{"aria2c", "-q", "--dry-run=true", "{}"}},
	{name: "yt-dlp", program: "yt-dlp", fetch: []string{"yt-dlp", "-q", "--simulate", "{}" + videoSuffix}},
	{name: "lftp", program: "lftp", fetch: []string{"lftp", "-c", "set net:max-retries 1; cat {}"}},
}

// The programs: each fetches one address, and fails when that does.
const (
	pythonUrllib   = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read())"
	pythonRequests = "import sys, requests; r = requests.get(sys.argv[1]); r.raise_for_status(); print(r.text)"
	nodeFetch      = "fetch(process.argv[1]).then(r => { if (!r.ok) throw new Error(r.status + ' ' + r.statusText); return r.text() }).then(console.log).catch(e => { console.error(e.message, e.cause ? e.cause.message : ''); process.exit(1) })"
	perlFetch      = `my $r = LWP::UserAgent->new->get($ARGV[0]); die $r->status_line, "\n" unless $r->is_success; print $r->content`
	phpCurl        = `$c = curl_init($argv[1]); curl_setopt($c, CURLOPT_FAILONERROR, true); if (!curl_exec($c)) { fwrite(STDERR, curl_error($c)); exit(1); }`
	phpStream      = `<?php if (@file_get_contents($argv[1]) === false) { fwrite(STDERR, error_get_last()['message']); exit(1); }`
	rDownload      = `download.file(commandArgs(TRUE)[1], tempfile(), quiet = TRUE)`
	rCurl          = `r <- curl::curl_fetch_memory(commandArgs(TRUE)[1]); if (r$status_code >= 400) stop(r$status_code)`
	rHttr          = `httr::stop_for_status(httr::GET(commandArgs(TRUE)[1]))`
	goFetch        = `package main

import (
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	r, err := http.Get(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if r.StatusCode != http.StatusOK {
		log.Fatal(r.Status)
	}
	io.Copy(os.Stdout, r.Body)
}
`
	javaFetch = `import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

public class Fetch {
	public static void main(String[] args) throws Exception {
		var request = HttpRequest.newBuilder(URI.create(args[0])).build();
		var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
		if (response.statusCode() != 200) {
			System.err.println(response.statusCode());
			System.exit(1);
		}
		System.out.println(response.body());
	}
}
`
)

// found reports whether the runtime is on this machine and can be tried. If it cannot
// be tried, without is the reason.
func (k *runtimeKind) found(ctx context.Context) (is bool, without string) {
	if _, err := exec.LookPath(k.program); err != nil {
		return false, ""
	}
	if k.needs == nil || exec.CommandContext(ctx, k.needs[0], k.needs[1:]...).Run() == nil {
		return true, ""
	}
	return false, k.without
}

func (k *runtimeKind) versionOf(ctx context.Context) string {
	out, _ := exec.CommandContext(ctx, k.version[0], k.version[1:]...).CombinedOutput() // without a version, none is printed
	return regexp.MustCompile(`\d+(\.\d+)+`).FindString(string(out))
}

// candidate is a runtime of this machine, or the command given, that is tried.
type candidate struct {
	runtimeKind
	Version string
}

// commandCandidate returns a candidate that runs a command. Its settings are those
// of the runtime that occurs in the command.
func commandCandidate(args []string) candidate {
	kind := runtimeKind{proxy: proxyLine, trust: "SSL_CERT_FILE=BUNDLE"}
	for _, word := range args {
		base := filepath.Base(word)
		if i := slices.IndexFunc(runtimes, func(k runtimeKind) bool { return base == k.program || k.program == "python3" && base == "python" }); i >= 0 {
			kind.proxy, kind.trust = runtimes[i].proxy, runtimes[i].trust
			break
		}
		if p, known := clientenv.ProgramOf(word); known && !p.Usual {
			kind.proxy, kind.trust = p.Proxy, cmp.Or(p.Trust, kind.trust)
			break
		}
	}
	name := console.Truncated(strings.Join(args, " "), 40)
	if !slices.ContainsFunc(args, func(word string) bool { return strings.Contains(word, "{}") }) {
		args = append(slices.Clone(args), "{}")
	}
	kind.name, kind.fetch = name, args
	return candidate{runtimeKind: kind}
}

// host returns the host of the candidate on the doctor's site; each has a different
// one.
func (p *candidate) host() string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(p.name))
	return "x" + label[:min(len(label), 40)] + doctorDomain // a label has 63 octets at most (RFC 1035 §2.3.4)
}

// line returns the command that fetches an address.
func (p *candidate) line(dir, address string) []string {
	out := make([]string, len(p.fetch))
	for i, word := range p.fetch {
		out[i] = strings.ReplaceAll(word, "{}", address)
	}
	if strings.HasPrefix(out[0], "./") && p.build != nil {
		out[0] = filepath.Join(dir, out[0])
	}
	return out
}

// diagnose evaluates the candidate's fetches.
func (p *candidate) diagnose(tried []trial, site *doctorSite, judged []judgedRequest) diagnosis {
	d := diagnosis{Name: p.name, Version: p.Version}
	host := p.host()
	d.ProxyHTTP = site.requested("http", host, allowedPath)
	d.ProxyHTTPS = slices.ContainsFunc(judged, func(j judgedRequest) bool {
		return strings.HasPrefix(j.URL, "https://"+host) || strings.HasPrefix(j.URL, host+":443")
	})
	d.Refusal = d.ProxyHTTP
	for _, t := range tried {
		switch {
		case t.scheme == "https" && t.path == allowedPath:
			d.Trusted = t.status == 0 && site.requested(t.scheme, host, t.path)
		case t.path == refusedPath && (t.scheme == "http" || d.Trusted):
			d.Refusal = d.Refusal && t.status != 0 && !site.requested(t.scheme, host, t.path) && refusedByRule(judged, t.scheme+"://"+host+t.path)
		}
	}
	d.Missing = p.missing(&d)
	if i := slices.IndexFunc(tried, func(t trial) bool { return (t.status != 0) == (t.path == allowedPath) }); i >= 0 && !d.well() {
		d.LastLine = lastLine(tried[i].output)
	}
	return d
}

func refusedByRule(judged []judgedRequest, address string) bool {
	return slices.ContainsFunc(judged, func(j judgedRequest) bool {
		return strings.HasPrefix(j.URL, address) && j.Verdict == "refuse" && j.Reason == "rule"
	})
}

// missing returns the setting that the candidate lacks; empty when d is ok.
func (p *candidate) missing(d *diagnosis) string {
	switch {
	case d.well():
		return ""
	case !d.ProxyHTTP || !d.ProxyHTTPS:
		if p.program == "node" && !nodeReadsProxies(p.Version) {
			return "a Node from 22.21 or 24 on: this one ignores proxy variables"
		}
		return p.proxy
	case !d.Trusted:
		return p.trust
	default:
		return "a check of the answer's status: 403 is taken for success"
	}
}

// nodeReadsProxies reports whether a version of Node can use proxy variables.
func nodeReadsProxies(version string) bool {
	numbers := strings.SplitN(version, ".", 3)
	if len(numbers) < 2 {
		return true // an unknown version: the variable may help
	}
	major, _ := strconv.Atoi(numbers[0])
	minor, _ := strconv.Atoi(numbers[1])
	return major >= 24 || major == 22 && minor >= 21
}

// lastLine returns the last line of text that is not blank, shortened.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return console.Quoted(lines[len(lines)-1])
}
