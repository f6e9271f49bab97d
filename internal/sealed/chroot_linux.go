package sealed

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// inOwnRoot calls f on a thread whose mounts have the root directory of this process as
// their root. The kernel creates no user namespace for a process in a chroot
// (user_namespaces(7)); what f starts is in none. The error is that of f, or of the first
// system call that the machine does not permit.
func inOwnRoot(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // /proc/self shows this thread, which must stay as it is
			defer runtime.UnlockOSThread()
			result <- inOwnRoot(f)
			return
		}
		// The thread ends with this goroutine.
		err := ownRoot()
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}

// ownRoot makes the root directory of this thread the root of mounts that no other process
// has. The working directory stays, by its path.
func ownRoot() error {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/" // it was removed
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer unix.Close(root)
	tree, err := unix.OpenTree(root, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return os.NewSyscallError("open_tree", err)
	}
	defer unix.Close(tree)
	if err := leaveChroot(root, tree); err != nil {
		return os.NewSyscallError("chroot", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	if err := unix.MoveMount(tree, "", root, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return os.NewSyscallError("move_mount", err)
	}
	if err := unix.Fchdir(tree); err != nil {
		return os.NewSyscallError("fchdir", err)
	}
	// The old root is mounted over the new one, and removed (pivot_root(2), NOTES).
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	if err := enterRoot("."); err != nil {
		return os.NewSyscallError("chroot", err)
	}
	return os.NewSyscallError("chdir", unix.Chdir(dir))
}

// maxDepth is the greatest number of directories above a chroot.
const maxDepth = 4096

// leaveChroot makes the root of the mounts that of this thread: a working directory that is
// not below the root directory has parents up to it. elsewhere is such a root directory.
func leaveChroot(root, elsewhere int) error {
	if err := unix.Fchdir(elsewhere); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	if err := unix.Fchdir(root); err != nil {
		return err
	}
	for range maxDepth {
		if err := unix.Chdir(".."); err != nil {
			return err
		}
	}
	return enterRoot(".")
}

// enterRoot makes a directory the root and the working directory.
func enterRoot(dir string) error {
	if err := unix.Chroot(dir); err != nil {
		return err
	}
	return unix.Chdir("/")
}
