package command

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"heed/internal/access"
	"heed/internal/audit"
)

// privacyKeyFile holds the key of what the record hides, in the state directory.
const privacyKeyFile = "audit.key"

// openPrivacy returns what the record keeps in place of what it must not, as c
// says, with the key of the state directory, which is made on first use.
func openPrivacy(c *AuditConfig, state string) (*audit.Privacy, error) {
	key, err := privacyKey(filepath.Join(state, privacyKeyFile))
	if err != nil {
		return nil, err
	}
	clients, err := audit.ParseClients(c.Clients)
	if err != nil {
		return nil, err
	}
	return audit.NewPrivacy(clients, c.Redact, key)
}

// privacyKey reads the key at path, or makes one.
func privacyKey(path string) ([]byte, error) {
	key, err := readPrivacyKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	fresh := make([]byte, audit.PrivacyKeySize)
	_, _ = rand.Read(fresh) // never fails
	if err := writeOnce(path, []byte(hex.EncodeToString(fresh)+"\n")); err != nil {
		return nil, fmt.Errorf("the key of what the record hides cannot be kept: %w\nMake the state directory writable, or set HEED_STATE to another one", err)
	}
	return readPrivacyKey(path) // another process may have been first
}

// readPrivacyKey returns fs.ErrNotExist for a key that there is none of.
func readPrivacyKey(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		err = access.Private(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the key of what the record hides cannot be used: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != audit.PrivacyKeySize {
		return nil, fmt.Errorf("the file %s holds no key\nRemove it and heed makes a new one; what is hidden from then on cannot be compared with what was hidden before", path)
	}
	return key, nil
}
