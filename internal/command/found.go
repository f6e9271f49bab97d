package command

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Found is what an environment says of proxies and CAs before heed changes
// it. Nothing of it is dropped silently: the CAs go on being trusted, by the
// client and by heed, and the rest is named by Remarks.
type Found struct {
	Proxies []Variable // proxies that heed does not use unless told to; passwords taken out
	Bypass  []Variable // lists of hosts that would go round a proxy
	CAs     []string   // absolute paths of files and directories of CAs, each once
	Java    []Variable // JVM options that compete with ours
	Wgetrc  string     // the user's settings of wget; the file need not exist
}

// furtherCAs are variables that heed leaves alone and whose CAs it trusts.
var furtherCAs = []string{"SSL_CERT_DIR", "GIT_SSL_CAPATH", "PERL_LWP_SSL_CA_PATH", "HTTPS_CA_FILE", "HTTPS_CA_DIR"}

// javaNames are the variables a JVM takes options from; the later ones win.
var javaNames = []string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}

// Inspect looks through environ, as os.Environ gives it. What heed itself put
// there is no finding: its addresses own (host:port), and files it made for
// clients in stateDir.
func Inspect(environ []string, stateDir string, own ...string) Found {
	var f Found
	f.Proxies = each(environ, namesOf(proxyURL, overProxy), func(value string) bool { return !isOwn(value, own) })
	for i := range f.Proxies {
		f.Proxies[i].Value = redactURL(f.Proxies[i].Value)
	}
	f.Bypass = each(environ, namesOf(nothing, overEmpty), func(string) bool { return true })
	for _, v := range each(environ, append(namesOf(bundle, overBundle), furtherCAs...), func(string) bool { return true }) {
		paths := []string{v.Value}
		if v.Name == "SSL_CERT_DIR" { // the one that OpenSSL and Go take as a list
			paths = filepath.SplitList(v.Value)
		}
		for _, path := range paths {
			if path = foundFile(stateDir, path); path != "" && !slices.Contains(f.CAs, path) {
				f.CAs = append(f.CAs, path)
			}
		}
	}
	f.Java = javaRivals(environ, own, stateDir)
	f.Wgetrc, _ = lookup(environ, "WGETRC")
	if home, _ := lookup(environ, "HOME"); f.Wgetrc == "" && home != "" {
		f.Wgetrc = filepath.Join(home, ".wgetrc")
	}
	return f
}

// Certs returns the certificates of all CAs found, as PEM, each once; nil when
// there are none.
func (f Found) Certs() []byte {
	certs, _ := readCAs(f.CAs)
	return certs
}

// each returns the variables of these names that hold something wanted.
func each(environ, names []string, wanted func(value string) bool) []Variable {
	var out []Variable
	for _, name := range names {
		if value, _ := lookup(environ, name); value != "" && wanted(value) {
			out = append(out, Variable{name, value})
		}
	}
	return out
}

// namesOf returns the client variables with one of these contents.
func namesOf(contents ...content) []string {
	var names []string
	for _, v := range clientVariables {
		if slices.Contains(contents, v.content) {
			names = append(names, v.name)
		}
	}
	return names
}

// isOwn reports whether the value of a proxy variable leads to heed.
func isOwn(value string, own []string) bool {
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		value = u.Host
	}
	return slices.Contains(own, value)
}

// foundFile makes a path from the environment absolute. For a bundle that
// heed made it is the file of what had been found then, if anything had.
func foundFile(stateDir, path string) string {
	abs, err := filepath.Abs(path)
	if path == "" || err != nil {
		return ""
	}
	dir := filepath.Dir(abs)
	switch {
	case filepath.Dir(dir) != clientsDir(stateDir):
		return abs
	case strings.HasSuffix(dir, foundSuffix):
		return filepath.Join(dir, foundName)
	default:
		return ""
	}
}

// javaRivals returns the JVM options, found in the environment, that set a
// proxy or a trust store other than ours.
func javaRivals(environ, own []string, stateDir string) []Variable {
	rivals := map[string]bool{
		"-Dhttp.proxyHost": true, "-Dhttps.proxyHost": true, "-Dhttp.nonProxyHosts": true,
		"-DsocksProxyHost": true, "-Djavax.net.ssl.trustStore": true,
	}
	var out []Variable
	for _, name := range javaNames {
		value, _ := lookup(environ, name)
		options := splitOptions(value)
		for _, option := range options {
			_, set, _ := strings.Cut(option, "=")
			ours := set == "" || strings.HasPrefix(set, clientsDir(stateDir)) ||
				slices.ContainsFunc(own, func(addr string) bool { return strings.HasPrefix(addr, set+":") })
			if rivals[property(option)] && !ours {
				out = append(out, Variable{name, option})
			}
		}
	}
	return out
}

// Remarks says, in a sentence each, what was found that a person should know.
func (f Found) Remarks() []string {
	var out []string
	if len(f.Proxies) > 0 {
		out = append(out, fmt.Sprintf("the proxy found in the environment is not used (%s); to go through it, start heed with --upstream env", list(f.Proxies)))
	}
	if len(f.Bypass) > 0 {
		out = append(out, fmt.Sprintf("hosts excepted from proxies are judged all the same (%s)", list(f.Bypass)))
	}
	_, errs := readCAs(f.CAs)
	for _, err := range errs {
		out = append(out, fmt.Sprintf("a CA that the environment names is not trusted: %v", err))
	}
	for _, v := range f.Java {
		if v.Name == "JAVA_TOOL_OPTIONS" {
			out = append(out, fmt.Sprintf("%s in %s gives way to heed's", v.Value, v.Name))
		} else {
			out = append(out, fmt.Sprintf("%s in %s wins over heed's; take it out, or Java goes round heed", v.Value, v.Name))
		}
	}
	return out
}

// list writes variables as NAME=value, those of equal value together.
func list(variables []Variable) string {
	var out []string
	for _, v := range variables {
		out = append(out, v.Name+"="+printable(v.Value))
	}
	return strings.Join(out, ", ")
}
