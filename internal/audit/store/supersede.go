package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// supersede moves a record of an earlier layout, which has all rows of its tail, aside
// and begins a new one in its place, whose chain names the head of the old one.
func (w *Writer) supersede() error {
	old, head := w.db.store, w.db.head
	if err := w.closeFiles(); err != nil {
		return err
	}
	if err := DropWAL(w.path); err != nil {
		return err
	}
	aside, err := asideOf(w.path, w.db.layout)
	if err == nil {
		err = os.Rename(w.path, aside)
	}
	if err != nil {
		return fmt.Errorf("it has the layout of an earlier heed, and cannot be moved aside: %w\nMove it away with the files beside it, or name another file in [audit] file", err)
	}
	w.follows = fmt.Sprintf("record %s commit %d hash %s", old, head.n, hexOf(head.hash))
	w.o.Log.Warn("the record has the layout of an earlier heed: it was completed and moved, and a new one continues it",
		"file", w.path, "moved_to", aside, "commit", head.n, "head", hexOf(head.hash))
	return w.openFiles(lockTimeout)
}

// asideOf returns an unused name for the record at path, beside it.
func asideOf(path string, l layout) (string, error) {
	extension := filepath.Ext(path)
	base := fmt.Sprintf("%s.layout%d", strings.TrimSuffix(path, extension), l)
	for n := 1; ; n++ {
		name := base + extension
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", base, n, extension)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}
