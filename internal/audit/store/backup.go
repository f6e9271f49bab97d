package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// patience is how long Backup waits for a heed to complete the record, which
// takes it a second.
const patience = 15 * time.Second

// Backup copies the record at path to the new file at to, as it is at one
// moment, with all that was decided before: a heed may be writing to it. The
// copy is one file, and is verified before it gets its name: nothing stands at
// to otherwise. progress is as in Verify.
func Backup(ctx context.Context, path, to string, progress func(done, all int64)) (*Proof, error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is there already\nName a new file for the backup", to)
	}
	db, _, err := viewWhole(path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := caughtUp(ctx, db, path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), ".heed-backup-*") // which nobody else can read
	if err != nil {
		return nil, fmt.Errorf("the backup cannot be written: %w\nName a file in a directory that you may write to", err)
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, filepath.Base(to))
	if err := copyTo(ctx, db, copied); err != nil {
		return nil, fmt.Errorf("the backup cannot be written: %w\nMake room, or name a file elsewhere", err)
	}
	proof, err := Verify(ctx, copied, nil, progress)
	if err != nil {
		return nil, err
	}
	if proof.File = path; !proof.Whole {
		return proof, nil
	}
	proof.File = to
	err = os.Link(copied, to) // which never takes another file's place, but which not every disk knows
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(copied, to)
	}
	if err != nil {
		return nil, fmt.Errorf("the backup cannot be put in its place: %w", err)
	}
	return proof, nil
}

// copyTo writes all of db into a file that its owner alone can read, and waits
// until it is on the disk.
func copyTo(ctx context.Context, db *sql.DB, to string) error {
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return err
	}
	return f.Sync()
}

// caughtUp waits until db has all decisions and outcomes that the tail has now.
func caughtUp(ctx context.Context, db *sql.DB, path string) error {
	b := &base{path: path, db: db}
	var err error
	if b.conn, err = db.Conn(ctx); err != nil {
		return err
	}
	defer b.conn.Close()
	if err := b.findHead(ctx); err != nil {
		return viewError(path, err)
	}
	blocks := tailBlocks(path, b.store)
	for end := time.Now().Add(patience); len(blocks) > 0; {
		if err := b.findHead(ctx); err != nil {
			return viewError(path, err)
		}
		missing, err := b.missing(nil, blocks[len(blocks)-1].rows)
		if err != nil || len(missing) == 0 {
			blocks = blocks[:len(blocks)-1] // and it has those before
			continue
		}
		if time.Now().After(end) {
			return fmt.Errorf("some decisions stand in the tail of %s alone, and no heed completes it\nSee `heed status`, or run this as the user who owns the record", path)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}
