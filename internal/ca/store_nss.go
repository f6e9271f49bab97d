package ca

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
)

// nssPlaces are where browsers keep NSS databases, under the home directory.
var nssPlaces = []struct{ browser, pattern string }{
	{"Chrome, Chromium", ".pki/nssdb"},
	{"Chromium", "snap/chromium/current/.pki/nssdb"},
	{"Firefox", ".mozilla/firefox/*"},
	{"Firefox", ".config/mozilla/firefox/*"},
	{"Firefox", "snap/firefox/common/.mozilla/firefox/*"},
	{"Firefox", ".var/app/org.mozilla.firefox/.mozilla/firefox/*"},
	{"Firefox", "Library/Application Support/Firefox/Profiles/*"},
	{"Thunderbird", ".thunderbird/*"},
}

// nssStores returns the user's NSS databases.
func (m Machine) nssStores() []Store {
	if m.home == "" {
		return nil
	}
	var stores []Store
	for _, place := range nssPlaces {
		files, _ := filepath.Glob(filepath.Join(globQuote(m.home), place.pattern, "cert9.db")) // the patterns are well-formed
		for _, file := range files {
			stores = append(stores, m.nssStore(place.browser, filepath.Dir(file)))
		}
	}
	return stores
}

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
			block, _ := pem.Decode(out)
			return block != nil && bytes.Equal(block.Bytes, c.Raw), nil
		},
		add: func(c *x509.Certificate, file string) [][]string {
			return [][]string{{"certutil", "-A", "-d", db, "-t", "C,,", "-n", alias(c), "-i", file}}
		},
		remove: func(c *x509.Certificate, _ string) [][]string {
			return [][]string{{"certutil", "-D", "-d", db, "-n", alias(c)}}
		},
	}
}

// globQuote makes a path match itself alone.
func globQuote(path string) string {
	var out []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[':
			out = append(out, '[', path[i], ']')
		default:
			out = append(out, path[i])
		}
	}
	return string(out)
}
