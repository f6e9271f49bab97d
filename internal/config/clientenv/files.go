package clientenv

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // client.php, client.R
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heed/internal/config"
	"heed/internal/output/console"
	"heed/internal/trust/ca"
)

// The files for clients are in stateDir/clients, in one directory per content, so
// that runs at the same time with different roots do not
// disturb each other and those with the same roots share the files.
const (
	foundSuffix   = "-found"    // of a directory that holds a foundName
	foundName     = "found.pem" // the CAs that were found in the environment
	bundleName    = "bundle.pem"
	storeName     = "truststore.p12"
	wgetrcName    = "wgetrc"
	phpName       = "php" // a directory
	rProfileName  = "Rprofile"
	maxClientAge  = 90 * 24 * time.Hour // directories that were not used for so long are removed
	clientDirMode = 0o755               // its content is public; the mode of stateDir restricts access
)

func clientsDir(stateDir string) string { return filepath.Join(stateDir, "clients") }

// MakeClientFiles writes the files that a client's environment points to: the
// system's roots, those found, and the authority's, for several families of
// clients. Files of the same content are made once. Those unused for maxClientAge at
// now are removed.
func MakeClientFiles(stateDir string, authority *ca.Authority, found Found, now time.Time) (ClientFiles, error) {
	wget := readWgetrc(found.Wgetrc)
	extra, paths, _ := ca.ReadCerts(append(slices.Clone(found.CAs), wget.cas...))
	roots, err := ca.Bundle(authority, paths)
	if err != nil {
		return ClientFiles{}, err
	}
	sum := sha256.Sum256(bytes.Join([][]byte{roots, extra, wget.kept, clientPHP, clientR}, []byte{0}))
	dir := filepath.Join(clientsDir(stateDir), hex.EncodeToString(sum[:8]))
	if len(extra) > 0 {
		dir += foundSuffix
	}
	files := ClientFiles{
		Bundle:     filepath.Join(dir, bundleName),
		TrustStore: filepath.Join(dir, storeName),
		Wgetrc:     filepath.Join(dir, wgetrcName),
		PHP:        phpDir(dir),
		RProfile:   filepath.Join(dir, rProfileName),
	}
	if err := os.Chtimes(files.Bundle, now, now); err == nil {
		return files, nil // the bundle is written last: the others are there
	}
	pruneClients(clientsDir(stateDir), now)
	if err := os.MkdirAll(dir, clientDirMode); err != nil {
		return ClientFiles{}, err
	}
	err = cmp.Or(
		ca.WriteJavaTrustStore(files.TrustStore, authority, paths),
		ca.WriteFile(files.Wgetrc, wget.with(files.Bundle), 0o600), // it may hold the user's passwords
		ca.WriteFile(filepath.Join(dir, foundName), extra, 0o644),
		errors.Join(ca.WriteFile(files.RProfile, clientR, 0o644), writePHP(files)),
	)
	if err != nil {
		return ClientFiles{}, err
	}
	return files, ca.WriteFile(files.Bundle, roots, 0o644)
}

// Programs that the files for clients contain.
var (
	//go:embed client.php
	clientPHP []byte
	//go:embed client.R
	clientR []byte
)

// phpDir returns the directory of PHP's ini files below dir; empty when its path has
// characters that PHP_INI_SCAN_DIR or an ini file cannot contain.
func phpDir(dir string) string {
	if strings.ContainsAny(dir, "'\n"+string(filepath.ListSeparator)) {
		return ""
	}
	return filepath.Join(dir, phpName)
}

// writePHP writes the ini file that names the bundle and the program that PHP runs first.
func writePHP(files ClientFiles) error {
	if files.PHP == "" {
		return nil
	}
	program := filepath.Join(files.PHP, "heed.php")
	ini := fmt.Sprintf("; Written by heed\ncurl.cainfo = '%s'\nopenssl.cafile = '%[1]s'\nauto_prepend_file = '%s'\n", files.Bundle, program)
	if err := os.MkdirAll(files.PHP, clientDirMode); err != nil {
		return err
	}
	return errors.Join(ca.WriteFile(program, clientPHP, 0o644), ca.WriteFile(filepath.Join(files.PHP, "heed.ini"), []byte(ini), 0o644))
}

// pruneClients removes the directories whose bundle was not used for maxClientAge at
// now. Errors are ignored: the next call tries again.
func pruneClients(clients string, now time.Time) {
	dirs, _ := os.ReadDir(clients)
	for _, d := range dirs {
		dir := filepath.Join(clients, d.Name())
		info, err := os.Stat(filepath.Join(dir, bundleName))
		if errors.Is(err, fs.ErrNotExist) { // half made; perhaps at this moment
			info, err = os.Stat(dir)
		}
		if err == nil && now.Sub(info.ModTime()) > maxClientAge {
			_ = os.RemoveAll(dir)
		}
	}
}

// Found contains the proxies and CAs of an environment before heed changes it. The
// CAs stay trusted, by the client and by heed; Remarks names the rest.
type Found struct {
	Proxies []Variable // proxies that heed does not use without --upstream env; passwords removed
	Bypass  []Variable // lists of hosts that would bypass a proxy
	CAs     []string   // absolute paths of files and directories of CAs, each once
	Java    []Variable // JVM options that compete with ours
	Wgetrc  string     // the user's settings of wget; the file need not exist
}

// furtherCAs are variables that heed leaves alone and whose CAs it trusts.
var furtherCAs = []string{"SSL_CERT_DIR", "GIT_SSL_CAPATH", "PERL_LWP_SSL_CA_PATH", "HTTPS_CA_FILE", "HTTPS_CA_DIR"}

// javaNames are the variables a JVM takes options from; the later ones win.
var javaNames = []string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}

// Inspect returns the findings in environ, which is as os.Environ returns it. Values
// that heed set are left out: its addresses own (host:port), and files for clients
// in stateDir.
func Inspect(environ []string, stateDir string, own ...string) Found {
	var f Found
	f.Proxies = each(environ, NamesOf(ProxyURL), func(value string) bool { return !isOwn(value, own) })
	for i := range f.Proxies {
		f.Proxies[i].Value = config.RedactURL(f.Proxies[i].Value)
	}
	f.Bypass = each(environ, NamesOf(Empty, NoHost), func(value string) bool { return value != noSuchHost })
	for _, v := range each(environ, append(NamesOf(Bundle), furtherCAs...), func(string) bool { return true }) {
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
	f.Wgetrc, _ = console.Lookup(environ, "WGETRC")
	if home, _ := console.Lookup(environ, "HOME"); f.Wgetrc == "" && home != "" {
		f.Wgetrc = filepath.Join(home, ".wgetrc")
	}
	return f
}

// Certs returns the certificates of all CAs found, as PEM, each once; nil when
// there are none.
func (f Found) Certs() []byte {
	certs, _, _ := ca.ReadCerts(f.CAs)
	return certs
}

// each returns the variables of these names whose value is not empty and wanted.
func each(environ, names []string, wanted func(value string) bool) []Variable {
	var out []Variable
	for _, name := range names {
		if value, _ := console.Lookup(environ, name); value != "" && wanted(value) {
			out = append(out, Variable{name, value})
		}
	}
	return out
}

// NamesOf returns the client variables with one of these contents.
func NamesOf(contents ...content) []string {
	var names []string
	for _, v := range clientVariables {
		if slices.Contains(contents, v.content&^over) {
			names = append(names, v.name)
		}
	}
	return names
}

// isOwn reports whether the value of a proxy variable is one of heed's addresses.
func isOwn(value string, own []string) bool {
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		value = u.Host
	}
	return slices.Contains(own, value)
}

// foundFile makes a path from the environment absolute. For a bundle that heed made
// it returns the file of the CAs that were found then; empty when there were none.
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
		value, _ := console.Lookup(environ, name)
		for _, option := range splitOptions(value) {
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

// Remarks returns one sentence for each finding that a person should know of.
func (f Found) Remarks() []string {
	var out []string
	if len(f.Proxies) > 0 {
		out = append(out, fmt.Sprintf("the proxy found in the environment is not used (%s); to use it, start heed with --upstream env", List(f.Proxies)))
	}
	if len(f.Bypass) > 0 {
		out = append(out, fmt.Sprintf("hosts excepted from proxies are judged all the same (%s)", List(f.Bypass)))
	}
	_, _, errs := ca.ReadCerts(f.CAs)
	for _, err := range errs {
		out = append(out, fmt.Sprintf("a CA that the environment names is not trusted: %v", err))
	}
	for _, v := range f.Java {
		if v.Name == "JAVA_TOOL_OPTIONS" {
			out = append(out, fmt.Sprintf("%s in %s is overridden by heed's", v.Value, v.Name))
		} else {
			out = append(out, fmt.Sprintf("%s in %s overrides heed's; remove it, or Java bypasses heed", v.Value, v.Name))
		}
	}
	return out
}

// List returns variables as NAME=value, separated by commas.
func List(variables []Variable) string {
	var out []string
	for _, v := range variables {
		out = append(out, v.Name+"="+console.Printable(v.Value))
	}
	return strings.Join(out, ", ")
}
