package doctor

// libraries are libraries that fetch and that are not their language's own. Some of them read no
// variable: their settings name what the program has to do.
var libraries = []runtimeKind{
	python("aiohttp", `import sys, asyncio, aiohttp
async def main():
    async with aiohttp.ClientSession() as s, s.get(sys.argv[1]) as r:
        r.raise_for_status(); print(await r.text())
asyncio.run(main())`, "aiohttp.ClientSession(trust_env=True)", "SSL_CERT_FILE=BUNDLE"),
	python("tornado", `import sys
from tornado import httpclient, ioloop
print(ioloop.IOLoop.current().run_sync(lambda: httpclient.AsyncHTTPClient().fetch(sys.argv[1])).body)`,
		"curl_httpclient in place of simple_httpclient, and fetch(..., proxy_host=, proxy_port=) of HEED; or heed run --sealed", "fetch(..., ca_certs=\"BUNDLE\")"),
	python("treq", `import sys, treq
from twisted.internet import defer, task
async def main(_):
    r = await treq.get(sys.argv[1])
    if r.code != 200: raise SystemExit(r.code)
task.react(lambda reactor: defer.ensureDeferred(main(reactor)))`,
		"twisted.web.client.ProxyAgent with HEED, for http only; for https heed run --sealed", "SSL_CERT_FILE=BUNDLE"),
	perl("Mojo::UserAgent", `my $r = Mojo::UserAgent->new->get($ARGV[0])->result; die $r->code, "\n" unless $r->is_success; print $r->body`,
		"MOJO_PROXY=1 "+proxyLine, "MOJO_CA_FILE=BUNDLE"),
	perl("HTTP::Tiny", `my $r = HTTP::Tiny->new->get($ARGV[0]); die "$r->{status} $r->{reason} $r->{content}\n" unless $r->{success}; print $r->{content}`,
		proxyLine, "SSL_CERT_FILE=BUNDLE"),
	gem("http", "r = HTTP.get(ARGV[0]); abort r.status.to_s unless r.status.success?; puts r", "HTTP.via(host, port) with the host and port of HEED; or heed run --sealed", "SSL_CERT_FILE=BUNDLE"),
	gem("faraday", "r = Faraday.get(ARGV[0]); abort r.status.to_s unless r.success?; puts r.body", proxyLine, "SSL_CERT_FILE=BUNDLE"),
	gem("excon", "puts Excon.get(ARGV[0], expects: 200).body", proxyLine, "SSL_CERT_FILE=BUNDLE"),
	gem("httparty", "r = HTTParty.get(ARGV[0]); abort r.code.to_s unless r.ok?; puts r.body", proxyLine, "SSL_CERT_FILE=BUNDLE"),
	gem("rest-client", "puts RestClient.get(ARGV[0]).body", "RestClient.proxy = ENV['http_proxy']; "+proxyLine, "SSL_CERT_FILE=BUNDLE"),
	gem("typhoeus", "r = Typhoeus.get(ARGV[0]); abort r.code.to_s unless r.success?; puts r.body", proxyLine,
		"Typhoeus.get(url, cainfo: \"BUNDLE\"), or heed run --sealed"), // libcurl reads no variable for certificates
	module("superagent", "m.get(u).then(r => console.log(r.text))"),
	module("bent", "m('string')(u).then(console.log)"),
	module("needle", "m('get', u).then(r => { if (r.statusCode != 200) throw r.statusCode })"),
	{name: "tclsh http", program: "tclsh", needs: []string{"sh", "-c", "echo 'package require tls' | tclsh"},
		version: []string{"sh", "-c", "echo 'puts [package require http]' | tclsh"}, fetch: []string{"tclsh", "fetch.tcl", "{}"},
		source: tclFetch, sourceName: "fetch.tcl"},
	{name: "elixir httpc", program: "elixir", needs: []string{"erl", "-noshell", "-eval", "{ok, _} = application:ensure_all_started(inets), halt()."},
		fetch: []string{"elixir", "-e", elixirFetch, "{}"}},
	{name: "httping", program: "httping", version: []string{"httping", "-V"}, fetch: []string{"httping", "-c", "1", "-G", "{}"},
		trust: "no option: it verifies no certificate"},
}

const (
	tclFetch = `package require http
package require tls
http::register https 443 [list tls::socket -autoservername true -require true -cafile /etc/ssl/certs/ca-certificates.crt]
set t [http::geturl [lindex $argv 0]]
if {[http::ncode $t] != 200} { puts stderr [http::code $t]; exit 1 }
`
	elixirFetch = `:inets.start; :ssl.start
[url] = System.argv()
case :httpc.request(String.to_charlist(url)) do
  {:ok, {{_, 200, _}, _, body}} -> IO.puts(body)
  other -> IO.inspect(:stderr, other, []); System.halt(1)
end`
)

// python returns a library of Python.
func python(name, code, proxy, trust string) runtimeKind {
	return runtimeKind{name: "python3 " + name, program: "python3", needs: []string{"python3", "-c", "import " + name},
		version: []string{"python3", "-c", "import importlib.metadata as m; print(m.version('" + name + "'))"}, fetch: []string{"python3", "-c", code, "{}"}, proxy: proxy, trust: trust}
}

// perl returns a module of Perl.
func perl(name, code, proxy, trust string) runtimeKind {
	return runtimeKind{name: "perl " + name, program: "perl", needs: []string{"perl", "-M" + name, "-MIO::Socket::SSL", "-e", "1"},
		version: []string{"perl", "-e", "printf 'v%vd', $^V"}, fetch: []string{"perl", "-M" + name, "-e", code, "{}"}, proxy: proxy, trust: trust}
}

// gem returns a library of Ruby.
func gem(name, code, proxy, trust string) runtimeKind {
	return runtimeKind{name: "ruby " + name, program: "ruby", needs: []string{"ruby", "-r" + name, "-e", "1"},
		version: []string{"ruby", "-r" + name, "-e", "puts Gem.loaded_specs['" + name + "']&.version"}, fetch: []string{"ruby", "-r" + name, "-e", code, "{}"},
		proxy: proxy, trust: trust}
}

// module returns a package of npm, where node finds it. m is the module and u the address.
func module(name, code string) runtimeKind {
	return runtimeKind{name: "node " + name, program: "node", needs: []string{"node", "-e", "require('" + name + "')"},
		version: []string{"node", "-p", "require('" + name + "/package.json').version"},
		fetch:   []string{"node", "-e", "const m = require('" + name + "'), u = process.argv[1]; " + code, "{}"},
		proxy:   "an agent of the program's own, such as https-proxy-agent with http://HEED; or heed run --sealed", trust: "NODE_EXTRA_CA_CERTS=BUNDLE"}
}
