package store

import (
	"fmt"
	"math"
	"os"
	"time"
)

// Bounds of one step of pruning, during which audit.db is not completed.
const (
	pruneEntries = 20_000 // entries that one step removes; those of one commit may be more
	vacuumPages  = 2_000
)

// hashesShare is the part of the maximum size that hashes of removed commits may take.
const hashesShare = 8

// parts is the approximate number of parts of a full record. A part refers to no
// rows before it, and is removed as a whole.
const parts = 16

// limits say when a record is pruned. The zero value keeps everything.
type limits struct {
	keep time.Duration // maximum age of a part; 0: any
	size int64         // of the record with its log and tail, in octets; 0: any
}

// pruner removes the oldest part of a record in small steps, after each of which the
// record is valid. It is used by the goroutine that writes to audit.db.
type pruner struct {
	db      *database
	limits  limits
	tail    func() int64 // octets of the tail
	newPart func()       // begins a new part with the next commit

	large  bool  // the record was too large before the last step
	failed bool  // the last step failed
	begun  bool  // resume was called
	target int64 // the last commit of the part being removed; 0: none

	part struct { // the last one, still growing
		run          int64     // its first run; 0: not known yet
		since        time.Time // when it began
		entries      int64     // before it
		grown, after int64     // its octets, and those of the record at the last step
	}
}

// step does some of the pruning due at now, and reports whether there is more.
func (p *pruner) step(now time.Time) (more bool, err error) {
	s, err := p.size()
	if err != nil {
		return false, err
	}
	if !p.begun {
		if err := p.resume(); err != nil {
			return false, err
		}
		p.begun = true
	}
	p.grow(s, now)
	coming := min(2*p.tail(), p.limits.size/8) // audit.db takes what the tail has before that is emptied, while the tail grows
	p.large = p.limits.size > 0 && s.used+coming > p.limits.size/10*9
	if p.target == 0 {
		if p.target, err = p.chooseTarget(s, now); err != nil {
			return false, err
		}
	}
	if p.target > 0 && (s.free < vacuumPages || !p.tooLarge(s)) {
		return true, p.remove(now)
	}
	more, err = p.vacuum(s)
	return more || p.target > 0, err
}

// tooLarge reports whether the files are too large, with their free pages.
func (p *pruner) tooLarge(s size) bool { return p.limits.size > 0 && s.file > p.limits.size }

// resume continues the removal of a part that an earlier process began.
func (p *pruner) resume() error {
	s, err := p.db.stub()
	if err == nil && len(s.Kept) > 0 {
		p.target, _, err = p.db.partEnd(s.Last[runTable])
	}
	return err
}

// grow updates the size of the last part, and begins a new part when it is large or
// old enough.
func (p *pruner) grow(s size, now time.Time) {
	w := &p.part
	if run := p.db.head.last[runTable]; run != w.run {
		w.run, w.since, w.entries, w.grown, w.after = run, now, p.db.head.last[entryTable], 0, s.used
		return
	}
	w.grown += max(0, s.used-w.after)
	w.after = s.used
	old := p.limits.keep > 0 && now.Sub(w.since) > p.limits.keep/parts
	large := p.limits.size > 0 && w.grown > p.limits.size/parts
	if (old || large) && p.db.head.last[entryTable] > w.entries {
		p.startPart()
	}
}

// startPart begins a new part.
func (p *pruner) startPart() {
	p.newPart()
	p.part.entries = math.MaxInt64 // until it has begun
}

// chooseTarget returns the last commit of the part to remove now; 0: none.
func (p *pruner) chooseTarget(s size, now time.Time) (target int64, err error) {
	var oldest, run int64
	if err = p.db.row("SELECT time, run FROM commits ORDER BY n LIMIT 1", &oldest, &run); err != nil || run == 0 {
		return 0, err
	}
	end := micro(now.Add(-p.limits.keep))
	if old := p.limits.keep > 0 && oldest < end; !old && !p.large {
		return 0, nil
	}
	if run == p.db.head.last[runTable] { // there is only one part
		if p.large && p.db.head.last[entryTable] > p.part.entries {
			p.startPart()
		}
		return 0, nil
	}
	target, last, err := p.db.partEnd(run)
	if err != nil || !p.large && last >= end {
		return 0, err
	}
	return target, nil
}

// partEnd returns the last commit of the part of a run, and its time; 0 when it is
// the last part.
func (b *database) partEnd(run int64) (n, time int64, err error) {
	err = b.row(fmt.Sprintf("SELECT n, time FROM commits WHERE n = (SELECT n - 1 FROM commits WHERE run > %d ORDER BY n LIMIT 1)", run), &n, &time)
	return n, time, err
}

// size is the size of a record in octets, except free.
type size struct {
	used int64 // without free pages
	file int64 // with free pages
	free int64 // number of free pages
	page int64 // of one page
}

// size returns the size of the record with its tail and write-ahead log.
func (p *pruner) size() (s size, err error) {
	var pages int64
	if err = p.db.row("SELECT * FROM pragma_page_count, pragma_freelist_count, pragma_page_size", &pages, &s.free, &s.page); err != nil {
		return s, err
	}
	beside := p.tail()
	if info, err := os.Stat(p.db.path + "-wal"); err == nil {
		beside += info.Size()
	}
	s.file = pages*s.page + beside
	s.used = s.file - s.free*s.page
	return s, nil
}

// remove removes some of the oldest commits, up to the target, and with the last of
// them the names of the part.
func (p *pruner) remove(now time.Time) error {
	before, done := p.db.head, false
	err := p.db.InTransaction(func() error {
		s, err := p.db.stub()
		if err != nil {
			return err
		}
		to, err := p.db.oldest(s, p.target)
		if err != nil {
			return err
		}
		if done = to == nil; done {
			return nil
		}
		if err := p.db.removeCommits(s, to); err != nil {
			return err
		}
		if done = to.n == p.target; done {
			if err := p.db.dropNames(s); err != nil {
				return err
			}
		}
		if p.limits.size > 0 {
			if err := p.db.dropHashes(p.limits.size / hashesShare); err != nil {
				return err
			}
		}
		return p.db.addStub(s, now)
	})
	if err != nil {
		p.db.head = before
		return err
	}
	if done {
		p.target = 0
	}
	return nil
}

// vacuum releases free pages when there are many or the file is too large, and
// reports whether there are more.
func (p *pruner) vacuum(s size) (more bool, err error) {
	if s.free == 0 || !p.tooLarge(s) && s.free*s.page < s.file/2 {
		return false, nil
	}
	_, err = p.db.Exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages))
	return s.free > vacuumPages, err
}
