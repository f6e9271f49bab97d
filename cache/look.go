package cache

import (
	"crypto/sha256"
	"time"

	"go.etcd.io/bbolt"
)

// lookPatience is how long a look into a file waits for who writes it.
const lookPatience = 50 * time.Millisecond

// LookInto returns a Keeper that finds what the file at path holds for one way
// to the sites, as File.Way keeps it, and changes nothing. It has the file open
// only while it looks, so that a heed can start meanwhile; a file that is
// missing, in use or damaged holds nothing.
func LookInto(path, id string) Keeper {
	sum := sha256.Sum256([]byte(id))
	return &lookWay{path, string(sum[:16])}
}

// lookWay is the Keeper of LookInto.
type lookWay struct{ path, prefix string }

// Load opens the file, looks and closes it.
func (w *lookWay) Load(key string) (record, snapshot []byte, ok bool) {
	err := guarded(func() error {
		db, err := bbolt.Open(w.path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lookPatience})
		if err != nil {
			return err
		}
		defer db.Close()
		record, snapshot, err = readBolt(db, w.prefix+key)
		return err
	})
	return record, snapshot, err == nil && record != nil
}

// Save saves nothing.
func (w *lookWay) Save(string, []byte, []byte) bool { return false }

// Drop drops nothing.
func (w *lookWay) Drop(string) bool { return false }
