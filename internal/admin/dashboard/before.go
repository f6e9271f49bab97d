package dashboard

import (
	"context"
	"errors"
	"sync"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/reason"
)

// before returns the requests of the last 24 hours before the start, by the beginning of
// their period. It waits until firstMost decisions were counted, or ctx is done: when there
// are more, periods is nil and counting is true until all are counted.
func (d *record) before(ctx context.Context, start time.Time) (periods map[int64]*reason.Counts, counting bool) {
	if d.path == "" {
		return nil, false
	}
	d.seed.once.Do(func() {
		d.seed.soon, d.seed.done = make(chan struct{}), make(chan struct{})
		d.background(func() {
			soon := sync.OnceFunc(func() { close(d.seed.soon) })
			defer soon()
			defer close(d.seed.done)
			d.seed.periods, d.seed.err = d.countBefore(start, soon)
		})
	})
	select {
	case <-d.seed.soon:
	case <-ctx.Done():
	}
	select {
	case <-d.seed.done:
		return d.seed.periods, false
	default:
		return nil, true
	}
}

// countBefore counts the last seedMost decisions of the 24 hours before the start. It calls
// soon when firstMost of them are counted.
func (d *record) countBefore(start time.Time, soon func()) (map[int64]*reason.Counts, error) {
	ctx := d.ctx
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
	first = max(first, last-seedMost+1)
	for top := last; top >= first; top -= totalsStep {
		if last-top == firstMost {
			soon()
		}
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
