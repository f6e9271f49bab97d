package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Bounds of one step of pruning, which audit.db is not completed during.
const (
	pruneEntries = 20_000 // entries that one step removes, or as many as one commit has
	scanEntries  = 200_000
	vacuumPages  = 2_000
)

// limits say when a record is pruned. The zero value keeps everything.
type limits struct {
	keep time.Duration // how old a commit may become; 0: as old as it likes
	size int64         // of the record with its log and tail, in octets; 0: any
}

// pruner removes the oldest commits of a record, in small steps, each of which
// leaves the record whole. It is used by the one who writes to the base.
type pruner struct {
	base   *base
	limits limits
	tail   func() int64 // octets of the tail
	forget func() error // forgets all names and completes audit.db with what refers to them

	round  bool // commits are being removed
	failed bool // the last step
	sweep  *sweep
}

// step does a part of what is to be done at now, and reports whether there is more.
func (p *pruner) step(ctx context.Context, now time.Time) (more bool, err error) {
	if p.sweep != nil {
		return true, p.sweepOn(ctx, now)
	}
	before, err := p.due(ctx, now)
	if err != nil {
		return false, err
	}
	if before > 0 {
		removed, err := p.remove(ctx, before, now)
		p.round = p.round || removed
		if removed || err != nil {
			return removed, err
		}
	}
	if p.round {
		err := p.beginSweep(ctx)
		p.round = err != nil
		return true, err
	}
	return p.vacuum(ctx)
}

// due returns the time, in microseconds, before which commits are to be
// removed now; 0: none.
func (p *pruner) due(ctx context.Context, now time.Time) (before int64, err error) {
	var oldest int64
	err = p.base.conn.QueryRowContext(ctx, "SELECT time FROM commits ORDER BY n LIMIT 1").Scan(&oldest)
	if err != nil {
		return 0, ignoreNoRows(err)
	}
	if p.limits.keep > 0 {
		end := now.Add(-p.limits.keep)
		slack := min(p.limits.keep/100, 24*time.Hour) // rounds are worth their while
		if p.round {
			slack = 0
		}
		if oldest < micro(end.Add(-slack)) {
			before = micro(end)
		}
	}
	if p.limits.size > 0 {
		s, err := p.size(ctx)
		if err != nil {
			return 0, err
		}
		high := p.limits.size / 20 * 18
		if p.round {
			high = p.limits.size / 20 * 17
		}
		if s.used > high {
			before = micro(now) + 1
		}
	}
	return before, nil
}

// size is how much room a record takes, in octets.
type size struct {
	used int64 // by what is in it
	file int64 // with what is free for what is to come
	free int64 // pages
	page int64
}

// size measures the record with what stands beside it.
func (p *pruner) size(ctx context.Context) (s size, err error) {
	var pages int64
	for pragma, into := range map[string]*int64{"page_count": &pages, "freelist_count": &s.free, "page_size": &s.page} {
		if err := p.base.conn.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(into); err != nil {
			return s, err
		}
	}
	beside := p.tail()
	if info, err := os.Stat(p.base.path + "-wal"); err == nil {
		beside += info.Size()
	}
	s.file = pages*s.page + beside
	s.used = s.file - s.free*s.page
	return s, nil
}

// remove removes the oldest commits made before the given time, some of them,
// but for the last one there is. It reports whether there were any.
func (p *pruner) remove(ctx context.Context, before int64, now time.Time) (removed bool, err error) {
	err = p.base.whole(ctx, func() error {
		s, err := p.base.stub(ctx)
		if err != nil {
			return err
		}
		to, err := p.base.oldest(s, before)
		if err != nil || to == nil {
			return err
		}
		removed = true
		if err := p.base.take(ctx, s, to); err != nil {
			return err
		}
		return p.base.addStub(ctx, s, now)
	})
	return removed && err == nil, p.base.settle(ctx, err)
}

// oldest returns the last of the oldest commits after s that one step removes;
// nil: none, or none that covers a row.
func (b *base) oldest(s *stub, before int64) (to *commit, err error) {
	rows := 0
	err = b.read(func(r reader) error {
		at, err := r.openAt(commits, s.Through)
		defer at.close()
		for ; err == nil && at.id < b.head.n; err = at.next() {
			c, err := readCommit(at)
			if err != nil || c.time >= before || to != nil && c.last[Entry]-s.Last[Entry] > pruneEntries {
				return err
			}
			to, rows = c, rows+len(c.marks)
		}
		return err
	})
	if rows == 0 {
		to = nil
	}
	return to, err
}

// take removes the commits after s up to c, and has s say so. What later rows
// may refer to stays.
func (b *base) take(ctx context.Context, s *stub, c *commit) error {
	if err := b.takenTimes(ctx, s, c); err != nil {
		return err
	}
	part := kept{Last: c.last}
	err := b.read(func(r reader) (err error) {
		part.Digest, err = r.digest(s.Last, c.last, nil)
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

// settle finds the head again after a change that failed.
func (b *base) settle(ctx context.Context, err error) error {
	if err != nil {
		_ = b.findHead(ctx) // it fails again when it is needed
	}
	return err
}

// vacuum gives pages that are free back to the system when they are many or
// the file is too large, and reports whether there are more.
func (p *pruner) vacuum(ctx context.Context) (more bool, err error) {
	s, err := p.size(ctx)
	if err != nil {
		return false, err
	}
	tooLarge := p.limits.size > 0 && s.file > p.limits.size
	if s.free == 0 || !tooLarge && s.free*s.page < s.file/2 {
		return false, nil
	}
	return s.free > vacuumPages, p.base.exec(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages))
}

func ignoreNoRows(err error) error {
	if err == sql.ErrNoRows {
		return nil
	}
	return err
}
