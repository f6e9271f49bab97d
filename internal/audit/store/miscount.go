package store

import (
	"context"
	"fmt"
	"strings"
)

// Miscount describes the rows that commits of the record cover and that are missing, and the
// rows that no commit covers; it returns an empty text when there are none. It counts rows
// and computes no hashes: only Verify finds a value that was changed.
func (r *Record) Miscount(ctx context.Context) (string, error) {
	reader, err := r.Read(ctx)
	if err != nil {
		return "", err
	}
	defer reader.Close()
	b := &database{conn: reader.conn}
	if err := b.findHead(); err != nil {
		return "", viewError(r.Path, err)
	}
	s, err := b.stub()
	if err != nil {
		return "", viewError(r.Path, err)
	}
	var found []string
	note := func(n int64, t table, what string) {
		if n > 0 {
			found = append(found, fmt.Sprintf("%d %s in the table %s", n, what, t))
		}
	}
	for t := commits; t <= exemptTable; t++ {
		missing, extra, err := b.miscount(s, t)
		if err != nil {
			return "", viewError(r.Path, err)
		}
		note(missing, t, "missing")
		note(extra, t, "added")
	}
	return strings.Join(found, ", "), nil
}

// miscount returns how many rows of t are missing after the stub s, up to the last commit, and
// how many are after it.
func (b *database) miscount(s *stub, t table) (missing, extra int64, err error) {
	column, from, to := tables[t].columns[0], s.Through, b.head.n
	switch {
	case t == outcomeTable:
		column = "in_commit"
	case t == exemptTable:
		from, to = s.Exempt, b.head.exempt
	case t != commits:
		from, to = s.Last[t], b.head.last[t]
	}
	covered := fmt.Sprint(to - from)
	if t == outcomeTable {
		covered = fmt.Sprintf("CAST((SELECT total(outcomes) FROM commits WHERE n > %d) AS INTEGER)", from)
	}
	query := fmt.Sprintf("SELECT %s - count(*) FILTER (WHERE %s <= %d), count(*) FILTER (WHERE %[2]s > %[3]d) FROM main.%[4]s WHERE %[2]s > %[5]d", covered, column, to, t, from)
	err = b.each(query, func(f *fields) error {
		missing, extra = f.integer(), f.integer()
		return nil
	})
	return missing, extra, err
}
