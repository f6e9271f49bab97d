package ca

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// checkChain says why no client would accept an end certificate under this
// chain, whatever the time: RFC 5280 §6.1 as far as it does not depend on the
// end certificate's name.
func checkChain(chain []*x509.Certificate) error {
	below := 0 // intermediates between certificate i and the leaf that count for its path length
	for i, c := range chain {
		if err := checkIssuer(c); err != nil {
			return fmt.Errorf("%q %w", name(c), err)
		}
		if limitsPath(c) && below > c.MaxPathLen {
			return fmt.Errorf("%q allows %d authorities below it and there are %d: get an intermediate whose issuers allow it", name(c), c.MaxPathLen, below)
		}
		if i+1 < len(chain) {
			if err := c.CheckSignatureFrom(chain[i+1]); err != nil {
				return fmt.Errorf("%q is not signed by %q which follows it (%v): put the signing certificate first, then each issuer", name(c), name(chain[i+1]), err)
			}
		}
		if !bytes.Equal(c.RawSubject, c.RawIssuer) {
			below++
		}
	}
	return nil
}

func limitsPath(c *x509.Certificate) bool { return c.MaxPathLen > 0 || c.MaxPathLenZero }

// checkIssuer says why a certificate may not sign certificates for servers.
func checkIssuer(c *x509.Certificate) error {
	if !c.BasicConstraintsValid || !c.IsCA {
		return errors.New("is not a CA certificate: use one with basic constraints CA:TRUE")
	}
	if c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0 {
		return errors.New("may not sign certificates: use one with the key usage keyCertSign")
	}
	usages := c.ExtKeyUsage
	if len(usages)+len(c.UnknownExtKeyUsage) > 0 &&
		!slices.Contains(usages, x509.ExtKeyUsageServerAuth) && !slices.Contains(usages, x509.ExtKeyUsageAny) {
		return errors.New("may not sign certificates for servers: use one with the extended key usage serverAuth, or without any")
	}
	if len(c.UnhandledCriticalExtensions) > 0 {
		return fmt.Errorf("has a critical extension clients do not know (%v): use one without", c.UnhandledCriticalExtensions[0])
	}
	if excludesAll(c) {
		return errors.New("has name constraints that exclude every name: use one that may sign for the sites your clients visit")
	}
	return nil
}

// excludesAll reports whether the name constraints leave no name a site could
// have: the empty DNS name stands for all (RFC 5280 §4.2.1.10). A constraint
// on some names is met leaf by leaf.
func excludesAll(c *x509.Certificate) bool { return slices.Contains(c.ExcludedDNSDomains, "") }

func hasNameConstraints(c *x509.Certificate) bool {
	return len(c.PermittedDNSDomains)+len(c.ExcludedDNSDomains)+len(c.PermittedIPRanges)+len(c.ExcludedIPRanges) > 0
}
