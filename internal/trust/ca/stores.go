package ca

import (
	"bytes"
	"crypto/sha1"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"software.sslmate.com/src/go-pkcs12"

	"heed/internal/base/safetext"
)

// anchorPlace is where a family of Linux systems takes local roots from, and
// the commands that bring an addition and a removal to the programs.
type anchorPlace struct {
	family, dir, suffix string
	added, removed      []string
}

// anchorPlaces are the known families; the first directory that exists is the
// system's. Without --fresh, Debian leaves links to what was removed.
var anchorPlaces = []anchorPlace{
	{"Fedora, RHEL", "/etc/pki/ca-trust/source/anchors", ".pem",
		[]string{"update-ca-trust", "extract"}, []string{"update-ca-trust", "extract"}},
	{"Debian, Ubuntu, Alpine", "/usr/local/share/ca-certificates", ".crt",
		[]string{"update-ca-certificates"}, []string{"update-ca-certificates", "--fresh"}},
	{"Arch", "/etc/ca-certificates/trust-source/anchors", ".crt",
		[]string{"trust", "extract-compat"}, []string{"trust", "extract-compat"}},
	{"SUSE", "/etc/pki/trust/anchors", ".pem",
		[]string{"update-ca-certificates"}, []string{"update-ca-certificates", "--fresh"}},
}

// systemStores returns the store of the operating system, none when it is of
// an unknown kind.
func (m Machine) systemStores() []Store {
	switch m.goos {
	case "darwin":
		return []Store{m.keychain()}
	case "windows":
		return []Store{m.windows()}
	}
	for _, p := range anchorPlaces {
		if info, err := os.Stat(p.dir); err == nil && info.IsDir() {
			return []Store{m.anchors(p)}
		}
	}
	return nil
}

func (m Machine) anchors(p anchorPlace) Store {
	place := func(c *x509.Certificate) string { return filepath.Join(p.dir, alias(c)+p.suffix) }
	return Store{
		Name: fmt.Sprintf("the system's store %s (%s; curl, wget, Python's ssl, Go)", p.dir, p.family),
		tool: p.added[0], getTool: "install the package ca-certificates", root: m.euid != 0, run: m.run,
		has: func(c *x509.Certificate) (bool, error) {
			data, err := readFile(place(c))
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			return isPEMOf(data, c), err
		},
		add: func(c *x509.Certificate, file string) [][]string {
			return [][]string{{"install", "-m", "0644", file, place(c)}, p.added}
		},
		remove: func(c *x509.Certificate, _ string) [][]string {
			return [][]string{{"rm", "-f", place(c)}, p.removed}
		},
	}
}

const systemKeychain = "/Library/Keychains/System.keychain"

// keychain is the store of macOS.
func (m Machine) keychain() Store {
	return Store{
		Name: "the system's keychain (Safari, Chrome, curl)",
		tool: "security", root: m.euid != 0, run: m.run,
		has: func(c *x509.Certificate) (bool, error) {
			out, err := m.run("security", "find-certificate", "-a", "-Z", systemKeychain)
			if err != nil {
				return false, fmt.Errorf("security: %w: %s", err, lastLine(out))
			}
			return strings.Contains(string(out), sha1Of(c)), nil
		},
		add: func(_ *x509.Certificate, file string) [][]string {
			return [][]string{{"security", "add-trusted-cert", "-d", "-r", "trustRoot", "-k", systemKeychain, file}}
		},
		remove: func(c *x509.Certificate, _ string) [][]string {
			return [][]string{{"security", "delete-certificate", "-Z", sha1Of(c), "-t", systemKeychain}}
		},
	}
}

// windows is the user's store of Windows. The system asks the person itself.
func (m Machine) windows() Store {
	return Store{
		Name: "the user's root store of Windows (Edge, Chrome, Firefox, curl)",
		tool: "certutil", run: m.run,
		has: func(c *x509.Certificate) (bool, error) {
			_, err := m.run("certutil", "-user", "-store", "Root", sha1Of(c))
			return err == nil, nil // it fails where there is no such certificate
		},
		add: func(_ *x509.Certificate, file string) [][]string {
			return [][]string{{"certutil", "-user", "-addstore", "Root", file}}
		},
		remove: func(c *x509.Certificate, _ string) [][]string {
			return [][]string{{"certutil", "-user", "-delstore", "Root", sha1Of(c)}}
		},
	}
}

// alias is the name of a root where a store wants one, its own for each root.
func alias(c *x509.Certificate) string { return "heed-ca-" + short(c) }

// sha1Of is what macOS and Windows find a certificate by. It guards nothing.
func sha1Of(c *x509.Certificate) string { return fmt.Sprintf("%X", sha1.Sum(c.Raw)) }

// nssStore returns the NSS database in a directory.
func (m Machine) nssStore(browser, dir string) Store {
	db := "sql:" + dir
	getTool := "sudo apt-get install libnss3-tools (Fedora: nss-tools, Arch: nss)"
	if m.goos == "darwin" {
		getTool = "brew install nss"
	}
	return Store{
		Name: fmt.Sprintf("the NSS database %s (%s)", dir, browser),
		tool: "certutil", getTool: getTool, run: m.run,
		has: func(c *x509.Certificate) (bool, error) {
			out, err := m.run("certutil", "-L", "-d", db, "-n", alias(c), "-a")
			if err != nil {
				return false, nil // it fails where there is no such certificate
			}
			return isPEMOf(out, c), nil
		},
		add: func(c *x509.Certificate, file string) [][]string {
			return [][]string{{"certutil", "-A", "-d", db, "-t", "C,,", "-n", alias(c), "-i", file}}
		},
		remove: func(c *x509.Certificate, _ string) [][]string {
			return [][]string{{"certutil", "-D", "-d", db, "-n", alias(c)}}
		},
	}
}

// WriteJavaTrustStore writes what Bundle returns to path, whole or not at all,
// for everyone to read (0644), as the PKCS #12 trust store that Java reads when
// -Djavax.net.ssl.trustStore names it. It holds nothing secret and has no
// password: Java reads it with any javax.net.ssl.trustStorePassword, or without.
//
// Certificates Java could not use, because they cannot be parsed, are left out.
func WriteJavaTrustStore(path string, a *Authority, extra []string) error {
	all, err := bundle(a, extra)
	if err != nil {
		return err
	}
	var entries []pkcs12.TrustStoreEntry
	for _, der := range all {
		if c, err := x509.ParseCertificate(der); err == nil {
			// Java keeps one certificate per alias.
			alias := fmt.Sprintf("%s [%s]", safetext.Printable(name(c), maxName), short(c))
			entries = append(entries, pkcs12.TrustStoreEntry{Cert: c, FriendlyName: alias})
		}
	}
	store, err := pkcs12.Passwordless.EncodeTrustStoreEntries(entries, "")
	if err != nil {
		return fmt.Errorf("the trust store for Java cannot be made: %w", err)
	}
	return WriteFile(path, store, 0o644)
}

// javaPassword is that of every cacerts file as Java ships it.
const javaPassword = "changeit"

// javaStores returns the cacerts file of the Java in JAVA_HOME, or else of the
// keytool in PATH; none where there is no Java.
func (m Machine) javaStores() []Store {
	home := m.getenv("JAVA_HOME")
	if home == "" {
		keytool, err := m.look("keytool")
		if err != nil {
			return nil
		}
		if keytool, err = filepath.EvalSymlinks(keytool); err != nil {
			return nil
		}
		home = filepath.Dir(filepath.Dir(keytool))
	}
	for _, place := range []string{"lib/security/cacerts", "jre/lib/security/cacerts"} {
		file := filepath.Join(home, filepath.FromSlash(place))
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return []Store{m.javaStore(filepath.Join(home, "bin", "keytool"), file)}
		}
	}
	return nil
}

func (m Machine) javaStore(keytool, file string) Store {
	store := []string{"-keystore", file, "-storepass", javaPassword}
	command := func(args ...string) []string { return append(append([]string{keytool}, args...), store...) }
	find := func(c *x509.Certificate) (string, error) {
		// keytool speaks the user's language, but for this.
		args := command("-list", "-rfc", "-J-Duser.language=en")
		out, err := m.run(args[0], args[1:]...)
		if err != nil {
			return "", fmt.Errorf("keytool: %w: %s", err, lastLine(out))
		}
		return javaAlias(out, c), nil
	}
	return Store{
		Name: fmt.Sprintf("the Java trust store %s", file),
		tool: keytool, getTool: "install a Java with its keytool (Debian: default-jre-headless)", root: !writable(file), run: m.run,
		has: func(c *x509.Certificate) (bool, error) {
			name, err := find(c)
			return name != "", err
		},
		add: func(c *x509.Certificate, pem string) [][]string {
			return [][]string{command("-importcert", "-noprompt", "-trustcacerts", "-alias", alias(c), "-file", pem)}
		},
		remove: func(c *x509.Certificate, _ string) [][]string {
			// Debian copies the system's roots here under names of its own and
			// does not take them back.
			name, err := find(c)
			if err != nil || name == "" {
				name = alias(c)
			}
			return [][]string{command("-delete", "-alias", name)}
		},
	}
}

// javaAlias finds the name a certificate has in what keytool -list -rfc
// printed; empty when it is not there.
func javaAlias(listing []byte, c *x509.Certificate) string {
	for _, entry := range bytes.Split(listing, []byte("\nAlias name: "))[1:] {
		if name, rest, _ := bytes.Cut(entry, []byte("\n")); isPEMOf(rest, c) {
			return string(bytes.TrimSpace(name))
		}
	}
	return ""
}

// writable reports whether this user may write to an existing file.
func writable(file string) bool {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
