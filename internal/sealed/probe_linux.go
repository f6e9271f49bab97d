package sealed

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"heed/internal/base/ownfile"
)

// deniedError is the error of a stage that the machine does not permit.
type deniedError struct {
	stage string
	errno error
	why   string // a sentence, and what to do
}

// Error implements error.
func (e *deniedError) Error() string {
	return fmt.Sprintf("this machine cannot seal a run: %s: %v\n%s", e.stage, e.errno, e.why)
}

// Unwrap returns the error of the system call.
func (e *deniedError) Unwrap() error { return e.errno }

// explain returns the error of a stage with the setting that forbids it.
func explain(stage string, err error) error {
	e := &deniedError{stage: stage, errno: err, why: "See heed help sealed"}
	var errno unix.Errno
	if errors.As(err, &errno) {
		e.errno = errno
	}
	switch {
	case stage == stageClone && errno == unix.ENOSPC:
		e.why = limitReached()
	case stage == stageClone && (errno == unix.EPERM || errno == unix.EACCES), (stage == stageLink || stage == stageMounts) && (errno == unix.EPERM || errno == unix.EACCES):
		e.why = forbidden()
	case stage == stageClone && errno == unix.EINVAL:
		e.why = "The kernel has no user or network namespaces: it needs CONFIG_USER_NS and CONFIG_NET_NS"
	case stage == stageFilter && (errno == unix.ENOENT || errno == unix.EOPNOTSUPP || errno == unix.EPROTONOSUPPORT):
		e.why = "The kernel modules nf_tables, nft_tproxy or nft_reject_inet are missing: load them with `modprobe -a nf_tables nft_tproxy nft_reject_inet`"
	case stage == stageSeccomp && errno == unix.EINVAL:
		e.why = "The kernel has no seccomp notifications: it needs Linux 5.6 or later with CONFIG_SECCOMP_FILTER"
	}
	return e
}

// limits are the settings that bound namespaces.
var limits = []string{"user.max_user_namespaces", "user.max_net_namespaces", "user.max_mnt_namespaces"}

// limitReached names the limit of namespaces that is too low.
func limitReached() string {
	for _, name := range limits {
		if sysctl(name) == "0" {
			return "The setting " + name + " is 0: raise it with `sysctl -w " + name + "=1000`"
		}
	}
	return "A limit of namespaces is reached: raise " + strings.Join(limits, ", ") + ", or nest fewer namespaces (32 levels at most)"
}

// forbidden names what does not permit user namespaces.
func forbidden() string {
	switch _, err := os.Stat("/proc/self/ns/user"); {
	case err != nil:
		return "There is no /proc here, which sealing needs: mount it with `mount -t proc proc /proc`"
	case sysctl("kernel.unprivileged_userns_clone") == "0":
		return "The setting kernel.unprivileged_userns_clone is 0: permit user namespaces with `sysctl -w kernel.unprivileged_userns_clone=1`"
	case sysctl("kernel.apparmor_restrict_unprivileged_userns") == "1":
		return "The setting kernel.apparmor_restrict_unprivileged_userns is 1: permit user namespaces with `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or write an AppArmor profile for heed with the rule `userns,`"
	case isInChroot():
		return "This process is in a chroot, where only root can seal: start heed as root, or outside of the chroot"
	case ownfile.InContainer():
		return "This process is in a container whose seccomp profile forbids namespaces: run the container with a network whose only exit is heed (heed help containers), or start it with --security-opt seccomp=unconfined"
	}
	return "A security policy forbids user namespaces (clone with CLONE_NEWUSER): permit them for this user, or run heed as root"
}

// sysctl returns the value of a kernel setting; empty when there is none.
func sysctl(name string) string {
	text, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Probe seals a run of this program that does nothing, and returns why it cannot.
func Probe() error {
	r, err := Launch(Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	defer func() { _, _ = r.Wait() }()
	return r.Exec(Command{Path: "/proc/self/exe", Args: []string{nothingName}})
}
