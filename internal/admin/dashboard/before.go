package dashboard

import (
	"context"
	"errors"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/reason"
)

// before returns the requests of the last 24 hours before the start, by the beginning of
// their period; nil while they are being counted, which is noted in counting.
func (d *record) before(start time.Time) (periods map[int64]*reason.Counts, counting bool) {
	if d.path == "" {
		return nil, false
	}
	d.seed.once.Do(func() {
		d.seed.done = make(chan struct{})
		d.background(func() {
			defer close(d.seed.done)
			d.seed.periods, d.seed.err = d.countBefore(start)
		})
	})
	select {
	case <-d.seed.done:
		return d.seed.periods, false
	case <-time.After(seedWait):
		return nil, true
	}
}

// seedWait is how long a page waits for the counts of before the start.
const seedWait = 30 * time.Millisecond

func (d *record) countBefore(start time.Time) (map[int64]*reason.Counts, error) {
	ctx, cancel := context.WithTimeout(d.ctx, seedBudget)
	defer cancel()
	r, release, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	reader, err := r.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	from := start.Add(-oneDay)
	first, err := reader.SeqAt(from)
	if err != nil {
		return nil, err
	}
	_, last, err := reader.Range()
	if err != nil {
		return nil, err
	}
	all, revised := map[int64]*reason.Counts{}, [][]byte{}
	for top := last; top >= first; top -= totalsStep {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ids, err := reader.Revised(max(first, top-totalsStep+1), top)
		if err != nil {
			return nil, err
		}
		revised = append(revised, ids...)
		window := store.Filter{From: from, To: start, First: max(first, top-totalsStep+1), Last: top}
		if err := d.countPeriods(reader, &window, revised, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// countPeriods adds the requests in a window to all, by period.
func (d *record) countPeriods(r *store.Reader, window *store.Filter, revised [][]byte, all map[int64]*reason.Counts) (bad error) {
	d.counting.Lock()
	defer d.counting.Unlock()
	err := r.Totals(window, audit.PeriodLength, revised, func(n *store.Total) {
		b, err := d.basis(r, n.Basis)
		if err != nil {
			bad = err
		}
		class := b.class
		if class == reason.Allowed && n.Failed {
			class = reason.Failed
		}
		count(all, n.Period)[class] += n.Requests
	})
	return errors.Join(err, bad)
}
