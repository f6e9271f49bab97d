package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heed/internal/ca"
)

// What heed writes for its clients lies in stateDir/clients, in a directory
// per content, so that runs at the same time with different roots do not
// disturb each other and those with the same roots share the files.
const (
	foundSuffix   = "-found"    // of a directory that holds a foundName
	foundName     = "found.pem" // the CAs that were found in the environment
	bundleName    = "bundle.pem"
	storeName     = "truststore.p12"
	wgetrcName    = "wgetrc"
	maxClientAge  = 90 * 24 * time.Hour // directories nobody has used for so long are removed
	clientDirMode = 0o755               // as public as what is in it; stateDir decides who gets so far
)

func clientsDir(stateDir string) string { return filepath.Join(stateDir, "clients") }

// MakeClientFiles writes the files that a client's environment points to: the
// system's roots, those found, and the authority's, for several families of
// clients. Files of the same content are made once. now is the clock by which
// those that nobody uses any more are removed.
func MakeClientFiles(stateDir string, authority *ca.Authority, found Found, now time.Time) (ClientFiles, error) {
	wget := readWgetrc(found.Wgetrc)
	paths, extra := usable(append(slices.Clone(found.CAs), wget.cas...))
	roots, err := ca.Bundle(authority, paths)
	if err != nil {
		return ClientFiles{}, err
	}
	sum := sha256.Sum256(bytes.Join([][]byte{roots, extra, wget.kept}, []byte{0}))
	dir := filepath.Join(clientsDir(stateDir), hex.EncodeToString(sum[:8]))
	if len(extra) > 0 {
		dir += foundSuffix
	}
	files := ClientFiles{
		Bundle:     filepath.Join(dir, bundleName),
		TrustStore: filepath.Join(dir, storeName),
		Wgetrc:     filepath.Join(dir, wgetrcName),
	}
	if err := os.Chtimes(files.Bundle, now, now); err == nil {
		return files, nil // the bundle is written last: the others are there
	}
	pruneClients(clientsDir(stateDir), now)
	if err := os.MkdirAll(dir, clientDirMode); err != nil {
		return ClientFiles{}, err
	}
	if err := ca.WriteJavaTrustStore(files.TrustStore, authority, paths); err != nil {
		return ClientFiles{}, err
	}
	if err := ca.WriteFile(files.Wgetrc, wget.with(files.Bundle), 0o600); err != nil { // it may hold the user's passwords
		return ClientFiles{}, err
	}
	if err := ca.WriteFile(filepath.Join(dir, foundName), extra, 0o644); err != nil {
		return ClientFiles{}, err
	}
	return files, ca.WriteFile(files.Bundle, roots, 0o644)
}

// pruneClients removes the directories whose bundle nobody has asked for in a
// long time. What cannot be removed now will be another time.
func pruneClients(clients string, now time.Time) {
	dirs, _ := os.ReadDir(clients)
	for _, d := range dirs {
		dir := filepath.Join(clients, d.Name())
		info, err := os.Stat(filepath.Join(dir, bundleName))
		if errors.Is(err, fs.ErrNotExist) { // half made; perhaps at this moment
			info, err = os.Stat(dir)
		}
		if err == nil && now.Sub(info.ModTime()) > maxClientAge {
			_ = os.RemoveAll(dir)
		}
	}
}
