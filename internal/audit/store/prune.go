package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"time"
)

// Bounds of one step of pruning, which audit.db is not completed during.
const (
	pruneEntries = 20_000 // entries that one step removes, or as many as one commit has
	vacuumPages  = 2_000
)

// parts is how many parts a full record has, about: a part refers to nothing
// before it, and goes as a whole.
const parts = 16

// limits say when a record is pruned. The zero value keeps everything.
type limits struct {
	keep time.Duration // how old a part may become; 0: as old as it likes
	size int64         // of the record with its log and tail, in octets; 0: any
}

// pruner removes the oldest part of a record, in small steps, each of which
// leaves the record whole. It is used by the one who writes to the base.
type pruner struct {
	base   *base
	limits limits
	tail   func() int64 // octets of the tail
	anew   func()       // has the next commit begin a part that refers to nothing before it

	failed bool  // the last step
	begun  bool  // it is known what an earlier process left half done
	target int64 // the last commit of the part that is being removed; 0: none is

	part struct { // at work
		run          int64     // by which it is known; 0: it has just been asked for
		since        time.Time // when it began
		entries      int64     // that came before it
		grown, after int64     // octets that it has, and octets of the record at the last look
	}
}

// step does a part of what is to be done at now, and reports whether there is more.
func (p *pruner) step(ctx context.Context, now time.Time) (more bool, err error) {
	s, err := p.size(ctx)
	if err != nil {
		return false, err
	}
	if !p.begun {
		if err := p.resume(ctx); err != nil {
			return false, err
		}
		p.begun = true
	}
	p.grow(s, now)
	if p.target == 0 {
		if p.target, err = p.aim(ctx, s, now); err != nil {
			return false, err
		}
	}
	if p.target > 0 {
		return true, p.remove(ctx, now)
	}
	return p.vacuum(ctx, s)
}

// resume goes on with a part that an earlier process began to remove.
func (p *pruner) resume(ctx context.Context) error {
	s, err := p.base.stub(ctx)
	if err == nil && len(s.Kept) > 0 {
		p.target, _, err = p.base.partEnd(ctx, s.Last[Run])
	}
	return err
}

// grow has a new part begin when the one at work is long enough.
func (p *pruner) grow(s size, now time.Time) {
	w := &p.part
	if run := p.base.head.last[Run]; run != w.run {
		w.run, w.since, w.entries, w.grown, w.after = run, now, p.base.head.last[Entry], 0, s.used
		return
	}
	w.grown += max(0, s.used-w.after)
	w.after = s.used
	old := p.limits.keep > 0 && now.Sub(w.since) > p.limits.keep/parts
	large := p.limits.size > 0 && w.grown > p.limits.size/parts
	if (old || large) && p.base.head.last[Entry] > w.entries {
		p.renew()
	}
}

// renew has a new part begin.
func (p *pruner) renew() {
	p.anew()
	p.part.entries = math.MaxInt64 // until it has
}

// aim returns the last commit of the part that is to be removed now; 0: none.
func (p *pruner) aim(ctx context.Context, s size, now time.Time) (target int64, err error) {
	var oldest, run int64
	err = p.base.conn.QueryRowContext(ctx, "SELECT time, run FROM commits ORDER BY n LIMIT 1").Scan(&oldest, &run)
	if err != nil {
		return 0, ignoreNoRows(err)
	}
	end := micro(now.Add(-p.limits.keep))
	old := p.limits.keep > 0 && oldest < end
	large := p.limits.size > 0 && s.used > p.limits.size/10*9
	if !old && !large {
		return 0, nil
	}
	if run == p.base.head.last[Run] { // there is no part but the one at work
		if large && p.base.head.last[Entry] > p.part.entries {
			p.renew()
		}
		return 0, nil
	}
	target, last, err := p.base.partEnd(ctx, run)
	if err != nil || !large && last >= end {
		return 0, err
	}
	return target, nil
}

// partEnd returns the last commit of the part with this run, and its time; 0 when
// no part comes after it.
func (b *base) partEnd(ctx context.Context, run int64) (n, time int64, err error) {
	err = b.conn.QueryRowContext(ctx, "SELECT n - 1 FROM commits WHERE run > ? ORDER BY n LIMIT 1", run).Scan(&n)
	if err != nil {
		return 0, 0, ignoreNoRows(err)
	}
	err = b.conn.QueryRowContext(ctx, "SELECT time FROM commits WHERE n = ?", n).Scan(&time)
	return n, time, ignoreNoRows(err)
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

// remove removes some of the oldest commits, up to the target. With the last of
// them go the names of the part.
func (p *pruner) remove(ctx context.Context, now time.Time) error {
	before, done := p.base.head, false
	err := p.base.whole(ctx, func() error {
		s, err := p.base.stub(ctx)
		if err != nil {
			return err
		}
		to, err := p.base.oldest(s, p.target)
		if err != nil {
			return err
		}
		if done = to == nil; done {
			return nil
		}
		if err := p.base.take(ctx, s, to); err != nil {
			return err
		}
		if done = to.n == p.target; done {
			if err := p.base.dropNames(ctx, s); err != nil {
				return err
			}
		}
		return p.base.addStub(ctx, s, now)
	})
	if err != nil {
		p.base.head = before
		return err
	}
	if done {
		p.target = 0
	}
	return nil
}

// vacuum gives pages that are free back to the system when they are many or
// the file is too large, and reports whether there are more.
func (p *pruner) vacuum(ctx context.Context, s size) (more bool, err error) {
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
