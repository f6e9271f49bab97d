package command

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxCAFile is how many bytes of a file of CAs are read.
const maxCAFile = 16 << 20

// readCerts returns the certificates of a PEM file as PEM, without what else
// stands in it (remarks, a private key).
func readCerts(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the CA file cannot be read: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCAFile+1))
	if err != nil {
		return nil, fmt.Errorf("the CA file cannot be read: %w", err)
	}
	if len(text) > maxCAFile {
		return nil, fmt.Errorf("the CA file %s is larger than %d MiB", path, maxCAFile>>20)
	}
	var certs bytes.Buffer
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			continue // one odd certificate does not spoil a bundle; Go and OpenSSL skip it too
		}
		block.Headers = nil
		if err := pem.Encode(&certs, block); err != nil {
			return nil, err
		}
	}
	if certs.Len() == 0 {
		return nil, fmt.Errorf("the CA file %s holds no certificate in PEM form", path)
	}
	return certs.Bytes(), nil
}

// readCAs returns the certificates of files and directories as PEM, each
// once; errs says of the others why they are left out.
func readCAs(paths []string) (certs []byte, errs []error) {
	var all certSet
	for _, path := range paths {
		if err := all.addPath(path); err != nil {
			errs = append(errs, err)
		}
	}
	return all.pem, errs
}

// usable returns those of the paths that CAs can be read from, and the
// certificates there.
func usable(paths []string) (good []string, certs []byte) {
	var all certSet
	for _, path := range paths {
		if all.addPath(path) == nil {
			good = append(good, path)
		}
	}
	return good, all.pem
}

// certSet is certificates in PEM form, each once.
type certSet struct {
	pem  []byte
	seen map[string]bool
}

func (s *certSet) add(certs []byte) {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	for block, rest := pem.Decode(certs); block != nil; block, rest = pem.Decode(rest) {
		if !s.seen[string(block.Bytes)] {
			s.seen[string(block.Bytes)] = true
			s.pem = append(s.pem, pem.EncodeToMemory(block)...)
		}
	}
}

// addPath adds the certificates of a file, or of all files of a directory.
// Files of a directory that hold none belong there (README, revocation lists)
// and are no error.
func (s *certSet) addPath(path string) error {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		certs, err := readCerts(path)
		s.add(certs)
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("the directory of CAs cannot be read: %w", err)
	}
	for _, e := range entries {
		if certs, err := readCerts(filepath.Join(path, e.Name())); err == nil {
			s.add(certs)
		}
	}
	return nil
}
