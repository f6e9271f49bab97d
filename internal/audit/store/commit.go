package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// spelt is a row, and what it is in SQLite.
type spelt struct {
	octets []byte
	values []any
}

// sorted returns the rows by table, in the order in which a commit covers them.
func sorted(rows []byte) (all [len(tables)][]spelt, err error) {
	for len(rows) > 0 {
		t, values, rest, err := cutRow(rows)
		if err != nil {
			return all, err
		}
		all[t] = append(all[t], spelt{rows[:len(rows)-len(rest)], values})
		rows = rest
	}
	slices.SortStableFunc(all[Outcome], func(a, b spelt) int { return cmp.Compare(a.values[0].(int64), b.values[0].(int64)) })
	return all, nil
}

// add puts rows, as they were spelt one after the other, into audit.db as one
// commit. Whole or not at all.
func (b *base) add(rows []byte, now time.Time) error {
	all, err := sorted(rows)
	if err != nil {
		return err
	}
	c, err := b.chain(&all, now)
	if err != nil {
		return err
	}
	ctx := context.Background()
	err = b.whole(ctx, func() error {
		for t := Run; int(t) < len(tables); t++ {
			if err := b.insert(ctx, t, all[t]); err != nil {
				return err
			}
		}
		return b.insert(ctx, commits, []spelt{{values: c.values()}})
	})
	if err == nil {
		b.head = *c
	}
	return err
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
			if id, _ := row.values[0].(int64); id != *last+1 {
				return nil, fmt.Errorf("row %d of %s comes after row %d: the tail does not belong to this state of the record", id, t, *last)
			}
			*last++
		}
	}
	c.outcomes = int64(len(all[Outcome]))
	l := c.begin(b.head.hash)
	var spelling []byte
	for t := Run; int(t) < len(tables); t++ {
		for i := range all[t] {
			row := &all[t][i]
			if t == Outcome {
				row.values[1] = c.n
				spelling, _ = appendRow(spelling[:0], t, row.values) // of types that cutRow makes
				row.octets = spelling
			}
			l.cover(row.octets)
		}
	}
	l.end()
	return c, nil
}

// values returns c as its row.
func (c *commit) values() []any {
	values := []any{c.n, c.time}
	for _, id := range c.last[Run:] {
		values = append(values, id)
	}
	values = append(values, c.outcomes, c.exempt)
	if c.pruned == nil {
		values = append(values, nil)
	} else {
		values = append(values, c.pruned)
	}
	marks := c.marks
	if marks == nil {
		marks = []byte{}
	}
	return append(values, c.hash[:], marks)
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

// insertOnce adds as many rows as perStatement says at size.
func (b *base) insertOnce(ctx context.Context, t Table, size int, rows []spelt) error {
	statement := b.insertions[t][size]
	if statement == nil {
		var err error
		if statement, err = b.conn.PrepareContext(ctx, insertion(t, len(rows))); err != nil {
			return err
		}
		b.insertions[t][size] = statement
	}
	values := b.values[:0]
	for _, row := range rows {
		values = append(values, row.values...)
	}
	b.values = values
	_, err := statement.ExecContext(ctx, values...)
	clear(values)
	return err
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
