package clientenv

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heed/internal/output/console"
)

// ClientFiles are the files that a client's environment points to. An empty
// path means there is none, and the variables that would carry it are not set.
type ClientFiles struct {
	Bundle     string // PEM: the system's roots, the CAs found in the environment, heed's CA
	TrustStore string // the same for Java, PKCS#12
	Wgetrc     string // the user's own wgetrc and the bundle
	PHP        string // a directory of ini files
	RProfile   string // R code for packages that do not read the variables
}

// trustStorePassword is the one Java expects when none is given. It need not be
// secret: a trust store holds public certificates.
const trustStorePassword = "changeit"

// content is the kind of value that a variable is set to.
type content uint8

const (
	ProxyURL content = iota // http://host:port of heed
	Empty                   // the empty text
	NoHost                  // noSuchHost
	one                     // 1
	Bundle                  // ClientFiles.Bundle
	wgetrc                  // ClientFiles.Wgetrc
	javaOpts                // the existing options, followed by heed's
	phpScan                 // the existing directories, followed by ClientFiles.PHP
	rProfile                // ClientFiles.RProfile
	rBefore                 // the R_PROFILE that rProfile replaces, which its file reads
)

// noSuchHost is a list of hosts without a proxy that lists none that exists (RFC 2606 §2).
const noSuchHost = "heed.invalid"

// over marks a variable that is set only where it is set already.
const over content = 0x80

// clientVariable is one variable that makes some family of clients use heed
// or trust its CA.
type clientVariable struct {
	name    string
	content content
}

// clientVariables are the variables that are set for a client. Those with over
// would make the client bypass heed where they are set already; elsewhere it uses the
// general variables.
var clientVariables = []clientVariable{
	{"http_proxy", ProxyURL},  // the one name curl, wget, Perl, Python and Ruby share for http
	{"HTTP_PROXY", ProxyURL},  // Go, Node, Rust, .NET and others read it; curl does not
	{"https_proxy", ProxyURL}, // https bypasses a proxy that is set only for http
	{"HTTPS_PROXY", ProxyURL},
	{"all_proxy", ProxyURL}, // the fallback of curl, httpx, aria2; else a SOCKS proxy found here would be used
	{"ALL_PROXY", ProxyURL},
	{"no_proxy", NoHost}, // hosts listed here would bypass it; Emacs takes an empty list for all hosts
	{"NO_PROXY", NoHost},
	{"NODE_USE_ENV_PROXY", one},                   // Node reads the variables above only when this is set
	{"GLOBAL_AGENT_HTTP_PROXY", ProxyURL},         // Node programs with global-agent read separate names
	{"GLOBAL_AGENT_HTTPS_PROXY", ProxyURL | over}, // unset, it follows GLOBAL_AGENT_HTTP_PROXY
	{"GLOBAL_AGENT_NO_PROXY", Empty | over},
	{"PERL_LWP_ENV_PROXY", one},     // Perl's LWP, likewise
	{"MOJO_PROXY", one},             // Perl's Mojolicious, likewise
	{"grpc_proxy", ProxyURL | over}, // gRPC prefers it to https_proxy
	{"no_grpc_proxy", Empty | over},
	{"PIP_PROXY", ProxyURL}, // pip, cargo and npm prefer their own configuration files
	{"CARGO_HTTP_PROXY", ProxyURL},
	{"npm_config_proxy", ProxyURL},
	{"npm_config_https_proxy", ProxyURL},
	{"npm_config_noproxy", Empty | over},
	{"NPM_CONFIG_PROXY", ProxyURL | over}, // npm reads its variables in either case
	{"NPM_CONFIG_HTTPS_PROXY", ProxyURL | over},
	{"NPM_CONFIG_NOPROXY", Empty | over},
	{"YARN_HTTP_PROXY", ProxyURL | over}, // Yarn from version 2 on prefers its own; unasked-for ones may stop it
	{"YARN_HTTPS_PROXY", ProxyURL | over},

	{"SSL_CERT_FILE", Bundle},                      // OpenSSL, Go on Unix, Python's ssl and httpx, Ruby, rustls, .NET
	{"NIX_SSL_CERT_FILE", Bundle | over},           // Nix's OpenSSL prefers it to SSL_CERT_FILE
	{"CURL_CA_BUNDLE", Bundle},                     // curl with any TLS library; R
	{"REQUESTS_CA_BUNDLE", Bundle},                 // Python's requests has built-in roots
	{"HTTPLIB2_CA_CERTS", Bundle},                  // Python's httplib2, likewise
	{"WEBSOCKET_CLIENT_CA_BUNDLE", Bundle},         // Python's websocket-client, likewise
	{"PIP_CERT", Bundle},                           // pip, whatever its configuration file says
	{"AWS_CA_BUNDLE", Bundle},                      // AWS tools and SDKs have built-in roots
	{"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", Bundle}, // gcloud, likewise
	{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", Bundle},   // gRPC, likewise
	{"NODE_EXTRA_CA_CERTS", Bundle},                // Node, Bun, npm, Yarn: beside their own roots
	{"npm_config_cafile", Bundle},                  // npm forgets NODE_EXTRA_CA_CERTS when its own files name one
	{"NPM_CONFIG_CAFILE", Bundle | over},
	{"YARN_HTTPS_CA_FILE_PATH", Bundle | over},
	{"DENO_CERT", Bundle},            // Deno has built-in roots
	{"GIT_SSL_CAINFO", Bundle},       // git, whatever its configuration says
	{"CARGO_HTTP_CAINFO", Bundle},    // cargo, whatever TLS library it was built with
	{"PERL_LWP_SSL_CA_FILE", Bundle}, // LWP prefers Mozilla::CA to the system's roots
	{"MOJO_CA_FILE", Bundle},         // Mojolicious
	{"WGETRC", wgetrc},               // wget has no variable for roots
	{"JAVA_TOOL_OPTIONS", javaOpts},  // every JVM, however it is started, reads proxy and roots from properties
	{"PHP_INI_SCAN_DIR", phpScan},    // PHP's curl has no variable for roots, and its streams none at all
	{"R_PROFILE", rProfile},          // R's package curl reads CURL_CA_BUNDLE from 5.2.0 on only
	{rProfileBefore, rBefore},
}

// rProfileBefore names the variable that client.R reads for the R_PROFILE that it replaces.
const rProfileBefore = "R_PROFILE_BEFORE_HEED"

// ClientEnviron returns environ, as os.Environ gives it, changed so that its
// clients go through the proxy at proxyAddr (host:port) and trust what files
// hold. environ is left as it is.
func ClientEnviron(environ []string, proxyAddr string, files ClientFiles) []string {
	out := slices.Clone(environ)
	for _, v := range clientValues(environ, proxyAddr, files) {
		out = SetVariable(out, v.Name, v.Value)
	}
	return out
}

// clientValues returns the variables to set over environ, in the order of the table.
func clientValues(environ []string, proxyAddr string, files ClientFiles) []Variable {
	var out []Variable
	for _, v := range clientVariables {
		old, present := console.Lookup(environ, v.name)
		switch {
		case v.content == rBefore:
			if site, _ := console.Lookup(environ, "R_PROFILE"); !files.has(site) {
				old = site
			}
		case v.content == phpScan && !present:
			old = phpDefault
		}
		value := v.content.value(old, proxyAddr, files)
		if (present || v.content&over == 0) && (value != "" || v.content&^over == Empty) {
			out = append(out, Variable{v.name, value})
		}
	}
	return out
}

// value returns the value that a variable is set to, given its old value.
func (c content) value(old, proxyAddr string, files ClientFiles) string {
	return map[content]string{
		ProxyURL: "http://" + proxyAddr,
		NoHost:   noSuchHost,
		one:      "1",
		Bundle:   files.Bundle,
		wgetrc:   files.Wgetrc,
		javaOpts: javaOptions(old, proxyAddr, files.TrustStore),
		phpScan:  files.phpScanDirs(old),
		rProfile: files.RProfile,
		rBefore:  old,
	}[c&^over]
}

// has reports whether path is a file for clients that heed made, now or earlier.
func (f ClientFiles) has(path string) bool {
	return path != "" && f.Bundle != "" && filepath.Dir(filepath.Dir(path)) == filepath.Dir(filepath.Dir(f.Bundle))
}

// phpDefault is a PHP_INI_SCAN_DIR that means the directories PHP was built with: what an
// unset one means. An empty one means none.
const phpDefault = string(filepath.ListSeparator)

// phpScanDirs returns the directories of PHP_INI_SCAN_DIR: those of old, and ours last,
// so that its settings win; empty when the variable cannot name ours.
func (f ClientFiles) phpScanDirs(old string) string {
	if f.PHP == "" {
		return ""
	}
	if old == phpDefault {
		return phpDefault + f.PHP
	}
	dirs := slices.DeleteFunc(strings.Split(old, phpDefault), f.has)
	if old == "" {
		dirs = nil
	}
	return strings.Join(append(dirs, f.PHP), phpDefault)
}

// javaOptions returns the options for a JVM: those of old, but for the
// properties we set, and ours.
func javaOptions(old, proxyAddr, trustStore string) string {
	host, port, err := net.SplitHostPort(proxyAddr)
	if err != nil {
		host, port = proxyAddr, "80"
	}
	ours := []string{
		"-Dhttp.proxyHost=" + host, "-Dhttp.proxyPort=" + port,
		"-Dhttps.proxyHost=" + host, "-Dhttps.proxyPort=" + port,
		"-Dhttp.nonProxyHosts=", // empty, not absent: the default excludes loopback
	}
	if trustStore != "" {
		ours = append(ours, "-Djavax.net.ssl.trustStore="+trustStore,
			"-Djavax.net.ssl.trustStoreType=PKCS12", "-Djavax.net.ssl.trustStorePassword="+trustStorePassword)
	}
	var options []string
	for _, option := range splitOptions(old) {
		if !slices.ContainsFunc(ours, func(o string) bool { return property(o) == property(option) }) {
			options = append(options, quoteOption(option))
		}
	}
	for _, option := range ours {
		options = append(options, quoteOption(option))
	}
	return strings.Join(options, " ")
}

// property returns the -Dname of an option, or the whole option.
func property(option string) string {
	name, _, _ := strings.Cut(option, "=")
	return name
}

// splitOptions splits as the JVM does: at white space, outside quotes, which
// are taken away; there is no escape.
func splitOptions(s string) []string {
	var options []string
	var current strings.Builder
	inside, quote := false, byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inside = c, true
		case quote == 0 && strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			if inside {
				options = append(options, current.String())
				current.Reset()
			}
			inside = false
		default:
			current.WriteByte(c)
			inside = true
		}
	}
	if inside {
		options = append(options, current.String())
	}
	return options
}

func quoteOption(option string) string {
	switch {
	case !strings.ContainsAny(option, " \t\n\r\v\f\"'"):
		return option
	case strings.Contains(option, `"`):
		return "'" + option + "'"
	default:
		return `"` + option + `"`
	}
}

// Variable is one variable of an environment.
type Variable struct {
	Name, Value string
}

// SetVariable replaces every entry of the name by one.
func SetVariable(environ []string, name, value string) []string {
	environ = slices.DeleteFunc(environ, func(entry string) bool {
		n, _, _ := strings.Cut(entry, "=")
		return n == name
	})
	return append(environ, name+"="+value)
}

// wgetrcMark begins what heed adds to the user's settings of wget.
const wgetrcMark = "# Added by heed:\n"

// wgetSettings is a user's wgetrc as far as it stays in force.
type wgetSettings struct {
	kept []byte   // its text, lines that lead round heed made remarks
	cas  []string // CA files it names
}

// readWgetrc reads the user's settings. No file, or one that cannot be read,
// is one without settings: wget would go on without it, too.
func readWgetrc(path string) wgetSettings {
	data, _ := os.ReadFile(path)
	if before, _, ours := bytes.Cut(data, []byte(wgetrcMark)); ours {
		data = before // a run inside a run
	}
	var s wgetSettings
	for line := range strings.Lines(string(data)) {
		switch key, value, _ := strings.Cut(line, "="); wgetKey(key) {
		case "httpproxy", "httpsproxy", "useproxy", "noproxy":
			line = "# not behind heed: " + line // they win over the environment
		case "cacertificate":
			s.cas = append(s.cas, strings.TrimSpace(value))
		}
		s.kept = append(s.kept, line...)
	}
	if n := len(s.kept); n > 0 && s.kept[n-1] != '\n' {
		s.kept = append(s.kept, '\n')
	}
	return s
}

// with returns the settings with the bundle as wget's roots.
func (s wgetSettings) with(bundle string) []byte {
	return append(bytes.Clone(s.kept), wgetrcMark+"ca_certificate = "+bundle+"\n"...)
}

// wgetKey writes a command as wget compares it: case, - and _ do not matter.
func wgetKey(key string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(strings.TrimSpace(key)))
}
