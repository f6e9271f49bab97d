package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"heed/internal/access"
)

// Where a setting that may hold a password can name a place instead.
const (
	filePrefix = "file:" // the first line of a file
	envPrefix  = "env:"  // a variable of heed's environment
)

// isReference reports whether the value of a setting names the place of a secret.
func isReference(value string) bool {
	return strings.HasPrefix(value, filePrefix) || strings.HasPrefix(value, envPrefix)
}

// checkReference returns an error for a reference to nowhere.
func checkReference(value string) error {
	if name, ok := strings.CutPrefix(value, envPrefix); ok && (name == "" || strings.ContainsAny(name, "= \t$")) {
		return fmt.Errorf(`%q names no variable; write "env:UPSTREAM_PROXY"`, value)
	}
	if value == filePrefix {
		return errors.New(`"file:" names no file; write "file:/run/secrets/heed"`)
	}
	return nil
}

// referenceBeside is beside for a reference to a file; other values stay.
func referenceBeside(file, value string) string {
	if path, ok := strings.CutPrefix(value, filePrefix); ok && path != "" {
		return filePrefix + beside(file, path)
	}
	return value
}

// maxSecret bounds what is read of a file that holds a secret, in bytes.
const maxSecret = 64 << 10

// revealed returns what a setting says: its value, or what stands at the place
// that it names. No error repeats what stands there.
func revealed(value string, environ []string) (string, error) {
	if name, ok := strings.CutPrefix(value, envPrefix); ok {
		secret, _ := lookup(environ, name)
		if secret = strings.TrimSpace(secret); secret == "" {
			return "", fmt.Errorf("heed's environment has no variable %s; set it, or name another one", name)
		}
		return secret, nil
	}
	path, ok := strings.CutPrefix(value, filePrefix)
	if !ok {
		return value, nil
	}
	if err := access.Private(path); err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", err)
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if first = strings.TrimSpace(first); first == "" || rest != "" || len(text) > maxSecret {
		return "", fmt.Errorf("%s does not hold one line; write what the setting would say into it, and nothing else", path)
	}
	return first, nil
}

// upstreamFlag returns what --upstream says; a file is looked for from here.
func upstreamFlag(value string) (string, error) {
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
