package clientenv

import (
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestInspect(t *testing.T) {
	finds := func(want Found, environ ...string) {
		t.Helper()
		got := Inspect(environ, "/state", "127.0.0.1:3128")
		must.Same(t, got, want, "%q", environ)
	}
	finds(Found{})
	finds(Found{}, "http_proxy=", "NO_PROXY=", "SSL_CERT_FILE=")
	finds(Found{Proxies: []Variable{{"HTTPS_PROXY", "http://...@corp.test:3128"}}}, "HTTPS_PROXY=http://me:secret@corp.test:3128")
	finds(Found{Proxies: []Variable{{"all_proxy", "socks5://corp.test:1080"}}}, "all_proxy=socks5://corp.test:1080")
	finds(Found{}, "http_proxy=http://127.0.0.1:3128", "HTTPS_PROXY=http://127.0.0.1:3128/", "grpc_proxy=127.0.0.1:3128")
	finds(Found{Bypass: []Variable{{"no_proxy", "localhost,.corp.test"}}}, "no_proxy=localhost,.corp.test")
	finds(Found{}, "no_proxy=heed.invalid", "NO_PROXY=heed.invalid")
	finds(Found{CAs: []string{"/corp.pem", "/other.pem", "/certs", "/more"}},
		"SSL_CERT_FILE=/corp.pem", "CURL_CA_BUNDLE=/corp.pem", "AWS_CA_BUNDLE=/other.pem", "SSL_CERT_DIR=/certs:/more")

	// What heed itself has put there is no finding, but what it had found then is.
	finds(Found{}, "SSL_CERT_FILE=/state/clients/0011223344556677/bundle.pem")
	finds(Found{CAs: []string{"/state/clients/0011223344556677-found/found.pem"}},
		"SSL_CERT_FILE=/state/clients/0011223344556677-found/bundle.pem", "CURL_CA_BUNDLE=/state/clients/0011223344556677-found/bundle.pem")

	finds(Found{Java: []Variable{{"_JAVA_OPTIONS", "-Dhttp.proxyHost=corp"}, {"_JAVA_OPTIONS", "-Djavax.net.ssl.trustStore=/corp.jks"}}},
		"_JAVA_OPTIONS=-Dhttp.proxyHost=corp -Xmx1g -Djavax.net.ssl.trustStore=/corp.jks")
	finds(Found{}, "JAVA_TOOL_OPTIONS=-Dhttp.proxyHost=127.0.0.1 -Dhttp.nonProxyHosts= -Djavax.net.ssl.trustStore=/state/clients/0/truststore.p12")

	finds(Found{Wgetrc: "/home/me/.wgetrc"}, "HOME=/home/me")
	finds(Found{Wgetrc: "/my/wgetrc"}, "HOME=/home/me", "WGETRC=/my/wgetrc")
}

func TestRemarksNameWhatWasFoundAndTheFlag(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "corp.pem")
	empty := testkit.Write(t, filepath.Join(t.TempDir(), "empty.pem"), "nothing")
	found := Inspect([]string{
		"https_proxy=http://me:secret@corp.test:3128", "no_proxy=.corp.test",
		"SSL_CERT_FILE=" + missing, "CURL_CA_BUNDLE=" + empty,
		"JAVA_TOOL_OPTIONS=-Dhttp.proxyHost=corp", "JDK_JAVA_OPTIONS=-Dhttps.proxyHost=corp",
	}, "/state")
	remarks := found.Remarks()
	want := [][]string{
		{"https_proxy=http://...@corp.test:3128", "--upstream env"},
		{"no_proxy=.corp.test", "judged all the same"},
		{missing, "not trusted"},
		{empty, "no certificate"},
		{"-Dhttp.proxyHost=corp", "is overridden by"},
		{"-Dhttps.proxyHost=corp in JDK_JAVA_OPTIONS", "bypasses heed"},
	}
	must.Need(t, len(remarks) == len(want), "%d remarks, want %d:\n%s", len(remarks), len(want), strings.Join(remarks, "\n"))
	for i, texts := range want {
		for _, text := range texts {
			must.Contain(t, remarks[i], text, "does not say %q", text)
		}
	}
	must.Lack(t, strings.Join(remarks, ""), "secret", "a remark contains a password")
	must.True(t, found.Certs() == nil, "certificates from nowhere")
}
