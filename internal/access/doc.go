// Package access knows who may use a proxy by name and password: the users of
// an htpasswd file whose passwords are hashed with bcrypt (the format of
// Apache's tool of that name, `htpasswd -B`).
//
// A bcrypt check is slow by design (about 50 ms of a core). What was verified is
// therefore remembered for a while, how many checks run at once is bounded, and
// an address that keeps failing has to wait.
//
// It imports golang.org/x/crypto/bcrypt and nothing of ours.
package access
