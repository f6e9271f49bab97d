package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heed/internal/audit/store/wal"
)

// completeTimeout is how long Backup waits for a running heed to complete the
// record, which takes about a second.
const completeTimeout = 15 * time.Second

// Backup copies a snapshot of the record at path, with all earlier decisions, to
// the new file at to; a heed may be writing to the record. The copy is one file.
// It is verified first: if it is damaged, the Proof says how, and no file is
// created at to. Decisions that only the tail has, of a record that cannot be written, are
// not in it: Proof.Waiting counts them. progress is as in Verify.
func Backup(ctx context.Context, path, to string, progress func(done, all int64)) (*Proof, error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is there already\nName a new file for the backup", to)
	}
	c, waiting, err := viewComplete(ctx, path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	dir, err := os.MkdirTemp(filepath.Dir(to), ".heed-backup-*") // readable by this user only
	if err != nil {
		return nil, fmt.Errorf("the backup cannot be written: %w\nName a file in a directory that you may write to", err)
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, filepath.Base(to))
	if err := c.CopyTo(copied); err != nil {
		return nil, fmt.Errorf("the backup cannot be written: %w\nMake room, or name a file elsewhere", err)
	}
	proof, err := Verify(ctx, copied, nil, progress)
	if err != nil {
		return nil, err
	}
	if proof.File, proof.Waiting = path, waiting; !proof.Whole {
		return proof, nil
	}
	proof.File = to
	err = os.Link(copied, to) // never replaces a file, but not every file system supports it
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(copied, to)
	}
	if err != nil {
		return nil, fmt.Errorf("the backup cannot be put in its place: %w", err)
	}
	return proof, nil
}

// waitComplete waits until the database has all rows that the tail has now. It returns
// an error after the timeout.
func waitComplete(c *conn, timeout time.Duration) error {
	if err := c.findHead(); err != nil {
		return viewError(c.path, err)
	}
	blocks := wal.Blocks(c.path, c.store, false)
	for end := time.Now().Add(timeout); len(blocks) > 0; {
		if err := c.findHead(); err != nil {
			return viewError(c.path, err)
		}
		if missing, err := c.missing(nil, blocks[len(blocks)-1].Rows); err != nil || len(missing) == 0 {
			blocks = blocks[:len(blocks)-1] // and it has those before
			continue
		}
		if time.Now().After(end) {
			return fmt.Errorf("some decisions are only in the tail of %s, and no heed completes it\nSee `heed status`, or run this as the user who owns the record", c.path)
		}
		select {
		case <-c.Context.Done():
			return c.Context.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}
