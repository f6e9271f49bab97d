package memory

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// containerLimit returns the lowest memory limit of the control groups that this process
// is in (cgroups(7)), in octets; 0 when there is none, as on other systems than Linux.
// root is the root of the file system.
func containerLimit(root fs.FS) (limit int64) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		var found int64
		switch {
		case !ok:
		case controllers == "": // version 2
			found = groupLimit(root, "sys/fs/cgroup", group, "memory.max")
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			found = groupLimit(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes")
		}
		if found > 0 && (limit == 0 || found < limit) {
			limit = found
		}
	}
	return limit
}

// unlimited is the least value that is no limit: version 1 writes the largest number of
// pages there is.
const unlimited = 1 << 60

// groupLimit returns the lowest limit in the files of a group and of those above it; 0
// for none. In a container the path of the group can be that outside of it, where
// only the files of top exist.
func groupLimit(root fs.FS, top, group, file string) (limit int64) {
	for at := path.Join(top, path.Clean("/"+group)); ; at = path.Dir(at) {
		if text, err := fs.ReadFile(root, path.Join(at, file)); err == nil {
			n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no limit
			if err == nil && n > 0 && n < unlimited && (limit == 0 || n < limit) {
				limit = n
			}
		}
		if at == top {
			return limit
		}
	}
}
