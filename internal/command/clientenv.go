package command

import (
	"net"
	"slices"
	"strings"
)

// ClientFiles are the files that a client's environment points to. An empty
// path means there is none, and the variables that would carry it are not set.
type ClientFiles struct {
	Bundle     string // PEM: the system's roots, the CAs found in the environment, heed's CA
	TrustStore string // the same for Java, PKCS#12
	Wgetrc     string // the user's own wgetrc and the bundle
}

// trustStorePassword guards nothing: a trust store holds public certificates.
// It is the one Java expects when none is given.
const trustStorePassword = "changeit"

// content says what a variable is set to.
type content uint8

const (
	proxyURL   content = iota // http://host:port of heed
	nothing                   // the empty text
	one                       // 1
	bundle                    // ClientFiles.Bundle
	wgetrc                    // ClientFiles.Wgetrc
	javaOpts                  // what is there, and ours behind it
	overProxy                 // like proxyURL, but only where it is set already
	overBundle                // like bundle, but only where it is set already
	overEmpty                 // like nothing, but only where it is set already
)

// clientVariable is one variable that makes some family of clients use heed
// or trust its CA.
type clientVariable struct {
	name    string
	content content
}

// clientVariables is all that is set for a client, and why. What is set only
// where it is already there would otherwise lead past heed; elsewhere those
// clients do with the general variables.
var clientVariables = []clientVariable{
	{"http_proxy", proxyURL},  // the one name curl, wget, Perl, Python and Ruby share for http
	{"HTTP_PROXY", proxyURL},  // Go, Node, Rust, .NET and others read it; curl does not
	{"https_proxy", proxyURL}, // https goes round a proxy that is set for http alone
	{"HTTPS_PROXY", proxyURL},
	{"all_proxy", proxyURL}, // the fallback of curl, httpx, aria2; else a SOCKS proxy found here would be used
	{"ALL_PROXY", proxyURL},
	{"no_proxy", nothing}, // hosts listed here would go round
	{"NO_PROXY", nothing},
	{"NODE_USE_ENV_PROXY", one},             // Node looks at the variables above only when told to
	{"GLOBAL_AGENT_HTTP_PROXY", proxyURL},   // Node programs with global-agent read names of their own
	{"GLOBAL_AGENT_HTTPS_PROXY", overProxy}, // unset, it follows GLOBAL_AGENT_HTTP_PROXY
	{"GLOBAL_AGENT_NO_PROXY", overEmpty},
	{"PERL_LWP_ENV_PROXY", one}, // Perl's LWP, likewise
	{"MOJO_PROXY", one},         // Perl's Mojolicious, likewise
	{"grpc_proxy", overProxy},   // gRPC prefers it to https_proxy
	{"no_grpc_proxy", overEmpty},
	{"PIP_PROXY", proxyURL}, // pip, cargo and npm prefer what their own files say
	{"CARGO_HTTP_PROXY", proxyURL},
	{"npm_config_proxy", proxyURL},
	{"npm_config_https_proxy", proxyURL},
	{"npm_config_noproxy", overEmpty},
	{"NPM_CONFIG_PROXY", overProxy}, // npm knows its variables in either case
	{"NPM_CONFIG_HTTPS_PROXY", overProxy},
	{"NPM_CONFIG_NOPROXY", overEmpty},
	{"YARN_HTTP_PROXY", overProxy}, // Yarn from version 2 on prefers its own; unasked-for ones may stop it
	{"YARN_HTTPS_PROXY", overProxy},

	{"SSL_CERT_FILE", bundle},                      // OpenSSL, Go on Unix, Python's ssl and httpx, Ruby, rustls, .NET
	{"NIX_SSL_CERT_FILE", overBundle},              // Nix's OpenSSL prefers it to SSL_CERT_FILE
	{"CURL_CA_BUNDLE", bundle},                     // curl with any TLS library; R
	{"REQUESTS_CA_BUNDLE", bundle},                 // Python's requests carries roots of its own
	{"HTTPLIB2_CA_CERTS", bundle},                  // Python's httplib2, likewise
	{"WEBSOCKET_CLIENT_CA_BUNDLE", bundle},         // Python's websocket-client, likewise
	{"PIP_CERT", bundle},                           // pip, whatever its configuration file says
	{"AWS_CA_BUNDLE", bundle},                      // AWS tools and SDKs carry roots of their own
	{"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", bundle}, // gcloud, likewise
	{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", bundle},   // gRPC, likewise
	{"NODE_EXTRA_CA_CERTS", bundle},                // Node, Bun, npm, Yarn: beside their own roots
	{"npm_config_cafile", bundle},                  // npm forgets NODE_EXTRA_CA_CERTS when its own files name one
	{"NPM_CONFIG_CAFILE", overBundle},
	{"YARN_HTTPS_CA_FILE_PATH", overBundle},
	{"DENO_CERT", bundle},            // Deno carries roots of its own
	{"GIT_SSL_CAINFO", bundle},       // git, whatever its configuration says
	{"CARGO_HTTP_CAINFO", bundle},    // cargo, whatever TLS library it was built with
	{"PERL_LWP_SSL_CA_FILE", bundle}, // LWP prefers Mozilla::CA to the system's roots
	{"MOJO_CA_FILE", bundle},         // Mojolicious
	{"WGETRC", wgetrc},               // wget knows no variable for roots
	{"JAVA_TOOL_OPTIONS", javaOpts},  // every JVM, however it is started, reads proxy and roots from properties
}

// ClientEnviron returns environ, as os.Environ gives it, changed so that its
// clients go through the proxy at proxyAddr (host:port) and trust what files
// hold. environ is left as it is.
func ClientEnviron(environ []string, proxyAddr string, files ClientFiles) []string {
	out := slices.Clone(environ)
	for _, v := range clientValues(environ, proxyAddr, files) {
		out = setVariable(out, v.Name, v.Value)
	}
	return out
}

// clientValues returns the variables to set over environ, in the order of the table.
func clientValues(environ []string, proxyAddr string, files ClientFiles) []Variable {
	var out []Variable
	for _, v := range clientVariables {
		old, present := lookup(environ, v.name)
		value, set := v.content.value(old, present, proxyAddr, files)
		if set {
			out = append(out, Variable{v.name, value})
		}
	}
	return out
}

// value returns what a variable is set to, given what it held; set is false
// when it is to be left alone.
func (c content) value(old string, present bool, proxyAddr string, files ClientFiles) (value string, set bool) {
	switch c {
	case proxyURL:
		return "http://" + proxyAddr, true
	case overProxy:
		return "http://" + proxyAddr, present
	case nothing:
		return "", true
	case overEmpty:
		return "", present
	case one:
		return "1", true
	case bundle:
		return files.Bundle, files.Bundle != ""
	case overBundle:
		return files.Bundle, files.Bundle != "" && present
	case wgetrc:
		return files.Wgetrc, files.Wgetrc != ""
	default:
		return javaOptions(old, proxyAddr, files.TrustStore), true
	}
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
		"-Dhttp.nonProxyHosts=", // empty, not absent: else loopback and more go round
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

// lookup returns the value that a program started with environ sees: that of
// the last entry of the name.
func lookup(environ []string, name string) (value string, present bool) {
	for _, entry := range slices.Backward(environ) {
		if n, v, ok := strings.Cut(entry, "="); ok && n == name {
			return v, true
		}
	}
	return "", false
}

// setVariable replaces every entry of the name by one.
func setVariable(environ []string, name, value string) []string {
	environ = slices.DeleteFunc(environ, func(entry string) bool {
		n, _, _ := strings.Cut(entry, "=")
		return n == name
	})
	return append(environ, name+"="+value)
}
