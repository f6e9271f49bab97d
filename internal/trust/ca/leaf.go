package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// leafDays is how long a leaf is valid: short enough for every platform's
// limit (398 days), long enough that a session cache is worth having.
const leafDays = 60

// Leaf returns a certificate for host and its key, from memory when there is
// one that stays valid for a third of its life, else freshly made: ECDSA P-256,
// exactly one name, 60 days but never beyond the authority's own end. Callers
// for one host at the same time share one making. The result is shared: do not change
// it.
//
// host is canonical: a name of lower-case A-labels without trailing dot, or an
// IP address without brackets or zone, as netip.Addr prints it. Anything else
// is an error, as are a host the authority's name constraints forbid and an
// authority that has expired meanwhile.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	now := a.now()
	if cert, ok := a.leaves.Get(host, now); ok {
		return cert, nil
	}
	made, err, _ := a.making.Do(host, func() (any, error) {
		if cert, ok := a.leaves.Get(host, now); ok { // made meanwhile
			return cert, nil
		}
		cert, due, err := a.mint(host, now)
		if err != nil {
			return nil, err
		}
		key := strings.Clone(host) // the caller's may be a piece of a whole request head
		a.leaves.Put(key, cert, due.Add(time.Nanosecond), 1, maxLeaves, maxLeaves)
		return cert, nil
	})
	if err != nil {
		return nil, err
	}
	return made.(*tls.Certificate), nil
}

// mint makes a certificate for host and says when to make the next one.
func (a *Authority) mint(host string, now time.Time) (*tls.Certificate, time.Time, error) {
	end := a.NotAfter()
	if now.After(end) {
		return nil, time.Time{}, fmt.Errorf("no certificate for %s: the CA in %s expired on %s: run `heed ca renew`, or put a valid one in its place", host, a.certPath, day(end))
	}
	template, err := a.template(host, now, end)
	if err != nil {
		return nil, time.Time{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("no key for %s: %w", host, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.chain[0], key.Public(), a.key)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("no certificate for %s: %w", host, err)
	}
	if a.constrained {
		if err := a.verify(der, host, now); err != nil {
			return nil, time.Time{}, err
		}
	}
	cert := &tls.Certificate{Certificate: append([][]byte{der}, a.send...), PrivateKey: key}
	return cert, renewal(template.NotBefore, template.NotAfter, end), nil
}

// renewal is when a leaf is due for another: with a third of its life left. A
// leaf that ends with its authority cannot be bettered and is kept to the end.
func renewal(start, end, authorityEnd time.Time) time.Time {
	if end.Equal(authorityEnd) {
		return end
	}
	return end.Add(-end.Sub(start) / 3)
}

// template describes a leaf for host. The name is in the one field that clients
// look at, the subject alternative name (RFC 9525 §6.3), and in the subject
// for people where it fits; with an empty subject the alternative name is
// critical (RFC 5280 §4.2.1.6).
func (a *Authority) template(host string, now, end time.Time) (*x509.Certificate, error) {
	t := &x509.Certificate{
		NotBefore:             now.Add(-backdate).Truncate(time.Second),
		NotAfter:              now.AddDate(0, 0, leafDays).Truncate(time.Second),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, c := range a.chain {
		if t.NotBefore.Before(c.NotBefore) {
			t.NotBefore = c.NotBefore
		}
	}
	if t.NotAfter.After(end) {
		t.NotAfter = end
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" || ip.Unmap().String() != host {
			return nil, fmt.Errorf("no certificate for %q: not an IP address in its canonical form", host)
		}
		t.IPAddresses = []net.IP{ip.AsSlice()}
		return t, nil
	}
	if !canonicalName(host) {
		return nil, fmt.Errorf("no certificate for %q: not a host name in its canonical form", host)
	}
	t.DNSNames = []string{host}
	if len(host) <= maxName {
		t.Subject = pkix.Name{CommonName: host}
	}
	return t, nil
}

// canonicalName reports whether s is a name of lower-case letters, digits,
// "-", "_" and single dots between labels of at most 63 bytes.
func canonicalName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// verify judges a leaf as a client would: the name constraints of the chain
// may forbid its name.
func (a *Authority) verify(der []byte, host string, now time.Time) error {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("no certificate for %s: %w", host, err)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(a.chain[len(a.chain)-1])
	for _, c := range a.chain[:len(a.chain)-1] {
		between.AddCert(c)
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now})
	if err != nil {
		return fmt.Errorf("no certificate for %s: the CA %q may not sign for it: exempt the host from interception, or use a CA without this constraint (%w)", host, name(a.chain[0]), err)
	}
	return nil
}

// maxLeaves bounds the leaves in memory. When they are full, any one goes: it is made anew when
// it is asked for.
const maxLeaves = 4096
