package ca

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Root is a certificate that clients have to trust.
type Root struct {
	Cert     *x509.Certificate
	File     string // holds exactly this certificate; empty when no file does
	Replaced bool   // it signed until a switch by Renew, and may in a heed not started again since
}

// Roots returns what a client has to trust, the signing certificate first,
// read from the directory at this moment: a root prepared meanwhile is among
// them. Replaced roots that have expired are left out.
func (a *Authority) Roots() []Root {
	var roots []Root
	for _, c := range a.chain {
		r := Root{Cert: c, File: a.certPath}
		if len(a.chain) > 1 {
			r.File = ""
		}
		roots = append(roots, r)
	}
	if a.dir == "" {
		return roots
	}
	return append(roots, besides(a.dir, a.chain[0], a.now())...)
}

// besides returns the valid roots in dir other than signing: the one Renew
// prepared, the current one where it was switched under a running heed, and
// those it replaced, by name.
func besides(dir string, signing *x509.Certificate, now time.Time) []Root {
	seen := []*x509.Certificate{signing}
	var roots []Root
	add := func(file string, replaced bool) {
		chain, err := readChain(file)
		if err != nil || now.After(chain[0].NotAfter) || slices.ContainsFunc(seen, chain[0].Equal) {
			return
		}
		seen = append(seen, chain[0])
		roots = append(roots, Root{Cert: chain[0], File: file, Replaced: replaced})
	}
	add(currentPair(dir).cert, false)
	add(nextPair(dir).cert, false)
	files, _ := os.ReadDir(dir) // in the order of names; what cannot be read is not there
	for _, f := range files {
		if strings.HasPrefix(f.Name(), replacedPrefix) && strings.HasSuffix(f.Name(), ".pem") {
			add(filepath.Join(dir, f.Name()), true)
		}
	}
	return roots
}

const replacedPrefix = "ca-old-"

func nextPair(dir string) pair {
	return pair{cert: filepath.Join(dir, "ca-next.pem"), key: filepath.Join(dir, "ca-next-key.pem")}
}

// Renewal says what Renew did.
type Renewal struct {
	Switched bool // the new root signs; otherwise it is only prepared
	New      *x509.Certificate
	NewFile  string // where New lies now
}

// Renew replaces the root in dir without breaking clients, in two steps.
//
// The first call makes a new root beside the old: ca-next.pem and its key.
// CertPEM and the bundles carry both from then on, also those of a heed that
// runs, while leaves are still signed by the old. This is the time to bring
// the new root to the clients; a second call changes nothing.
//
// With switchNow the new root takes the old one's place (it is made when there
// is none) and signs in every heed started from then on. The old certificate
// stays, as ca-old-*.pem, in CertPEM and the bundles until it expires, for
// heeds not started again yet; its key is gone.
//
// An old root that is not valid now, or a dir without one, is switched at
// once: no client accepts its leaves, so there is nothing to break. A switch
// that was interrupted is finished by the next Open, or by the next Renew,
// which then does nothing else.
func Renew(dir string, now time.Time, switchNow bool) (*Renewal, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("the directory of the CA cannot be named: %w", err)
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(currentPair(dir).cert); errors.Is(err, fs.ErrNotExist) {
		a, err := Open(dir, func() time.Time { return now })
		if err != nil {
			return nil, err
		}
		return &Renewal{Switched: true, New: a.chain[0], NewFile: a.certPath}, nil
	}
	next := nextPair(dir)
	prepared, _ := readChain(next.cert) // none is no error
	chain, _, err := openCurrent(dir)
	if err != nil {
		return nil, err
	}
	if len(prepared) > 0 && prepared[0].Equal(chain[0]) {
		return &Renewal{Switched: true, New: chain[0], NewFile: currentPair(dir).cert}, nil
	}
	if err := next.create(now); err != nil {
		return nil, err
	}
	made, _, err := readPair(next)
	if err != nil {
		return nil, err
	}
	r := &Renewal{New: made[0], NewFile: next.cert}
	if !switchNow && valid(chain[0], now) {
		return r, nil
	}
	r.Switched, r.NewFile = true, currentPair(dir).cert
	return r, switchRoots(dir, chain[0])
}

func valid(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && !now.After(c.NotAfter)
}

// switchRoots puts the next pair in the place of the current one. The key goes
// first: where it is the next certificate's while ca.pem is still the old one,
// readCurrent knows that a switch was under way.
func switchRoots(dir string, old *x509.Certificate) error {
	current, next := currentPair(dir), nextPair(dir)
	kept := filepath.Join(dir, replacedPrefix+short(old)+".pem")
	if err := placeNew(kept, pemOf(certificateBlock, old.Raw), 0o644); err != nil {
		return err
	}
	if err := move(next.key, current.key); err != nil {
		return err
	}
	return move(next.cert, current.cert)
}

// move renames a file. That another process did so first is as good.
func move(from, to string) error {
	if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unwritable(to, err)
	}
	return nil
}

// openCurrent reads the current pair of dir. It reads again when the first
// time went wrong: another process may have switched roots between the files.
func openCurrent(dir string) (chain []*x509.Certificate, key crypto.Signer, err error) {
	for range 2 {
		if chain, key, err = readCurrent(dir); err == nil {
			break
		}
	}
	return chain, key, err
}

// readCurrent reads the current pair of dir, after finishing a switch that was
// interrupted between its two files.
func readCurrent(dir string) ([]*x509.Certificate, crypto.Signer, error) {
	current, next := currentPair(dir), nextPair(dir)
	key, err := readKey(current.key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("the key of the CA %s is missing: restore it from a backup, or remove %s and a new CA is made that clients have to trust anew (%w)", current.key, current.cert, fs.ErrNotExist)
	}
	if err != nil {
		return nil, nil, err
	}
	if chain, err := readChain(next.cert); err == nil && matches(key, chain[0]) {
		if err := move(next.cert, current.cert); err != nil {
			return nil, nil, err
		}
	}
	return readPair(current)
}
