package cache

import (
	"bytes"
	"errors"
	"time"

	"go.etcd.io/bbolt"
)

// writeBolt makes all changes in one transaction, and room for them before.
func writeBolt(db *bbolt.DB, limit int64, batch map[string]change, now time.Time) error {
	need := int64(0)
	for key, c := range batch {
		need += footprint(len(key), len(c.record)+len(c.snapshot))
	}
	return guarded(func() error {
		if err := makeRoom(db, limit-need, now); err != nil {
			return err
		}
		return db.Update(func(tx *bbolt.Tx) error { return changeAll(tx, batch, now) })
	})
}

func changeAll(tx *bbolt.Tx, batch map[string]change, now time.Time) error {
	w := newBoltWriter(tx, now)
	for key, c := range batch { // before what was saved for the families afterwards
		if c.family {
			if err := w.dropFamily([]byte(key)); err != nil {
				return err
			}
		}
	}
	for key, c := range batch {
		if err := w.change([]byte(key), c); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes the records written longest ago until about limit bytes of
// the file are in use, and those that nobody may use any more.
func makeRoom(db *bbolt.DB, limit int64, now time.Time) error {
	dead := appendAge(nil, now.Add(-maxFileAge), 0)
	excess, idle := int64(0), false
	look := func(tx *bbolt.Tx) error {
		stats := db.Stats()
		used := tx.Size() - int64(stats.FreePageN+stats.PendingPageN)*int64(db.Info().PageSize)
		excess = used - limit
		if tx.Size() > 2*limit { // long values want free room in one piece: make more of it
			excess += limit / 4
		}
		oldest, _ := tx.Bucket(boltAges).Cursor().First()
		idle = oldest == nil || excess <= 0 && bytes.Compare(oldest, dead) > 0
		return nil
	}
	if err := db.View(look); err != nil || idle {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		w := newBoltWriter(tx, now)
		for range maxRemoved {
			age, key := w.ages.Cursor().First()
			if age == nil || excess <= 0 && bytes.Compare(age, dead) > 0 {
				break
			}
			freed, err := w.remove(clone(key), clone(age))
			if err != nil {
				return err
			}
			excess -= freed
		}
		return nil
	})
}

// boltWriter is the buckets of one transaction.
type boltWriter struct {
	records, snapshots, ages *bbolt.Bucket
	now                      time.Time
	count                    uint32
}

func newBoltWriter(tx *bbolt.Tx, now time.Time) *boltWriter {
	w := &boltWriter{
		records: tx.Bucket(boltRecords), snapshots: tx.Bucket(boltSnapshots), ages: tx.Bucket(boltAges), now: now,
	}
	w.ages.FillPercent = 0.9 // written at its end alone
	return w
}

func (w *boltWriter) change(key []byte, c change) error {
	if err := w.forgetAge(key); err != nil {
		return err
	}
	if c.record == nil {
		return errors.Join(w.records.Delete(key), w.snapshots.Delete(key))
	}
	w.count++
	age := appendAge(nil, w.now, w.count)
	if err := errors.Join(w.ages.Put(age, key), w.records.Put(key, summed(key, age, c.record))); err != nil {
		return err
	}
	switch {
	case c.snapshot != nil:
		return w.snapshots.Put(key, summed(key, c.snapshot))
	case c.fresh:
		return w.snapshots.Delete(key)
	}
	return nil
}

// dropFamily removes all whose keys begin with head.
func (w *boltWriter) dropFamily(head []byte) error {
	for {
		key, _ := w.records.Cursor().Seek(head)
		if key == nil || !bytes.HasPrefix(key, head) {
			return nil
		}
		if err := w.change(clone(key), change{fresh: true}); err != nil {
			return err
		}
	}
}

// forgetAge removes when key was written last.
func (w *boltWriter) forgetAge(key []byte) error {
	value, err := checked(string(key), w.records.Get(key))
	if err != nil || len(value) < ageLen {
		return err
	}
	return w.ages.Delete(clone(value[:ageLen]))
}

// remove removes all of key, and returns about how many bytes that frees.
func (w *boltWriter) remove(key, age []byte) (freed int64, err error) {
	freed = footprint(len(key), len(w.records.Get(key))+len(w.snapshots.Get(key)))
	return freed, errors.Join(w.ages.Delete(age), w.records.Delete(key), w.snapshots.Delete(key))
}

// footprint is about how many bytes of the file a policy uses.
func footprint(key, values int) int64 { return int64(boltOverhead + 3*key + values) }
