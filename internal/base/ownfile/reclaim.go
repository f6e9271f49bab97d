package ownfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxReclaimed bounds the files of a state directory that Reclaim looks at; heed makes some
// hundred.
const maxReclaimed = 10_000

// Reclaimed is what Reclaim removed the permissions of a group from.
type Reclaimed struct {
	Readable []string // paths of files that everyone could not read and the group could
	Writable []string // paths of files that the group could change
}

// Reclaim removes the permissions of a group that a platform has set on the state directory
// and all below it. It first closes the directory to the group, so that what it finds stays as
// it is, and returns an error for a file that the group may have put there: one that is no
// regular file, directory or socket, belongs to another user, or has a second name. Without
// permissions of the group it changes nothing. It reads no file.
func Reclaim(dir string, group int) (*Reclaimed, error) {
	r := &Reclaimed{}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	seen := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxReclaimed {
			return fmt.Errorf("the state directory %s has more than %d files: heed makes no such number, so name a directory of heed's own in HEED_STATE", dir, maxReclaimed)
		}
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if why := planted(info); why != "" {
			return fmt.Errorf("%s %s, and a member of group %d may have put it into the state directory: look at it, and remove it", path, why, group)
		}
		return r.reclaim(path, info, group)
	})
	return r, err
}

// reclaim removes the permissions of the group from one file, except for those that everyone
// has.
func (r *Reclaimed) reclaim(path string, info fs.FileInfo, group int) error {
	gid, ok := groupOf(info)
	mode := info.Mode().Perm()
	open := mode & 0o070 &^ (mode & 0o007 << 3)
	if !ok || gid != group || open == 0 {
		return nil
	}
	if info.Mode().IsRegular() {
		if open&0o040 != 0 {
			r.Readable = append(r.Readable, path)
		}
		if open&0o020 != 0 {
			r.Writable = append(r.Writable, path)
		}
	}
	return os.Chmod(path, mode&^open)
}

// planted returns what a file of the state directory is that heed does not make; empty: nothing.
func planted(info fs.FileInfo) string {
	uid, known := Owner(info)
	switch kind := info.Mode().Type(); {
	case kind != 0 && kind != fs.ModeDir && kind != fs.ModeSocket:
		return "is not a regular file"
	case known && uid != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", uid)
	case kind == 0 && names(info) > 1:
		return "has a second name (hard link)"
	}
	return ""
}

// Parent returns which directory above dir, or link on the way to it, other users can change,
// and so take dir away, and who can; empty when no other user can. A directory whose sticky bit
// is set, like /tmp, is none: there only the owner of dir can rename it.
func Parent(dir string) string {
	var found string
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode()&fs.ModeSticky == 0 {
			if who := others(at, info); who != "" {
				found = fmt.Sprintf("%s can be changed by %s", at, who)
			}
		}
		if at == filepath.Dir(at) || found != "" {
			return found
		}
	}
}
