package dashboard

import (
	"context"
	"errors"
	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/reason"
	"time"
)

// before returns the requests of the last 24 hours before the start, by the beginning of
// their period; nil while they are being counted, which is noted in counting.
func (d *record) before(start time.Time) (periods map[int64]*reason.Counts, counting bool) {
	if d.path == "" {
		return nil, false
	}
	d.seed.once.Do(func() {
		d.seed.done = make(chan struct{})
		go func() {
			defer close(d.seed.done)
			d.seed.periods, d.seed.err = d.countBefore(start)
		}()
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
	ctx, cancel := context.WithTimeout(context.Background(), seedBudget)
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
	f := store.Filter{From: start.Add(-oneDay), To: start}
	if f.First, err = reader.SeqAt(f.From); err != nil {
		return nil, err
	}
	all := map[int64]*reason.Counts{}
	var bad error
	err = reader.Totals(&f, audit.PeriodLength, nil, func(n *store.Total) {
		b, err := d.basis(reader, n.Basis)
		if err != nil {
			bad = err
		}
		class := b.class
		if class == reason.Allowed && n.Failed {
			class = reason.Failed
		}
		count(all, n.Period)[class] += n.Requests
	})
	return all, errors.Join(err, bad)
}
