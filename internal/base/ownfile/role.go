package ownfile

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"

	"heed/internal/base/safetext"
)

// Role is what heed uses a file or directory for. It decides who else may own, read and
// change it: see roles.
type Role int

// The roles of a path.
const (
	StateDir  Role = iota // a directory in which heed makes files that it acts on
	SocketDir             // the directory of a control socket, outside a state directory
	Key                   // a private key
	Secret                // passwords, tokens, and keys that several programs of a group may share
)

// roles is what Check refuses, and why. What it leaves out is as deliberate:
//
//   - A directory may be read by others: each secret in it has a mode of its own.
//   - A key or secret may belong to another user: it came from there (a package, a platform's
//     secret), and that user could read it before heed did.
//   - A group may read a Secret, so that a service reads what root writes (root:heed 0640).
//   - The directories above the state directory are not checked but named at every start
//     (Parent): volumes of platforms are writable by a group or everyone, and a user who can
//     write there can take the state directory away, but not put another in its place, since
//     that would have another owner.
//   - Windows shows no modes, and access lists are not read.
//
// HEED_STATE_GROUP changes two rows, for that group alone (Group). A StateDir with its write
// bit is closed again by the heed that starts, as is every file in it (Reclaim). A Key that
// belongs to another user, as those of a platform's secret do, may be read by it.
var roles = [...]struct {
	dir    bool        // a directory, which must belong to this user: its owner could replace what is in it
	closed fs.FileMode // permissions that others may not have
	chmod  string      // removes them
}{
	StateDir:  {true, 0o022, "700"},  // a user who writes there can place a CA, exceptions and a record
	SocketDir: {true, 0o077, "700"},  // in a directory for everyone, another user may have made it first
	Key:       {false, 0o077, "600"}, // a user who reads the key of a CA can be any site for its clients
	Secret:    {false, 0o007, "o="},  // everyone on the machine is more than any group
}

// Check returns an error when the file at path, of which info is the Stat, may not be used as
// u. what names it in the error.
func Check(u Role, what, path string, info fs.FileInfo) error {
	is, mode := &roles[u], info.Mode()
	if is.dir && !mode.IsDir() {
		return fmt.Errorf("%s %s is not a directory: remove it, or set HEED_STATE to another place", what, path)
	}
	if uid, known := Owner(info); is.dir && known && uid != os.Geteuid() {
		return fmt.Errorf("%s %s belongs to user %d, and this is user %d: run heed as its owner, or set HEED_STATE to a directory of your own%s", what, path, uid, os.Geteuid(), platformHint())
	}
	open := mode.Perm() & is.closed
	if open == 0 || runtime.GOOS == "windows" || passes(u, open, info) {
		return nil
	}
	whom, hint := fmt.Sprintf("everyone (mode %04o)", mode.Perm()), ""
	if gid, ok := groupOf(info); open&0o007 == 0 && ok {
		whom, hint = fmt.Sprintf("its group (gid %d, mode %04o)", gid, mode.Perm()), platformHint()
	}
	verb := "read"
	if open&0o022 != 0 {
		verb = "changed"
	}
	after := ""
	if u == Key {
		after = ", and make a new one if it may have been copied"
	}
	return fmt.Errorf("%s %s can be %s by %s: run `chmod %s %s`%s%s", what, path, verb, whom, is.chmod, safetext.ShellQuote(path), after, hint)
}

// CheckFile is Check of the file at path.
func CheckFile(u Role, what, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", what, err)
	}
	return Check(u, what, path, info)
}

// passes reports whether HEED_STATE_GROUP permits these bits of the group: on a state
// directory until the heed that starts removes them, and on a key that is not heed's.
func passes(u Role, open fs.FileMode, info fs.FileInfo) bool {
	group, err := Group()
	if gid, ok := groupOf(info); err != nil || group < 0 || !ok || gid != group || open&0o007 != 0 {
		return false
	}
	uid, _ := Owner(info)
	return u == StateDir || u == Key && uid != os.Geteuid() && open&0o020 == 0
}

// platformHint is advice about volumes of platforms, for a process in a container.
func platformHint() string {
	if !InContainer() {
		return ""
	}
	return "; on a volume of Kubernetes or OpenShift: heed help containers"
}

// Group returns the group of HEED_STATE_GROUP, whose members the operator trusts with the
// state directory, since a platform gives each file on its volumes to them (Kubernetes
// fsGroup); -1: none.
func Group() (gid int, err error) {
	text := os.Getenv(GroupVariable)
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return -1, fmt.Errorf("%s=%s is not the number of a group, such as the fsGroup of the pod: %s=2000", GroupVariable, safetext.Quote(text), GroupVariable)
	}
	return int(n), nil
}

// GroupVariable is the environment variable of Group.
const GroupVariable = "HEED_STATE_GROUP"

// InContainer reports whether this process has the usual marks of a container.
func InContainer() bool {
	return os.Getenv("KUBERNETES_SERVICE_HOST") != "" || slices.ContainsFunc([]string{"/.dockerenv", "/run/.containerenv"}, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}
