// Package access verifies the users of a proxy by name and password: the users of
// an htpasswd file whose passwords are hashed with bcrypt, as `heed config password`
// and Apache's `htpasswd -B` write them.
//
// A bcrypt check is slow by design (about 50 ms of a core). What was verified is
// therefore remembered for a while, how many checks run at a time is bounded, and
// an address that keeps failing has to wait.
//
// Outside package: golang.org/x/crypto/bcrypt, the hash of htpasswd files.
package access

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/bcrypt"

	"heed/internal/base/memo"
	"heed/internal/base/ownfile"
	"heed/proxy/limit"
)

// How a Gate keeps its cost bounded.
const (
	memory     = 5 * time.Minute // a verified credential is remembered so long
	maxKnown   = 4096            // credentials remembered
	checks     = 2               // bcrypt checks at a time
	maxFailed  = 10              // failures of an address within failedFor, before it has to wait
	failedFor  = time.Minute
	maxAddress = 4096 // addresses of which failures are counted
)

// Gate verifies the credentials of one htpasswd file. It is safe for concurrent
// use; a changed file is another Gate, which remembers nothing.
type Gate struct {
	users users
	now   func() time.Time
	key   [32]byte // of the hashes below: what is remembered is worth nothing elsewhere
	slots chan struct{}

	known memo.Map[[32]byte, time.Time] // verified credentials -> until when

	mu     sync.Mutex
	failed map[netip.Prefix]failures
}

// failures of one address, or one IPv6 /64, within a window that began at since.
type failures struct {
	since time.Time
	count int
}

// Open returns the gate for the users of an htpasswd file. now is the clock.
func Open(path string, now func() time.Time) (*Gate, error) {
	u, err := readUsers(path)
	if err != nil {
		return nil, err
	}
	g := &Gate{users: u, now: now, slots: make(chan struct{}, checks), failed: map[netip.Prefix]failures{}}
	_, err = rand.Read(g.key[:])
	return g, err
}

// Verify reports whether the password is the user's. An address that failed too
// often is not asked for now: then wait says how long. A context that ends while
// others are being checked gives false.
func (g *Gate) Verify(ctx context.Context, from netip.Addr, user, password string) (right bool, wait time.Duration) {
	id := g.id(user, password)
	if g.knows(id) {
		return true, 0
	}
	if wait := g.wait(from); wait > 0 {
		return false, wait
	}
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return false, 0
	}
	defer func() { <-g.slots }()
	if g.knows(id) { // another request with the same ones was checked meanwhile
		return true, 0
	}
	if wait := g.wait(from); wait > 0 { // or others of this address failed
		return false, wait
	}
	if !g.users.verify(user, password) {
		g.fail(from)
		return false, 0
	}
	g.known.Put(id, g.now().Add(memory), maxKnown)
	return true, 0
}

// Has reports whether a user is in the file.
func (g *Gate) Has(user string) bool { return g.users[user] != nil }

// Proof identifies the password of a user, also in the Gate of a changed file: it is a
// digest of the hash in the file. It is zero for a user that is not in the file.
func (g *Gate) Proof(user string) (proof [32]byte) {
	if hash, ok := g.users[user]; ok {
		proof = sha256.Sum256(hash)
	}
	return proof
}

// wait returns how long an address that failed too often is not asked for; not
// above 0 when it is.
func (g *Gate) wait(from netip.Addr) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.failed[limit.ClientKey(from)]
	if f.count < maxFailed {
		return 0
	}
	return failedFor - g.now().Sub(f.since)
}

func (g *Gate) id(user, password string) (id [32]byte) {
	mac := hmac.New(sha256.New, g.key[:])
	name := sha256.Sum256([]byte(user)) // of one length, so that no two pairs are one text
	mac.Write(name[:])
	mac.Write([]byte(password))
	mac.Sum(id[:0])
	return id
}

func (g *Gate) knows(id [32]byte) bool {
	until, ok := g.known.Get(id)
	return ok && g.now().Before(until)
}

// fail counts one failure of an address. When too many addresses fail within a short
// time, counting starts over: bcrypt and its slots still bound the rate of guesses.
func (g *Gate) fail(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	who := limit.ClientKey(from)
	f, now := g.failed[who], g.now()
	if now.Sub(f.since) >= failedFor {
		f = failures{since: now}
	}
	memo.MakeRoom(g.failed, maxAddress, nil)
	f.count++
	g.failed[who] = f
}

// users are the hashes of passwords by user name.
type users map[string][]byte

// maxCost bounds what one check may take: bcrypt doubles with each step, and 16
// takes seconds.
const maxCost = 16

// maxUsers is the greatest size of an htpasswd file in bytes.
const maxUsers = 16 << 20

// readUsers reads an htpasswd file. All that is wrong with it is in the error,
// each with file and line.
func readUsers(path string) (users, error) {
	file, err := ownfile.Read(path, maxUsers)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the users cannot be read: %w; make it with: (umask 077; heed config password NAME > %s), and for a service that runs as another user: chown root:GROUP, chmod 640", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("the users cannot be read: %w", err)
	}
	if err := file.Check(ownfile.Secret, "the file of users"); err != nil {
		return nil, err
	}
	all, problems := users{}, []error(nil)
	number := 0
	for line := range bytes.Lines(file.Data) {
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
		problems = append(problems, fmt.Errorf("%s: there is no user in it; add one with: heed config password NAME >> %s", path, path))
	}
	return all, errors.Join(problems...)
}

func (u users) add(name, hash string) error {
	cost, err := bcrypt.Cost([]byte(hash))
	switch {
	case hash == "" || !isName(name):
		return errors.New("a line is NAME:HASH, and a name has no control characters; make one with: heed config password NAME")
	case u[name] != nil:
		return fmt.Errorf("the user %q is listed twice; keep one of the lines", name)
	case err != nil:
		return fmt.Errorf("the password of %q is not hashed with bcrypt; make the line anew with: heed config password %s", name, name)
	case cost > maxCost:
		return fmt.Errorf("the password of %q has the bcrypt cost %d, which takes too long to check; up to %d will do", name, cost, maxCost)
	}
	u[name] = []byte(hash)
	return nil
}

// isName reports whether name can be a user's: without control characters, as RFC 7617
// section 2 has it.
func isName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Line returns the line of an htpasswd file for a user. The error names what a line or a
// check cannot hold.
func Line(name, password string) (string, error) {
	switch {
	case !isName(name) || name[0] == '#' || name != strings.TrimSpace(name) || !utf8.ValidString(name):
		return "", fmt.Errorf("%q cannot be the name of a user: it is empty, begins with # or a blank, ends with a blank, or has a control character", name)
	case strings.Contains(name, ":"):
		return "", fmt.Errorf("%q cannot be the name of a user: it has a colon", name)
	case password == "":
		return "", errors.New("the password is empty")
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if errors.Is(err, bcrypt.ErrPasswordTooLong) {
		err = fmt.Errorf("the password has %d octets; bcrypt takes up to 72", len(password))
	}
	return name + ":" + string(hash), err
}

// verify takes as long as bcrypt does, also when there is no such user: a guess
// does not distinguish names from passwords.
func (u users) verify(name, password string) bool {
	hash, known := u[name]
	if !known {
		for _, hash = range u { // any will do
			break
		}
	}
	return bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil && known
}
