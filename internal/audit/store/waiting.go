package store

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"time"
)

// viewWhole is View of a record that is completed from its tail before, unless
// a heed does that, or nobody may; and the mode in which it was opened.
func viewWhole(path string) (db *sql.DB, mode string, err error) {
	db, mode, err = view(path)
	if err != nil || !hasTail(path) {
		return db, mode, err
	}
	if err := Settle(path); err != nil && !errors.Is(err, fs.ErrPermission) && !cannotOpen(err) {
		db.Close()
		return nil, "", err
	}
	return db, mode, nil
}

// hasTail reports whether there is something in the tail of a record.
func hasTail(path string) bool {
	for _, name := range tailPaths(path) {
		if info, err := os.Stat(name); err == nil && info.Size() > tailStart {
			return true
		}
	}
	return false
}

// settled is how long a tail is not written before it is taken for one that no
// heed completes any more.
const settled = 5 * time.Second

// left counts the decisions after number last that no heed is about to complete
// from the tail.
func left(path, store string, last int64) (n int64) {
	for _, name := range tailPaths(path) {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) < settled {
			return 0
		}
	}
	return inTail(path, store, last)
}

// inTail counts the decisions after number last that the tail has of a record.
func inTail(path, store string, last int64) (n int64) {
	for _, b := range tailBlocks(path, store) {
		for rows := b.rows; len(rows) > 0; {
			t, values, rest, err := cutRow(rows)
			if err != nil {
				break
			}
			if id, _ := values[0].(int64); t == Entry && id > last {
				n++
			}
			rows = rest
		}
	}
	return n
}

// tailBlocks reads what the tail of a record has now, whoever writes it.
func tailBlocks(path, store string) (all []block) {
	for _, name := range tailPaths(path) {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if blocks, _, err := readBlocks(data, store); err == nil {
			all = append(all, blocks...)
		}
	}
	return all
}
