package command

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// readCAs returns the certificates of files and directories, each once.
// What cannot be read is left out: errs says why.
func readCAs(paths []string) (certs []byte, errs []error) {
	seen := map[string]bool{}
	add := func(path string) error {
		text, err := readCerts(path)
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			if !seen[string(block.Bytes)] {
				seen[string(block.Bytes)] = true
				certs = append(certs, pem.EncodeToMemory(block)...)
			}
		}
		return err
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("the CA file cannot be read: %w", err))
		case info.IsDir():
			errs = append(errs, eachFile(path, add))
		default:
			errs = append(errs, add(path))
		}
	}
	return certs, clean(errs)
}

// eachFile calls add for every file of a directory. Files that hold no
// certificate belong there (README, revocation lists) and are no error.
func eachFile(dir string, add func(path string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the directory of CAs cannot be read: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if err := add(path); errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// clean drops the nil errors.
func clean(errs []error) []error {
	var out []error
	for _, err := range errs {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}
