package command

import (
	"context"
	"os/exec"
	"regexp"
)

// What stands in a missing line for values that differ from machine to machine.
const (
	heedWordIn   = "HEED"
	bundleWordIn = "BUNDLE"
	proxyLine    = "http_proxy=http://HEED https_proxy=http://HEED"
)

// runtimeKind is one way in which programs fetch, and what it needs.
type runtimeKind struct {
	name    string
	program string   // in the PATH
	needs   []string // succeeds when what it takes beside the program is there; nil: nothing does
	without string   // said where it is not; empty: nothing, since programs may do without
	version []string // prints the version
	fetch   []string // {} stands for the address; fails for any answer but success

	source, sourceName string   // of a program to build first; empty: there is none
	build              []string // in the folder of the source

	proxy string // what makes it use heed
	trust string // what makes it trust heed's CA
}

// runtimes are those looked for, in the order they are told in.
var runtimes = []runtimeKind{
	{name: "curl", program: "curl", version: []string{"curl", "--version"}, fetch: []string{"curl", "-sS", "-f", "{}"},
		proxy: proxyLine, trust: "CURL_CA_BUNDLE=BUNDLE"},
	{name: "wget", program: "wget", version: []string{"wget", "--version"}, fetch: []string{"wget", "-nv", "-t", "1", "-O", "-", "{}"},
		proxy: proxyLine, trust: "wget --ca-certificate=BUNDLE"},
	{name: "python3 urllib", program: "python3", version: []string{"python3", "--version"}, fetch: []string{"python3", "-c", pythonUrllib, "{}"},
		proxy: proxyLine, trust: "SSL_CERT_FILE=BUNDLE"},
	{name: "python3 requests", program: "python3", needs: []string{"python3", "-c", "import requests"},
		version: []string{"python3", "-c", "import requests; print(requests.__version__)"}, fetch: []string{"python3", "-c", pythonRequests, "{}"},
		proxy: proxyLine, trust: "REQUESTS_CA_BUNDLE=BUNDLE"},
	{name: "node", program: "node", version: []string{"node", "--version"}, fetch: []string{"node", "-e", nodeFetch, "{}"},
		proxy: "NODE_USE_ENV_PROXY=1 " + proxyLine, trust: "NODE_EXTRA_CA_CERTS=BUNDLE"},
	{name: "java", program: "java", needs: []string{"javac", "-version"}, without: "java: only a JDK, with javac, can be tried",
		version: []string{"java", "-version"}, fetch: []string{"java", "-cp", ".", "Fetch", "{}"},
		source: javaFetch, sourceName: "Fetch.java", build: []string{"javac", "Fetch.java"},
		proxy: "JAVA_TOOL_OPTIONS='-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts='",
		trust: `keytool -importcert -noprompt -cacerts -storepass changeit -alias heed -file "$(heed ca path)"`},
	{name: "go", program: "go", version: []string{"go", "version"}, fetch: []string{"./fetch", "{}"},
		source: goFetch, sourceName: "fetch.go", build: []string{"go", "build", "-o", "fetch", "fetch.go"},
		proxy: proxyLine, trust: "SSL_CERT_FILE=BUNDLE"},
	{name: "git", program: "git", version: []string{"git", "--version"}, fetch: []string{"git", "ls-remote", "{}"},
		proxy: proxyLine, trust: "GIT_SSL_CAINFO=BUNDLE"},
	{name: "perl LWP", program: "perl", needs: []string{"perl", "-MLWP::UserAgent", "-MLWP::Protocol::https", "-e", "1"},
		without: "perl: LWP, or its LWP::Protocol::https, is not installed",
		version: []string{"perl", "-MLWP", "-e", "print LWP->VERSION"}, fetch: []string{"perl", "-MLWP::UserAgent", "-e", perlFetch, "{}"},
		proxy: "PERL_LWP_ENV_PROXY=1 " + proxyLine, trust: "PERL_LWP_SSL_CA_FILE=BUNDLE"},
	{name: "ruby", program: "ruby", version: []string{"ruby", "--version"}, fetch: []string{"ruby", "-ropen-uri", "-e", "puts URI.open(ARGV[0]).read", "{}"},
		proxy: proxyLine, trust: "SSL_CERT_FILE=BUNDLE"},
	{name: "php curl", program: "php", needs: []string{"php", "-r", "exit(function_exists('curl_init') ? 0 : 1);"},
		without: "php: its curl extension is not installed, and without that it knows no proxy variables",
		version: []string{"php", "--version"}, fetch: []string{"php", "-r", phpCurl, "{}"}, proxy: proxyLine, trust: "php -d curl.cainfo=BUNDLE"},
}

// The programs: each fetches one address, and fails when that does.
const (
	pythonUrllib   = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read())"
	pythonRequests = "import sys, requests; r = requests.get(sys.argv[1]); r.raise_for_status(); print(r.text)"
	nodeFetch      = "fetch(process.argv[1]).then(r => { if (!r.ok) throw new Error(r.status + ' ' + r.statusText); return r.text() }).then(console.log).catch(e => { console.error(e.message, e.cause ? e.cause.message : ''); process.exit(1) })"
	perlFetch      = `my $r = LWP::UserAgent->new->get($ARGV[0]); die $r->status_line, "\n" unless $r->is_success; print $r->content`
	phpCurl        = `$c = curl_init($argv[1]); curl_setopt($c, CURLOPT_FAILONERROR, true); if (!curl_exec($c)) { fwrite(STDERR, curl_error($c)); exit(1); }`
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

// found reports whether the runtime is on this machine. Where it is and cannot be
// tried, without says why.
func (k *runtimeKind) found(ctx context.Context) (is bool, without string) {
	if _, err := exec.LookPath(k.program); err != nil {
		return false, ""
	}
	if k.needs == nil || exec.CommandContext(ctx, k.needs[0], k.needs[1:]...).Run() == nil {
		return true, ""
	}
	return false, k.without
}

// aVersion finds what looks like a version.
var aVersion = regexp.MustCompile(`\d+(\.\d+)+`)

func (k *runtimeKind) versionOf(ctx context.Context) string {
	out, _ := exec.CommandContext(ctx, k.version[0], k.version[1:]...).CombinedOutput() // without it, none is told
	return aVersion.FindString(string(out))
}
