package ca

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemFiles are the places of the system's roots in one file; the first that
// exists is taken.
var systemFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Gentoo, Alpine
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL up to 6
	"/etc/ssl/ca-bundle.pem",                            // SUSE
	"/etc/pki/tls/cacert.pem",                           // OpenELEC
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL from 7
	"/etc/ssl/cert.pem",                                 // Alpine, macOS, OpenBSD
	"/usr/local/etc/ssl/cert.pem",                       // FreeBSD
	"/usr/local/share/certs/ca-root-nss.crt",            // FreeBSD before 12
}

// furtherFiles are other places from which TLS libraries read the system's roots.
var furtherFiles = []string{
	"/etc/pki/tls/cert.pem",                                           // Fedora: OpenSSL's default
	"/var/lib/ca-certificates/ca-bundle.pem",                          // openSUSE
	"/etc/ssl/certs/ca-bundle.crt",                                    // NixOS, SUSE
	"/etc/ca-certificates/extracted/tls-ca-bundle.pem",                // Arch
	"/usr/lib/ssl/cert.pem", "/usr/lib/ssl/certs/ca-certificates.crt", // Debian: OpenSSL's default
	"/usr/share/ssl/certs/ca-bundle.crt", "/usr/local/share/certs/ca-bundle.crt",
}

// SystemFiles returns the places from which the TLS libraries of Unix systems read the system's
// roots in one file, whether they exist here or not.
func SystemFiles() []string { return slices.Concat(systemFiles, furtherFiles) }

// systemDirs are the places of the system's roots in files of their own.
var systemDirs = []string{"/etc/ssl/certs", "/etc/pki/tls/certs"}

// distinct returns certificates in the order they came, each once.
func distinct(all [][]byte) [][]byte {
	seen := make(map[[sha256.Size]byte]bool)
	return slices.DeleteFunc(all, func(der []byte) bool {
		sum := sha256.Sum256(der)
		before := seen[sum]
		seen[sum] = true
		return before
	})
}

func pemOfAll(all [][]byte) (text []byte) {
	for _, der := range all {
		text = append(text, pemOf(certificateBlock, der)...)
	}
	return text
}

// Bundle returns, as PEM, what a client behind heed has to trust: the system's
// roots, the certificates in the extra files or directories, and the
// authority's (CertPEM). Each certificate is contained once, in an order that
// stays.
//
// The system's roots are found as OpenSSL and Go find them: SSL_CERT_FILE and
// SSL_CERT_DIR name other places when set. It is an error when the
// system has no such file, and when SSL_CERT_FILE or one of extra cannot be
// read or holds no certificate.
func Bundle(a *Authority, extra []string) ([]byte, error) {
	all, err := bundle(a, extra)
	return pemOfAll(all), err
}

// ReadCerts returns, as PEM, the certificates of files and directories, each once and
// without those that cannot be parsed. It also returns the paths that could be read, and
// an error for each of the others.
func ReadCerts(paths []string) (certs []byte, good []string, errs []error) {
	var all [][]byte
	for _, path := range paths {
		found, err := readPath(path)
		sound := slices.DeleteFunc(slices.Clone(found), func(der []byte) bool {
			_, err := x509.ParseCertificate(der)
			return err != nil
		})
		if len(found) > 0 && len(sound) == 0 {
			err = fmt.Errorf("the certificates in %s are damaged: restore the file from a backup", path)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		good = append(good, path)
		all = append(all, sound...)
	}
	return pemOfAll(distinct(all)), good, errs
}

func bundle(a *Authority, extra []string) ([][]byte, error) {
	system, err := systemRoots()
	if err != nil {
		return nil, err
	}
	more, err := readPaths(extra)
	if err != nil {
		return nil, err
	}
	return distinct(slices.Concat(system, more, certificates(a.CertPEM()))), nil
}

// CheckSystem returns an error when SSL_CERT_FILE names no file with certificates.
func CheckSystem() error {
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		if _, err := readPath(file); err != nil {
			return fmt.Errorf("SSL_CERT_FILE: %w", err)
		}
	}
	return nil
}

// SystemPool returns what sites' certificates are verified against: the
// system's roots, SSL_CERT_FILE and SSL_CERT_DIR honoured, and the
// certificates in the extra files or directories. Go reads the environment's
// roots once in a process.
func SystemPool(extra ...string) (*x509.CertPool, error) {
	if err := CheckSystem(); err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("the system's trusted roots cannot be read: install them (Debian: ca-certificates), or name a file with SSL_CERT_FILE (%w)", err)
	}
	more, err := readPaths(extra)
	if err != nil {
		return nil, err
	}
	for _, der := range more {
		if c, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(c)
		}
	}
	return pool, nil
}

// systemRoots returns the system's roots. The directories are read where no file
// was found, or when the environment names them: beside the file they hold
// certificates that the user did not choose to trust, such as a test server's own.
func systemRoots() (all [][]byte, err error) {
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		if all, err = readPath(file); err != nil {
			return nil, fmt.Errorf("SSL_CERT_FILE: %w", err)
		}
	} else {
		for i := 0; i < len(systemFiles) && len(all) == 0; i++ {
			all = readCertificates(systemFiles[i])
		}
	}
	var dirs []string
	if list := os.Getenv("SSL_CERT_DIR"); list != "" {
		dirs = filepath.SplitList(list)
	} else if len(all) == 0 {
		dirs = systemDirs
	}
	for _, dir := range dirs {
		found, _ := readDir(dir) // the list names places that need not exist
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, errors.New("no file with the system's trusted roots was found: install them (Debian: ca-certificates), or name a PEM file with SSL_CERT_FILE")
	}
	return all, nil
}

// readCertificates returns the certificates of a file; none of one that cannot be read.
func readCertificates(file string) [][]byte {
	data, _ := readFile(file)
	return certificates(data)
}

// readPaths returns what readPath does of each path.
func readPaths(paths []string) (all [][]byte, err error) {
	for _, path := range paths {
		found, err := readPath(path)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// readPath returns the certificates of a file or of a directory's files. None in a file is
// an error: a client that was promised a root would fail later and elsewhere.
func readPath(path string) ([][]byte, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		found, err := readDir(path)
		if err != nil {
			return nil, unreadable("directory of certificates", path, err)
		}
		return found, nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil, unreadable("file of certificates", path, err)
	}
	found := certificates(data)
	if len(found) == 0 {
		return nil, fmt.Errorf("no certificate in %s: name a PEM file with certificates", path)
	}
	return found, nil
}

// readDir returns the certificates of a directory's files, in the order of their
// names. Links into the directory itself are names by hash: the same again.
func readDir(dir string) (all [][]byte, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if f.Type()&os.ModeSymlink != 0 {
			if target, err := os.Readlink(path); err == nil && !strings.Contains(target, "/") {
				continue
			}
		}
		all = append(all, readCertificates(path)...)
	}
	return all, err
}
