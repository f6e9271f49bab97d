package cache

import (
	"crypto/tls"
	"errors"
)

// size returns about how many bytes e holds beside itself.
func (e *entry) size() int {
	n := e.policy.Size() + len(e.tags.url) + len(e.tags.etag) + len(e.tags.lastModified) +
		heldBy(e.policy.Source().Err)
	if e.setAside != nil {
		n += e.setAside.Size()
	}
	return n
}

// heldBy returns about how many bytes an error holds: a failed verification
// holds on to the site's certificates.
func heldBy(err error) int {
	if err == nil {
		return 0
	}
	n := len(err.Error())
	var verification *tls.CertificateVerificationError
	if errors.As(err, &verification) {
		for _, c := range verification.UnverifiedCertificates {
			n += parsedCertificate * len(c.Raw)
		}
	}
	return n
}

// parsedCertificate is about how many times its DER form a certificate takes
// once parsed.
const parsedCertificate = 4
