package store

import (
	"errors"
	"fmt"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Damage is the first thing found in a record that is not as heed wrote it.
type Damage struct {
	Table  string    `json:"table,omitempty"` // empty: the file itself
	ID     int64     `json:"id,omitempty"`    // of the row; 0: none of them can be named
	Commit int64     `json:"commit"`          // the commit that covers the row
	Time   time.Time `json:"time,omitzero"`   // of that commit; zero: not known
	What   string    `json:"what"`            // what differs
	Means  string    `json:"means"`           // what follows from it
}

// Error says where the damage is and what it is.
func (d *Damage) Error() string {
	where := "the file"
	if d.Table != "" {
		where = d.Table
	}
	if d.ID != 0 {
		where += fmt.Sprintf(" %d", d.ID)
	}
	if d.Commit > 0 {
		where += fmt.Sprintf(", in commit %d", d.Commit)
	}
	if !d.Time.IsZero() {
		where += " of " + d.Time.Format(time.RFC3339)
	}
	return where + ": " + d.What
}

// What was found of a row.
const (
	isChanged  = "the row is not as it was written"
	isGone     = "the row is missing"
	isStrange  = "the row has a value of a kind that heed never writes"
	isExtra    = "no commit covers this row"
	linkBroken = "the hash does not fit"
)

// damaged is the damage of a row of t in the commit c.
func damaged(c *commit, t Table, id int64, what string) *Damage {
	d := &Damage{Table: t.String(), ID: id, What: what}
	if c != nil && c.n > 0 {
		d.Commit, d.Time = c.n, moment(c.time)
		d.Means = fmt.Sprintf("Something was changed, added or removed after heed wrote it. All before commit %d is as it was written; of what comes from there on nothing is proved.", c.n)
	}
	return d
}

// uncovered is the damage of a row after the last commit, c.
func uncovered(c *commit, t Table, id int64) *Damage {
	return &Damage{Table: t.String(), ID: id, Commit: 0, What: isExtra,
		Means: fmt.Sprintf("It was added by something else than heed, or the commit that covered it was removed. All up to commit %d is as it was written.", c.n)}
}

// broken says whether SQLite could not read a file because of what is in it,
// and as what damage that counts.
func broken(err error) *Damage {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_IOERR:
		return &Damage{What: "SQLite cannot read it: " + e.Error(),
			Means: "The file is damaged below its rows: by a disk, a copy that broke off, or by hand. Take a backup of it (heed audit backup makes them)."}
	}
	return nil
}

// moment is the time that a row spells as microseconds since 1970.
func moment(micro int64) time.Time { return time.UnixMicro(micro).UTC() }
