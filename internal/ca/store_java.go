package ca

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// javaPassword is that of every cacerts file as Java ships it.
const javaPassword = "changeit"

// javaStores returns the cacerts file of the Java in JAVA_HOME, or else of the
// keytool in PATH; none where there is no Java.
func (m Machine) javaStores() []Store {
	home := m.getenv("JAVA_HOME")
	if home == "" {
		keytool, err := m.look("keytool")
		if err != nil {
			return nil
		}
		if keytool, err = filepath.EvalSymlinks(keytool); err != nil {
			return nil
		}
		home = filepath.Dir(filepath.Dir(keytool))
	}
	for _, place := range []string{"lib/security/cacerts", "jre/lib/security/cacerts"} {
		file := filepath.Join(home, filepath.FromSlash(place))
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return []Store{m.javaStore(filepath.Join(home, "bin", "keytool"), file)}
		}
	}
	return nil
}

func (m Machine) javaStore(keytool, file string) Store {
	store := []string{"-keystore", file, "-storepass", javaPassword}
	command := func(args ...string) []string { return append(append([]string{keytool}, args...), store...) }
	find := func(c *x509.Certificate) (string, error) {
		// keytool speaks the user's language, but for this.
		args := command("-list", "-rfc", "-J-Duser.language=en")
		out, err := m.run(args[0], args[1:]...)
		if err != nil {
			return "", fmt.Errorf("keytool: %w: %s", err, lastLine(out))
		}
		return javaAlias(out, c), nil
	}
	return Store{
		Name: fmt.Sprintf("the Java trust store %s", file),
		tool: keytool, getTool: "install a Java with its keytool (Debian: default-jre-headless)", root: !writable(file), run: m.run,
		has: func(c *x509.Certificate) (bool, error) {
			name, err := find(c)
			return name != "", err
		},
		add: func(c *x509.Certificate, pem string) [][]string {
			return [][]string{command("-importcert", "-noprompt", "-trustcacerts", "-alias", alias(c), "-file", pem)}
		},
		remove: func(c *x509.Certificate, _ string) [][]string {
			// Debian copies the system's roots here under names of its own and
			// does not take them back.
			name, err := find(c)
			if err != nil || name == "" {
				name = alias(c)
			}
			return [][]string{command("-delete", "-alias", name)}
		},
	}
}

// javaAlias finds the name a certificate has in what keytool -list -rfc
// printed; empty when it is not there.
func javaAlias(listing []byte, c *x509.Certificate) string {
	for _, entry := range bytes.Split(listing, []byte("\nAlias name: "))[1:] {
		name, rest, _ := bytes.Cut(entry, []byte("\n"))
		if block, _ := pem.Decode(rest); block != nil && bytes.Equal(block.Bytes, c.Raw) {
			return string(bytes.TrimSpace(name))
		}
	}
	return ""
}

// writable reports whether this user may write to an existing file.
func writable(file string) bool {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
