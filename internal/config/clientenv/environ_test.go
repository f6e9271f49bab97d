package clientenv

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"heed/internal/output/console"
	"heed/internal/tools/testkit/must"
)

var testFiles = ClientFiles{Bundle: "/s/bundle.pem", TrustStore: "/s/trust store.p12", Wgetrc: "/s/wgetrc"}

const javaTail = `-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts= ` +
	`"-Djavax.net.ssl.trustStore=/s/trust store.p12" -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit`

func TestClientEnviron(t *testing.T) {
	env := func(files ClientFiles, environ ...string) func(name string) (string, bool) {
		out := ClientEnviron(environ, "127.0.0.1:3128", files)
		return func(name string) (string, bool) { return console.Lookup(out, name) }
	}
	set := func(get func(string) (string, bool), name, want string) {
		t.Helper()
		got, ok := get(name)
		must.True(t, ok && got == want, "%s = %q, %v; want %q", name, got, ok, want)
	}
	unset := func(get func(string) (string, bool), names ...string) {
		t.Helper()
		for _, name := range names {
			got, ok := get(name)
			must.True(t, !ok, "%s = %q; want it left alone", name, got)
		}
	}

	empty := env(testFiles)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		set(empty, name, "http://127.0.0.1:3128")
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		set(empty, name, "heed.invalid") // there, so that no default list applies, and not empty, which Emacs takes for all hosts
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
	set(there, "NO_PROXY", "heed.invalid")
	set(there, "http_proxy", "http://127.0.0.1:3128")

	noFiles := env(ClientFiles{}, "SSL_CERT_FILE=/mine.pem", "PATH=/bin")
	set(noFiles, "HTTPS_PROXY", "http://127.0.0.1:3128")
	set(noFiles, "SSL_CERT_FILE", "/mine.pem")
	set(noFiles, "PATH", "/bin")
	unset(noFiles, "CURL_CA_BUNDLE", "WGETRC")
	set(noFiles, "JAVA_TOOL_OPTIONS", javaTail[:strings.Index(javaTail, ` "-D`)])
}

func TestClientEnvironLeavesTheCallersAloneAndNamesEachVariableOnce(t *testing.T) {
	environ := []string{"http_proxy=a", "HOME=/h", "http_proxy=b"}
	out := ClientEnviron(environ, "127.0.0.1:1", testFiles)
	must.Same(t, environ, []string{"http_proxy=a", "HOME=/h", "http_proxy=b"}, "the caller's environment is now")
	seen := map[string]bool{}
	for _, entry := range out {
		name, _, _ := strings.Cut(entry, "=")
		must.True(t, !seen[name], "%s is set twice", name)
		seen[name] = true
	}
}

func TestJavaOptionsKeepTheUsersOwn(t *testing.T) {
	is := func(old, want string) {
		t.Helper()
		must.Equal(t, javaOptions(old, "127.0.0.1:3128", testFiles.TrustStore), want, "%q becomes", old)
	}
	is("", javaTail)
	is("-Xmx1g -Da=b", "-Xmx1g -Da=b "+javaTail)
	is(`-Dname="a b"  '-Dc=d "e"'`, `"-Dname=a b" '-Dc=d "e"' `+javaTail)
	is("-Dhttp.proxyHost=corp -Dhttp.proxyPort=1 -Dx=y", "-Dx=y "+javaTail)
	is("-Dhttp.proxyHostname=kept", "-Dhttp.proxyHostname=kept "+javaTail)
	is(javaTail, javaTail) // a run inside a run
}

// Every name in the table is there for one reason, and once.
func TestClientVariablesAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range clientVariables {
		must.True(t, !seen[v.name], "%s is listed twice", v.name)
		seen[v.name] = true
	}
}

func TestShellsReadBackWhatTheyAreGiven(t *testing.T) {
	set := func(name, value string) string {
		return fmt.Sprintf(shells[name].set, "X", shells[name].quote(value))
	}
	hard := "a'b \"c\" $d `e` \\f\n!g"
	out, err := exec.Command("sh", "-c", set("sh", hard)+"printf %s \"$X\"; "+fmt.Sprintf(shells["sh"].unset, "X")+"printf %s \"${X-gone}\"").Output()
	must.True(t, err == nil && string(out) == hard+"gone", "sh reads %q, %v", out, err)
	must.Equal(t, set("fish", `a\b'c`), "set -gx X 'a\\\\b\\'c'\n", "for fish")
	must.Equal(t, set("powershell", `a'b`), "$env:X = 'a''b'\n", "for powershell")
}

// A PHP_INI_SCAN_DIR and an R_PROFILE of the user's are added to, and a run inside a run
// adds nothing twice.
func TestWhatTheUserSetForPHPAndRIsKept(t *testing.T) {
	files := ClientFiles{Bundle: "/s/clients/new/bundle.pem", PHP: "/s/clients/new/php", RProfile: "/s/clients/new/Rprofile"}
	for _, c := range []struct {
		environ              []string
		php, profile, before string
	}{
		{nil, ":/s/clients/new/php", "/s/clients/new/Rprofile", ""},
		{[]string{"PHP_INI_SCAN_DIR=", "R_PROFILE="}, "/s/clients/new/php", "/s/clients/new/Rprofile", ""},
		{[]string{"PHP_INI_SCAN_DIR=:/my/ini", "R_PROFILE=/my/site.R"}, ":/my/ini:/s/clients/new/php", "/s/clients/new/Rprofile", "/my/site.R"},
		{[]string{"PHP_INI_SCAN_DIR=/my/ini:"}, "/my/ini::/s/clients/new/php", "/s/clients/new/Rprofile", ""},
		{[]string{"PHP_INI_SCAN_DIR=:/my/ini:/s/clients/old/php", "R_PROFILE=/s/clients/old/Rprofile", "R_PROFILE_BEFORE_HEED=/my/site.R"},
			":/my/ini:/s/clients/new/php", "/s/clients/new/Rprofile", "/my/site.R"},
		{[]string{"R_PROFILE=/my/other.R", "R_PROFILE_BEFORE_HEED=/my/site.R"}, ":/s/clients/new/php", "/s/clients/new/Rprofile", "/my/other.R"},
	} {
		out := ClientEnviron(c.environ, "127.0.0.1:3128", files)
		for name, want := range map[string]string{"PHP_INI_SCAN_DIR": c.php, "R_PROFILE": c.profile, "R_PROFILE_BEFORE_HEED": c.before} {
			got, _ := console.Lookup(out, name)
			must.True(t, got == want, "%q: %s = %q, want %q", c.environ, name, got, want)
		}
	}
	_, ok := console.Lookup(ClientEnviron(nil, "127.0.0.1:3128", ClientFiles{}), "PHP_INI_SCAN_DIR")
	must.True(t, !ok, "PHP_INI_SCAN_DIR is set without a directory to name")
}

func TestPHPDir_PathsThatNoVariableCanNameHaveNone(t *testing.T) {
	for dir, want := range map[string]string{"/s/clients/a b": "/s/clients/a b/php", "/s:t/clients/a": "", "/it's/clients/a": "", "/s\n/clients/a": ""} {
		must.Equal(t, phpDir(dir), want, "%q", dir)
	}
}

func TestProgramOf_VersionsDoNotMatter(t *testing.T) {
	for command, want := range map[string]string{
		"/usr/bin/php8.2": "PHP", "python3.11": "Python", "wget2": "wget2", "wget": "wget", "R": "R", "links2": "links", "curl.exe": "curl", "./crawl": "Others", "rustc": "Others", "": "Others",
	} {
		p, known := ProgramOf(command)
		must.True(t, p.Kind == want && known == (want != "Others"), "%q: %s, %v; want %s", command, p.Kind, known, want)
	}
	for _, p := range append(Programs(), OtherPrograms()) {
		must.True(t, p.Kind != "" && p.Proxy != "" && strings.ToLower(strings.Join(p.Names, "")) == strings.Join(p.Names, ""),
			"incomplete: %+v", p)
	}
}
