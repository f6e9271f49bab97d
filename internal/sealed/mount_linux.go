package sealed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// resolvConf is the /etc/resolv.conf of the command. It has no search list: each name
// has an address, so that the first of a list would be taken.
const resolvConf = "nameserver 127.0.0.1\n"

// mounts hides the directory of the plan but for what the command keeps, replaces the roots of
// the system, and makes what root could use to
// run programs outside read-only. The command keeps all other files.
func mounts(p *plan, c *Command) error {
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("/: %w", err)
	}
	if p.Hide != "" {
		if err := hide(p.Hide, c.Keep); err != nil {
			return fmt.Errorf("%s: %w", p.Hide, err)
		}
	}
	if err := replaceRoots(c.Roots, c.RootFiles); err != nil {
		return err
	}
	if p.Root {
		if err := readOnly("/proc/sys"); err != nil {
			return err
		}
		if err := readOnlyAll("/sys"); err != nil {
			return err
		}
	}
	return reenter()
}

// reenter makes the working directory one of the mounts as they are now, by its path.
func reenter() error {
	dir, err := os.Getwd()
	if err != nil {
		return nil // it was removed
	}
	if os.Chdir(dir) != nil {
		return os.Chdir("/")
	}
	return nil
}

// hide mounts an empty directory over dir, with the files keep in it.
func hide(dir string, keep []string) error {
	held := map[string]int{}
	for _, path := range keep {
		inside, err := filepath.Rel(dir, path)
		if err != nil || inside == "." || inside == ".." || strings.HasPrefix(inside, "../") {
			continue
		}
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		held[path] = fd
	}
	if err := unix.Mount("heed", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700"); err != nil {
		return err
	}
	for path, fd := range held {
		if err := show(path, fd); err != nil {
			return err
		}
		unix.Close(fd)
	}
	return replaceResolvConf(dir)
}

// show mounts an opened file or directory at path, read-only.
func show(path string, fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
	} else if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return bindReadOnly(fmt.Sprintf("/proc/self/fd/%d", fd), path)
}

// replaceResolvConf makes resolvConf the configuration of resolvers, where there is one.
func replaceResolvConf(dir string) error {
	const file = "/etc/resolv.conf"
	if _, err := os.Stat(file); err != nil {
		return nil // resolvers use 127.0.0.1 then
	}
	own := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(own, []byte(resolvConf), 0o644); err != nil {
		return err
	}
	return bindReadOnly(own, file)
}

// replaceRoots makes roots the content of each of the files that exists. Several may be links
// to one.
func replaceRoots(roots string, files []string) error {
	if roots == "" {
		return nil
	}
	replaced := map[string]bool{}
	for _, file := range files {
		path, err := filepath.EvalSymlinks(file)
		if err != nil || replaced[path] {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		replaced[path] = true
		if err := bindReadOnly(roots, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// bindReadOnly mounts source at path. The flags that a mount has outside cannot be taken
// away in a user namespace, and are kept.
func bindReadOnly(source, path string) error {
	if err := unix.Mount(source, path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return err
	}
	kept := uintptr(fs.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if fs.Flags&unix.ST_RELATIME != 0 {
		kept |= unix.MS_RELATIME
	}
	return unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|kept, "")
}

// readOnly makes a directory read-only where it exists.
func readOnly(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	if err := bindReadOnly(dir, dir); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// readOnlyAll makes a mount and those below it read-only, where dir is one: root could have
// the kernel run a program outside (/sys/kernel/uevent_helper).
func readOnlyAll(dir string) error {
	err := unix.MountSetattr(-1, dir, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	switch err {
	case nil, unix.EINVAL, unix.ENOENT: // no mount
		return nil
	case unix.ENOSYS: // before Linux 5.12
		return readOnly(dir)
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// isInChroot reports whether / is a directory below the root of the mounts.
func isInChroot() bool {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == "/" {
			return false
		}
	}
	return true
}
