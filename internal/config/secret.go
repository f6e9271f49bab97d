package config

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"heed/internal/base/ownfile"
	"heed/internal/output/console"
)

// Prefixes of a reference, which a setting that may contain a password accepts in place
// of its value.
const (
	filePrefix = "file:" // the first line of a file
	envPrefix  = "env:"  // a variable of heed's environment
)

// isReference reports whether the value of a setting is a reference to a secret.
func isReference(value string) bool {
	return strings.HasPrefix(value, filePrefix) || strings.HasPrefix(value, envPrefix)
}

// checkReference returns an error for a reference without a valid name.
func checkReference(value string) error {
	if name, ok := strings.CutPrefix(value, envPrefix); ok && (name == "" || strings.ContainsAny(name, "= \t$")) {
		return fmt.Errorf(`%q names no variable; write "env:UPSTREAM_PROXY"`, value)
	}
	if value == filePrefix {
		return errors.New(`"file:" names no file; write "file:/run/secrets/heed"`)
	}
	return nil
}

// maxSecret is the greatest size of a file with a secret, in bytes.
const maxSecret = 64 << 10

// resolveSecret returns value or, if it is a reference, the secret that it refers to.
// Errors never contain the secret.
func resolveSecret(value string, environ []string) (string, error) {
	if name, ok := strings.CutPrefix(value, envPrefix); ok {
		secret, _ := console.Lookup(environ, name)
		if secret = strings.TrimSpace(secret); secret == "" {
			return "", fmt.Errorf("heed's environment has no variable %s; set it, or name another one", name)
		}
		return secret, nil
	}
	path, ok := strings.CutPrefix(value, filePrefix)
	if !ok {
		return value, nil
	}
	file, err := ownfile.Read(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", err)
	}
	if err := file.Check(ownfile.Secret, "the file"); err != nil {
		return "", err
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(string(file.Data)), "\n")
	if first = strings.TrimSpace(first); first == "" || rest != "" {
		return "", fmt.Errorf("%s does not contain exactly one line; write only the value of the setting into it", path)
	}
	return first, nil
}

// UpstreamFlag checks and returns the value of --upstream. A file: reference becomes
// absolute, relative to the working directory.
func UpstreamFlag(value string) (string, error) {
	if err := checkUpstream(value); err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(value, filePrefix)
	if !ok {
		return value, nil
	}
	path, err := filepath.Abs(path)
	return filePrefix + path, err
}

// MaxCAFile is the greatest size of a CA file, in bytes.
const MaxCAFile = 16 << 20

// ReadCerts returns the certificates of a PEM file as PEM. Everything else in the file
// (comments, a private key) is left out, as are certificates that cannot be parsed. A file
// without certificates is an error.
func ReadCerts(path string) ([]byte, error) {
	file, err := ownfile.Read(path, MaxCAFile)
	if err != nil {
		return nil, fmt.Errorf("the CA file cannot be read: %w", err)
	}
	var certs bytes.Buffer
	for block, rest := pem.Decode(file.Data); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			continue // Go and OpenSSL skip invalid certificates of a bundle too
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
