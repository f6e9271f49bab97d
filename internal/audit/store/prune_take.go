package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// oldest returns the last of the commits after s, up to target, that one step
// removes; nil: there is none.
func (b *base) oldest(s *stub, target int64) (to *commit, err error) {
	err = b.read(func(r reader) error {
		at, err := r.openAt(commits, s.Through)
		defer at.close()
		for ; err == nil && at.id <= target; err = at.next() {
			c, err := readCommit(at)
			if err != nil || to != nil && c.last[Entry]-s.Last[Entry] > pruneEntries {
				return err
			}
			to = c
		}
		return err
	})
	return to, err
}

// take removes the commits after s up to c, and has s say so. Their names stay as
// long as a row of their part does.
func (b *base) take(ctx context.Context, s *stub, c *commit) error {
	if err := b.takenTimes(ctx, s, c); err != nil {
		return err
	}
	part := kept{Last: c.last}
	err := b.read(func(r reader) (err error) {
		part.Digest, err = r.digest(s.Last, c.last)
		return err
	})
	if err != nil {
		return err
	}
	outcomes, err := b.delete(ctx, "DELETE FROM outcome WHERE entry <= ? AND in_commit <= ?", c.last[Entry], c.n)
	if err != nil {
		return err
	}
	for _, d := range []struct {
		query string
		last  int64
	}{{"DELETE FROM entry WHERE seq <= ?", c.last[Entry]}, {"DELETE FROM exempt WHERE id <= ?", c.exempt}, {"DELETE FROM commits WHERE n <= ?", c.n}} {
		if _, err := b.delete(ctx, d.query, d.last); err != nil {
			return err
		}
	}
	s.Removed.Commits += c.n - s.Through
	s.Removed.Entries += c.last[Entry] - s.Last[Entry]
	s.Removed.Exempt += c.exempt - s.Exempt
	s.Removed.Outcomes += outcomes
	s.Kept = append(s.Kept, part)
	s.Through, s.Time, s.Last, s.Exempt, s.Hash = c.n, c.time, c.last, c.exempt, hexDigest(c.hash)
	return nil
}

// dropNames removes all names up to s: nothing that comes after refers to them.
func (b *base) dropNames(ctx context.Context, s *stub) error {
	for t := Run; t < lastTable; t++ {
		if _, err := b.delete(ctx, fmt.Sprintf("DELETE FROM %s WHERE id <= ?", t), s.Last[t]); err != nil {
			return err
		}
	}
	s.Kept = nil
	return nil
}

// digest digests the names after the ids from, up to the ids to.
func (r reader) digest(from, to lasts) (hexDigest, error) {
	d := newStaying()
	for t := Run; t < lastTable; t++ {
		at, err := r.openAt(t, from[t])
		for ; err == nil && at.id <= to[t]; err = at.next() {
			if at.row == nil {
				err = damaged(nil, t, at.id, isStrange)
				break
			}
			d.cover(at.row)
		}
		at.close()
		if err != nil {
			return hexDigest{}, err
		}
	}
	return d.end(), nil
}

// takenTimes notes from when to when the entries up to c are.
func (b *base) takenTimes(ctx context.Context, s *stub, c *commit) error {
	if c.last[Entry] == s.Last[Entry] {
		return nil
	}
	var first, last int64
	row := b.conn.QueryRowContext(ctx, "SELECT (SELECT time FROM entry WHERE seq = ?), (SELECT time FROM entry WHERE seq = ?)", s.Last[Entry]+1, c.last[Entry])
	if err := row.Scan(&first, &last); err != nil {
		return err
	}
	if s.Removed.From.IsZero() {
		s.Removed.From = moment(first)
	}
	s.Removed.To = moment(last)
	return nil
}

func (b *base) delete(ctx context.Context, query string, values ...any) (rows int64, err error) {
	result, err := b.conn.ExecContext(ctx, query, values...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// stub returns what was removed so far; an empty one when nothing was.
func (b *base) stub(ctx context.Context) (*stub, error) {
	var text []byte
	err := b.conn.QueryRowContext(ctx, "SELECT pruned FROM commits WHERE pruned IS NOT NULL ORDER BY n DESC LIMIT 1").Scan(&text)
	if err == nil {
		return readStub(text)
	}
	pairs, about := b.about(ctx)
	if about != nil {
		return nil, about
	}
	return &stub{Root: hexDigest(root(pairs))}, ignoreNoRows(err)
}

// addStub adds a commit over no rows that says what was removed.
func (b *base) addStub(ctx context.Context, s *stub, now time.Time) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	c := &commit{n: b.head.n + 1, time: max(micro(now), b.head.time), last: b.head.last, exempt: b.head.exempt, pruned: text}
	c.begin(b.head.hash).end()
	if err := b.insert(ctx, commits, []spelt{c.row()}); err != nil {
		return err
	}
	b.head = *c
	return nil
}
