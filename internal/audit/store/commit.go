package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// add puts rows, as they were spelt one after the other, into audit.db as one
// commit, or as one for each run. Whole or not at all.
func (b *base) add(rows []byte, now time.Time) error {
	defer b.sorting.clear()
	ctx, before := context.Background(), b.head
	err := b.whole(ctx, func() (err error) {
		for len(rows) > 0 && err == nil {
			rows, err = b.addOne(ctx, rows, now)
		}
		return err
	})
	if err != nil {
		b.head = before
	}
	return err
}

// addOne puts those of rows that one commit covers into audit.db, and returns
// the others.
func (b *base) addOne(ctx context.Context, rows []byte, now time.Time) (rest []byte, err error) {
	all := &b.sorting
	if rest, err = all.of(rows, b.head.n+1); err != nil {
		return nil, err
	}
	c, err := b.chain(&all.rows, now)
	if err != nil {
		return nil, err
	}
	for t := Run; int(t) < len(tables); t++ {
		if err := b.insert(ctx, t, all.rows[t]); err != nil {
			return nil, err
		}
	}
	if err := b.insert(ctx, commits, []spelt{c.row()}); err != nil {
		return nil, err
	}
	b.head = *c
	return rest, nil
}

// chain returns the commit over all, which come after the last one.
func (b *base) chain(all *[len(tables)][]spelt, now time.Time) (*commit, error) {
	c := &commit{n: b.head.n + 1, time: max(micro(now), b.head.time), last: b.head.last, exempt: b.head.exempt}
	for t := Run; int(t) < len(tables); t++ {
		if t == Outcome {
			continue
		}
		last := &c.exempt
		if t <= lastTable {
			last = &c.last[t]
		}
		for _, row := range all[t] {
			if row.id != *last+1 {
				return nil, fmt.Errorf("row %d of %s comes after row %d: %w", row.id, t, *last, errApart)
			}
			*last++
		}
	}
	c.outcomes = int64(len(all[Outcome]))
	l := c.begin(b.head.hash)
	for t := Run; int(t) < len(tables); t++ {
		for _, row := range all[t] {
			l.cover(row.octets)
		}
	}
	l.end()
	return c, nil
}

// row returns c as its table has it.
func (c *commit) row() spelt {
	return spelt{c.n, appendBlob(appendBlob(c.appendTo(nil), c.hash[:]), c.marks)}
}

// insert adds rows to t, many with one statement.
func (b *base) insert(ctx context.Context, t Table, rows []spelt) error {
	for len(rows) > 0 {
		size := 0
		for size+1 < len(perStatement) && perStatement[size] > len(rows) {
			size++
		}
		n := perStatement[size]
		if err := b.insertOnce(ctx, t, size, rows[:n]); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		rows = rows[n:]
	}
	return nil
}

// insertOnce adds as many rows as perStatement says at size. It speaks to the
// driver itself: database/sql would look at each value and copy it.
func (b *base) insertOnce(ctx context.Context, t Table, size int, rows []spelt) error {
	values := b.values[:0]
	for _, row := range rows {
		rest := row.octets[1:]
		for len(rest) > 0 {
			v := driver.NamedValue{Ordinal: len(values) + 1}
			var err error
			if v.Value, rest, err = cutValue(rest); err != nil {
				return err
			}
			values = append(values, v)
		}
	}
	b.values = values
	defer clear(values)
	return b.conn.Raw(func(conn any) error {
		statement := b.insertions[t][size]
		if statement == nil {
			prepared, err := conn.(driver.ConnPrepareContext).PrepareContext(ctx, insertion(t, len(rows)))
			if err != nil {
				return err
			}
			statement = prepared.(statementOf)
			b.insertions[t][size] = statement
		}
		_, err := statement.ExecContext(ctx, values)
		return err
	})
}

// statementOf is a statement of the driver.
type statementOf interface {
	driver.Stmt
	driver.StmtExecContext
}

// insertion is the statement that adds n rows.
func insertion(t Table, n int) string {
	row := "(?" + strings.Repeat(",?", len(t.columns())-1) + ")"
	return "INSERT INTO " + t.String() + " VALUES " + row + strings.Repeat(","+row, n-1)
}

// last returns the last number of each table.
func (b *base) last() (last [len(tables)]int64) {
	copy(last[:], b.head.last[:])
	last[Exempt] = b.head.exempt
	return last
}

// missing adds to found those of rows, one after the other, that audit.db does
// not have.
func (b *base) missing(found, rows []byte) ([]byte, error) {
	last := b.last()
	for len(rows) > 0 {
		t, values, rest, err := cutRow(rows)
		if err != nil {
			return nil, err
		}
		id, _ := values[0].(int64)
		has := t != Outcome && id <= last[t]
		if t == Outcome && id <= last[Entry] {
			if has, err = b.hasOutcome(id); err != nil {
				return nil, err
			}
		}
		if !has {
			found = append(found, rows[:len(rows)-len(rest)]...)
		}
		rows = rest
	}
	return found, nil
}

// hasOutcome reports whether the outcome of an entry is there, or was pruned
// with its entry.
func (b *base) hasOutcome(entry int64) (has bool, err error) {
	row := b.conn.QueryRowContext(context.Background(),
		"SELECT EXISTS (SELECT 1 FROM outcome WHERE entry = ?1) OR NOT EXISTS (SELECT 1 FROM entry WHERE seq = ?1)", entry)
	err = row.Scan(&has)
	return has, err
}
