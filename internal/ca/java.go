package ca

import (
	"crypto/x509"
	"fmt"

	"software.sslmate.com/src/go-pkcs12"
)

// JavaTrustStore returns what Bundle returns as the PKCS #12 trust store that
// Java reads when -Djavax.net.ssl.trustStore names it. It holds nothing secret
// and has no password: Java reads it with any
// javax.net.ssl.trustStorePassword, or without.
//
// Certificates Java could not use, because they cannot be parsed, are left out.
func JavaTrustStore(a *Authority, extra []string) ([]byte, error) {
	set, err := bundle(a, extra)
	if err != nil {
		return nil, err
	}
	var entries []pkcs12.TrustStoreEntry
	for _, der := range set.der {
		if c, err := x509.ParseCertificate(der); err == nil {
			// Java keeps one certificate per alias.
			alias := fmt.Sprintf("%s [%s]", printable(name(c)), short(c))
			entries = append(entries, pkcs12.TrustStoreEntry{Cert: c, FriendlyName: alias})
		}
	}
	store, err := pkcs12.Passwordless.EncodeTrustStoreEntries(entries, "")
	if err != nil {
		return nil, fmt.Errorf("the trust store for Java cannot be made: %w", err)
	}
	return store, nil
}

// WriteJavaTrustStore writes what JavaTrustStore returns to path, whole or not
// at all, for everyone to read (0644).
func WriteJavaTrustStore(path string, a *Authority, extra []string) error {
	data, err := JavaTrustStore(a, extra)
	if err != nil {
		return err
	}
	return WriteFile(path, data, 0o644)
}
