package access

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// users are the hashes of passwords by user name.
type users map[string][]byte

// maxCost bounds what one check may take: bcrypt doubles with each step, and 16
// takes seconds.
const maxCost = 16

// readUsers reads an htpasswd file. All that is wrong with it is in the error,
// each with file and line.
func readUsers(path string) (users, error) {
	if err := Private(path); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the users cannot be read: %w", err)
	}
	all, problems := users{}, []error(nil)
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line := strings.TrimSpace(string(line))
		if line == "" || line[0] == '#' {
			continue
		}
		name, hash, _ := strings.Cut(line, ":")
		if err := all.add(name, hash); err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", path, number, err))
		}
	}
	if len(all)+len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%s: there is no user in it; add one with: htpasswd -B %s NAME", path, path))
	}
	return all, errors.Join(problems...)
}

func (u users) add(name, hash string) error {
	cost, err := bcrypt.Cost([]byte(hash))
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("a line is NAME:HASH, and a name has no control characters")
	case u[name] != nil:
		return fmt.Errorf("the user %q stands there twice; keep one of the lines", name)
	case err != nil:
		return fmt.Errorf("the password of %q is not hashed with bcrypt; write it anew with: htpasswd -B FILE %s", name, name)
	case cost > maxCost:
		return fmt.Errorf("the password of %q has the bcrypt cost %d, which takes too long to check; up to %d will do", name, cost, maxCost)
	}
	u[name] = []byte(hash)
	return nil
}

// verify takes as long as bcrypt does, also when there is no such user: a guess
// does not tell names from passwords.
func (u users) verify(name, password string) bool {
	hash, known := u[name]
	if !known {
		for _, hash = range u { // any will do
			break
		}
	}
	return bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil && known
}
