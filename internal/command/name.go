package command

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ProxyName returns the pseudonym under which this heed stands in Via: the
// configured one, else a random one that is made once per state directory dir.
// Neither the machine nor the product is told to every site.
func ProxyName(c *Config, dir string) (string, error) {
	if c.Name != "" {
		return c.Name, nil
	}
	path := filepath.Join(dir, "name")
	name, err := readName(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return name, err
	}
	if err := writeOnce(path, []byte(strings.ToLower(rand.Text())[:12]+"\n")); err != nil {
		return "", fmt.Errorf("the proxy's name cannot be kept: %w", err)
	}
	return readName(path) // another process may have been first
}

func readName(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(data))
	if err := checkName(name); err != nil || name == "" {
		return "", fmt.Errorf("the file %s holds no name\nRemove it; heed makes a new one", path)
	}
	return name, nil
}

// writeOnce makes a file whole or not at all, and leaves one that is there.
func writeOnce(path string, data []byte) error {
	temp, err := writeTemp(path, data, 0o600)
	if err != nil {
		return err
	}
	err = os.Link(temp, path)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(temp))
}

func writeTemp(path string, data []byte, mode os.FileMode) (temp string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
