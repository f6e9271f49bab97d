package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heed/internal/audit/store"
	"heed/internal/base/ownfile"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/config/route"
)

// volume is a state directory that may be on a volume of a platform, which sets the
// permissions of a group whenever it attaches the volume (HEED_STATE_GROUP).
type volume struct {
	dir   string
	group int // -1: no group
	*ownfile.Reclaimed
}

// openVolume removes the permissions of the group from the state directory. The heed that
// calls it need not have the lock: one that serves keeps its files open.
func openVolume(dir string) (_ *volume, err error) {
	v := &volume{dir: dir, Reclaimed: &ownfile.Reclaimed{}}
	if v.group, err = ownfile.Group(); err != nil || v.group < 0 {
		return v, err
	}
	v.Reclaimed, err = ownfile.Reclaim(dir, v.group)
	return v, err
}

// check handles what the group could read or change: stored policies are discarded, since
// sites can be asked again; the record must be whole; everything else is named in the log. A
// directory above the state directory that others can change is named too.
func (v *volume) check(cfg *config.Config, dir string, log *slog.Logger) error {
	if who := ownfile.Parent(dir); who != "" {
		log.Warn("a user who can change a directory above the state directory can take it away, and heed would begin another", "state", dir, "what", who)
	}
	if v.group < 0 {
		return nil
	}
	log.Warn("the members of a group are trusted with the state directory ("+ownfile.GroupVariable+")", "group", v.group, "state", dir)
	if len(v.Readable) > 0 {
		log.Warn("files that only heed may read could be read by the group until now; if a program of the group is not trusted, make a new CA (heed ca renew)",
			"group", v.group, "files", v.base(v.Readable))
	}
	if len(v.Writable) > 0 {
		log.Warn("files of heed could be changed by the group until now", "group", v.group, "files", v.base(v.Writable))
	}
	if policies := route.PoliciesPath(cfg, dir); v.changed(policies) {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(policies + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("stored policies that a group could change cannot be discarded: %w", err)
			}
		}
		log.Warn("stored policies are discarded, since the group could change them: sites are asked again", "file", policies)
	}
	record := cmp.Or(cfg.Audit.File, filepath.Join(dir, state.AuditFile))
	if !cfg.Audit.Enabled || !v.changed(record) {
		return nil
	}
	proof, err := store.Verify(context.Background(), record, nil, nil)
	if err == nil && !proof.Whole {
		err = proof.Damage
	}
	if err != nil {
		return fmt.Errorf("the record %s, which group %d could change, is not whole: %w\nMove it and the files beside it away, and keep them; heed then begins a new record", record, v.group, err)
	}
	log.Info("the record is whole: its rows and hashes agree, though the group could change it", "file", record, "commit", proof.Head.Commit, "without_hash", proof.Waiting)
	return nil
}

// changed reports whether the group could change the file at path, or a file beside it whose
// name begins with its name.
func (v *volume) changed(path string) bool {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at
	}
	return slices.ContainsFunc(v.Writable, func(file string) bool { return strings.HasPrefix(file, path) })
}

// base returns the files relative to the state directory.
func (v *volume) base(files []string) []string {
	dir, err := filepath.EvalSymlinks(v.dir)
	if err != nil {
		dir = v.dir
	}
	short := make([]string, len(files))
	for i, file := range files {
		short[i] = file
		if rel, err := filepath.Rel(dir, file); err == nil {
			short[i] = rel
		}
	}
	return short
}
