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

// rootSet is certificates in the order they came, each once.
type rootSet struct {
	der  [][]byte
	seen map[[sha256.Size]byte]bool
}

func (s *rootSet) add(ders ...[]byte) {
	if s.seen == nil {
		s.seen = make(map[[sha256.Size]byte]bool)
	}
	for _, der := range ders {
		if sum := sha256.Sum256(der); !s.seen[sum] {
			s.seen[sum] = true
			s.der = append(s.der, der)
		}
	}
}

func (s *rootSet) pem() (text []byte) {
	for _, der := range s.der {
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
	set, err := bundle(a, extra)
	if err != nil {
		return nil, err
	}
	return set.pem(), nil
}

// ReadCerts returns, as PEM, the certificates of files and directories, each once and
// without those that cannot be parsed. It also returns the paths that could be read, and
// an error for each of the others.
func ReadCerts(paths []string) (certs []byte, good []string, errs []error) {
	all := new(rootSet)
	for _, path := range paths {
		found := new(rootSet)
		err := addPath(found, path)
		n := len(found.der)
		found.der = slices.DeleteFunc(found.der, func(der []byte) bool {
			_, err := x509.ParseCertificate(der)
			return err != nil
		})
		if n > 0 && len(found.der) == 0 {
			err = fmt.Errorf("the certificates in %s are damaged: restore the file from a backup", path)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		good = append(good, path)
		all.add(found.der...)
	}
	return all.pem(), good, errs
}

func bundle(a *Authority, extra []string) (*rootSet, error) {
	set := new(rootSet)
	if err := addSystem(set); err != nil {
		return nil, err
	}
	for _, path := range extra {
		if err := addPath(set, path); err != nil {
			return nil, err
		}
	}
	set.add(certificates(a.CertPEM())...)
	return set, nil
}

// CheckSystem returns an error when SSL_CERT_FILE names no file with certificates.
func CheckSystem() error {
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		if err := addPath(new(rootSet), file); err != nil {
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
	set := new(rootSet)
	for _, path := range extra {
		if err := addPath(set, path); err != nil {
			return nil, err
		}
	}
	for _, der := range set.der {
		if c, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(c)
		}
	}
	return pool, nil
}

// addSystem adds the system's roots. The directories are read where no file
// was found, or when the environment names them: beside the file they hold
// certificates that the user did not choose to trust, such as a test server's own.
func addSystem(set *rootSet) error {
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		if err := addPath(set, file); err != nil {
			return fmt.Errorf("SSL_CERT_FILE: %w", err)
		}
	} else {
		addFirst(set, systemFiles)
	}
	var dirs []string
	if list := os.Getenv("SSL_CERT_DIR"); list != "" {
		dirs = filepath.SplitList(list)
	} else if len(set.der) == 0 {
		dirs = systemDirs
	}
	for _, dir := range dirs {
		_ = addDir(set, dir) // the list names places that need not exist
	}
	if len(set.der) == 0 {
		return errors.New("no file with the system's trusted roots was found: install them (Debian: ca-certificates), or name a PEM file with SSL_CERT_FILE")
	}
	return nil
}

// addFirst adds the certificates of the first of files that has any.
func addFirst(set *rootSet, files []string) {
	for _, file := range files {
		if data, err := readFile(file); err == nil {
			if set.add(certificates(data)...); len(set.der) > 0 {
				return
			}
		}
	}
}

// addPath adds the certificates of a file or of a directory's files. None is
// an error: a client that was promised a root would fail later and elsewhere.
func addPath(set *rootSet, path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if err := addDir(set, path); err != nil {
			return unreadable("directory of certificates", path, err)
		}
		return nil
	}
	data, err := readFile(path)
	if err != nil {
		return unreadable("file of certificates", path, err)
	}
	found := certificates(data)
	if len(found) == 0 {
		return fmt.Errorf("no certificate in %s: name a PEM file with certificates", path)
	}
	set.add(found...)
	return nil
}

// addDir adds the certificates of a directory's files, in the order of their
// names. Links into the directory itself are names by hash: the same again.
func addDir(set *rootSet, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if f.Type()&os.ModeSymlink != 0 {
			if target, err := os.Readlink(path); err == nil && !strings.Contains(target, "/") {
				continue
			}
		}
		if data, err := readFile(path); err == nil {
			set.add(certificates(data)...)
		}
	}
	return nil
}
