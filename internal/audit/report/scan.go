package report

import (
	"database/sql"
	"fmt"
)

// entry is what a report needs of a decision and its outcome.
type entry struct {
	seq, time, asker   int64
	site, late, ground int64 // late: the verdict that came after; 0: there is none
	waited, asked      sql.NullInt64
	status, fromSite   sql.NullInt64 // not valid: how it ended is not recorded
	bytesOut           sql.NullInt64
	method             sql.RawBytes // these two only for conduct
	target             sql.RawBytes
}

// A decision that another one takes back is not counted: both are about one
// request, and the later one stands.
const (
	standing = `e.id NOT IN (SELECT revises FROM entry WHERE revises IS NOT NULL)`
	entries  = `SELECT e.seq, e.time, e.asker, coalesce(e.site, 0), coalesce(o.late, 0), e.ground, e.waited, e.asked, o.status, o.from_site, o.bytes_out%s
		FROM entry e LEFT JOIN outcome o ON o.entry = e.seq
		WHERE e.time >= ? AND e.time < ? AND ` + standing + ` ORDER BY e.seq`
	told = 8192 // decisions between two words about the progress
)

// scan calls row for every decision of r in the query's window, in the order of
// the record. What row is given is good until it returns.
func (b *builder) scan(r Record, row func(*entry) error) error {
	from, to := b.query.window()
	more := ""
	var e entry
	columns := []any{&e.seq, &e.time, &e.asker, &e.site, &e.late, &e.ground, &e.waited, &e.asked, &e.status, &e.fromSite, &e.bytesOut}
	if b.query.Conduct {
		more, columns = ", e.method, e.target", append(columns, &e.method, &e.target)
	}
	n := 0
	return each(r, fmt.Sprintf(entries, more), func(scan scanner) error {
		if err := scan(columns...); err != nil {
			return err
		}
		if n++; n%told == 0 && b.query.Progress != nil {
			b.query.Progress(b.before+e.seq-b.first, b.all)
		}
		return row(&e)
	}, from, to)
}

// extent is where a record begins and ends.
type extent struct {
	first, last int64 // entry.seq
	from, to    int64 // entry.time
	n           int64
}

// extent reads how much there is in r.
func extentOf(r Record) (x extent, err error) {
	err = each(r, "SELECT coalesce(min(seq), 1), coalesce(max(seq), 0), coalesce(min(time), 0), coalesce(max(time), 0), count(*) FROM entry", func(scan scanner) error {
		return scan(&x.first, &x.last, &x.from, &x.to, &x.n)
	})
	return x, err
}
