package command

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var testFiles = ClientFiles{Bundle: "/s/bundle.pem", TrustStore: "/s/trust store.p12", Wgetrc: "/s/wgetrc"}

const javaTail = `-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts= ` +
	`"-Djavax.net.ssl.trustStore=/s/trust store.p12" -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit`

func TestHeed_ClientEnviron(t *testing.T) {
	env := func(files ClientFiles, environ ...string) func(name string) (string, bool) {
		out := ClientEnviron(environ, "127.0.0.1:3128", files)
		return func(name string) (string, bool) { return lookup(out, name) }
	}
	set := func(get func(string) (string, bool), name, want string) {
		t.Helper()
		if got, ok := get(name); !ok || got != want {
			t.Errorf("%s = %q, %v; want %q", name, got, ok, want)
		}
	}
	unset := func(get func(string) (string, bool), names ...string) {
		t.Helper()
		for _, name := range names {
			if got, ok := get(name); ok {
				t.Errorf("%s = %q; want it left alone", name, got)
			}
		}
	}

	empty := env(testFiles)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		set(empty, name, "http://127.0.0.1:3128")
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		set(empty, name, "") // there and empty, so that a default list does not apply
	}
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PERL_LWP_SSL_CA_FILE"} {
		set(empty, name, "/s/bundle.pem")
	}
	set(empty, "NODE_USE_ENV_PROXY", "1")
	set(empty, "PERL_LWP_ENV_PROXY", "1")
	set(empty, "WGETRC", "/s/wgetrc")
	set(empty, "JAVA_TOOL_OPTIONS", javaTail)
	set(empty, "npm_config_proxy", "http://127.0.0.1:3128") // its own files come after it
	set(empty, "npm_config_cafile", "/s/bundle.pem")
	set(empty, "PIP_PROXY", "http://127.0.0.1:3128")
	unset(empty, "grpc_proxy", "NPM_CONFIG_PROXY", "YARN_HTTP_PROXY", "NIX_SSL_CERT_FILE", "SSL_CERT_DIR")

	there := env(testFiles, "grpc_proxy=corp:1", "npm_config_noproxy=corp.test", "NIX_SSL_CERT_FILE=/nix", "NO_PROXY=corp.test", "http_proxy=http://corp:1")
	set(there, "grpc_proxy", "http://127.0.0.1:3128")
	set(there, "npm_config_noproxy", "")
	set(there, "NIX_SSL_CERT_FILE", "/s/bundle.pem")
	set(there, "NO_PROXY", "")
	set(there, "http_proxy", "http://127.0.0.1:3128")

	noFiles := env(ClientFiles{}, "SSL_CERT_FILE=/mine.pem", "PATH=/bin")
	set(noFiles, "HTTPS_PROXY", "http://127.0.0.1:3128")
	set(noFiles, "SSL_CERT_FILE", "/mine.pem")
	set(noFiles, "PATH", "/bin")
	unset(noFiles, "CURL_CA_BUNDLE", "WGETRC")
	set(noFiles, "JAVA_TOOL_OPTIONS", javaTail[:strings.Index(javaTail, ` "-D`)])
}

func TestHeed_ClientEnvironLeavesTheCallersAloneAndNamesEachVariableOnce(t *testing.T) {
	environ := []string{"http_proxy=a", "HOME=/h", "http_proxy=b"}
	out := ClientEnviron(environ, "127.0.0.1:1", testFiles)
	if !slices.Equal(environ, []string{"http_proxy=a", "HOME=/h", "http_proxy=b"}) {
		t.Errorf("the caller's environment is now %q", environ)
	}
	seen := map[string]bool{}
	for _, entry := range out {
		name, _, _ := strings.Cut(entry, "=")
		if seen[name] {
			t.Errorf("%s stands there twice", name)
		}
		seen[name] = true
	}
}

func TestHeed_JavaOptionsKeepTheUsersOwn(t *testing.T) {
	is := func(old, want string) {
		t.Helper()
		if got := javaOptions(old, "127.0.0.1:3128", testFiles.TrustStore); got != want {
			t.Errorf("%q becomes\n%s\nwant\n%s", old, got, want)
		}
	}
	is("", javaTail)
	is("-Xmx1g -Da=b", "-Xmx1g -Da=b "+javaTail)
	is(`-Dname="a b"  '-Dc=d "e"'`, `"-Dname=a b" '-Dc=d "e"' `+javaTail)
	is("-Dhttp.proxyHost=corp -Dhttp.proxyPort=1 -Dx=y", "-Dx=y "+javaTail)
	is("-Dhttp.proxyHostname=kept", "-Dhttp.proxyHostname=kept "+javaTail)
	is(javaTail, javaTail) // a run inside a run
}

// Every name in the table is there for one reason, and once.
func TestHeed_ClientVariablesAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range clientVariables {
		if seen[v.name] {
			t.Errorf("%s stands there twice", v.name)
		}
		seen[v.name] = true
	}
}

func TestHeed_ShellsReadBackWhatTheyAreGiven(t *testing.T) {
	hard := "a'b \"c\" $d `e` \\f\n!g"
	out, err := exec.Command("sh", "-c", posix{}.set(Variable{"X", hard})+"; printf %s \"$X\"; "+posix{}.unset("X")+"; printf %s \"${X-gone}\"").Output()
	if err != nil || string(out) != hard+"gone" {
		t.Errorf("sh reads %q, %v", out, err)
	}
	if got, want := (fish{}).set(Variable{"X", `a\b'c`}), `set -gx X 'a\\b\'c'`; got != want {
		t.Errorf("fish is given %s, want %s", got, want)
	}
	if got, want := (powershell{}).set(Variable{"X", `a'b`}), `$env:X = 'a''b'`; got != want {
		t.Errorf("powershell is given %s, want %s", got, want)
	}
}
