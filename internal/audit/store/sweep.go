package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// sweep finds the names that nobody refers to any more: rows of removed commits
// that stayed when those were. It begins with all names forgotten, so that
// whatever is recorded from then on refers to rows that come from then on, and
// may then take as many steps as it likes.
type sweep struct {
	at, to int64                     // entries, and outcomes of entries, up to at are looked through
	live   [lastTable]map[int64]bool // rows that are referred to
}

// beginSweep begins to look for names that nobody refers to.
func (p *pruner) beginSweep(ctx context.Context) error {
	if err := p.forget(); err != nil {
		return err
	}
	s := &sweep{to: p.base.head.last[Entry]}
	for t := range s.live {
		s.live[t] = map[int64]bool{}
	}
	p.sweep = s
	return nil
}

// sweepOn looks through some more entries; after the last, it removes the names.
func (p *pruner) sweepOn(ctx context.Context, now time.Time) error {
	s := p.sweep
	if s.at < s.to {
		return p.base.read(s.look)
	}
	p.sweep = nil
	err := p.base.whole(ctx, func() error {
		stub, err := p.base.stub(ctx)
		if err != nil || stub.Through == 0 {
			return err
		}
		part := kept{Last: stub.Last}
		var dead [lastTable][]int64
		err = p.base.read(func(r reader) (err error) {
			if err = s.closure(r, stub.Last); err == nil {
				part.Digest, err = r.digest(lasts{}, stub.Last, s.among(&dead))
			}
			return err
		})
		if err != nil {
			return err
		}
		for t := Run; t < lastTable; t++ {
			if err := p.base.drop(ctx, t, dead[t]); err != nil {
				return err
			}
		}
		stub.Kept = []kept{part}
		return p.base.addStub(ctx, stub, now)
	})
	return p.base.settle(ctx, err)
}

// look notes what the next entries and their outcomes refer to.
func (s *sweep) look(r reader) error {
	var first int64
	err := r.query(fmt.Sprintf("SELECT seq FROM entry WHERE seq > %d ORDER BY seq LIMIT 1", s.at), func(v []driver.Value) error {
		first, _ = v[0].(int64)
		return nil
	})
	if err != nil {
		return err
	}
	from, to := s.at, max(s.at, first)+scanEntries
	between := func(key string) string { return fmt.Sprintf(" WHERE %s > %d AND %[1]s <= %[3]d", key, from, to) }
	err = r.query("SELECT asker, site, ground FROM entry"+between("seq"), func(v []driver.Value) error {
		s.mark(Asker, v[0])
		s.mark(Site, v[1])
		s.mark(Ground, v[2])
		return nil
	})
	if err != nil {
		return err
	}
	s.at = to
	return r.query("SELECT late FROM outcome"+between("entry")+" AND late IS NOT NULL", func(v []driver.Value) error {
		s.mark(Ground, v[0])
		return nil
	})
}

// mark notes that a row is referred to.
func (s *sweep) mark(t Table, id driver.Value) {
	if id, ok := id.(int64); ok {
		s.live[t][id] = true
	}
}

// closure notes what names refer to that are referred to themselves, or come
// after last: those of commits that stay.
func (s *sweep) closure(r reader, last lasts) error {
	for t := Ground; t >= Snapshot; t-- {
		at := r.columnsOf(t)
		err := r.query(at, func(v []driver.Value) error {
			if id, _ := v[0].(int64); id <= last[t] && !s.live[t][id] {
				return nil
			}
			for i, to := range t.references() {
				s.mark(to.to, v[i+1])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// columnsOf is the query for what the rows of t refer to.
func (reader) columnsOf(t Table) string {
	columns := []string{"id"}
	for _, to := range t.references() {
		columns = append(columns, t.columns()[to.column])
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + t.String()
}

// among tells which rows stay, and gathers the others. Runs stay: they are few,
// and one of them is at work.
func (s *sweep) among(dead *[lastTable][]int64) func(Table, int64) bool {
	return func(t Table, id int64) bool {
		if t == Run || s.live[t][id] {
			return true
		}
		dead[t] = append(dead[t], id)
		return false
	}
}

// digest digests the names after the ids from, up to the ids to, as far as
// they stay: nil is all.
func (r reader) digest(from, to lasts, stays func(Table, int64) bool) (hexDigest, error) {
	d := newStaying()
	for t := Run; t < lastTable; t++ {
		at, err := r.openAt(t, from[t])
		for ; err == nil && at.id <= to[t]; err = at.next() {
			if at.row == nil {
				err = damaged(nil, t, at.id, isStrange)
				break
			}
			if stays == nil || stays(t, at.id) {
				d.cover(at.row)
			}
		}
		at.close()
		if err != nil {
			return hexDigest{}, err
		}
	}
	return d.end(), nil
}

// drop removes the rows of t with these ids.
func (b *base) drop(ctx context.Context, t Table, ids []int64) error {
	stmt, err := b.conn.PrepareContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE id = ?", t))
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, id := range ids {
		if _, err := stmt.ExecContext(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
