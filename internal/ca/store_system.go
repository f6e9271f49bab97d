package ca

import (
	"bytes"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
			block, _ := pem.Decode(data)
			return block != nil && bytes.Equal(block.Bytes, c.Raw), err
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
