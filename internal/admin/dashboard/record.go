package dashboard

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"heed/internal/audit/store"
	"heed/internal/reason"
)

// Bounds of what a page reads of the record. They are numbers of decisions, so that a page
// shows the same on a busy machine: what is read in a second differs by a factor of ten.
const (
	dayMost    = 100_000          // compared by a search of the last 24 hours
	wideMost   = 1_000_000        // compared by a wider search
	firstMost  = 10_000           // counted before a page is sent
	totalsMost = 100_000          // counted for the lists of the last 24 hours
	seedMost   = 5_000_000        // counted of before the start
	totalsStep = 2_500            // counted at a time
	maxReaders = 4                // pages that read at the same time
	maxWaiting = 16               // pages that wait for one of them to end
	totalsAge  = 30 * time.Second // for which counts are shown again
	totalsKept = 5 * time.Minute  // for which they are preferred to counts of less
	maxKept    = 1 << 16          // names that are remembered, of each kind

	oneDay = 24 * time.Hour
)

// record reads the record for pages. The zero value with a path and a clock is ready.
type record struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	open    *store.Record // nil: not opened yet
	readers chan struct{}
	waiting int // pages that wait for a reader to end

	ctx    context.Context // ends what is counted in the background
	cancel context.CancelFunc
	work   sync.WaitGroup
	log    *slog.Logger

	counting sync.Mutex // held for one step of counting: it takes no more than one CPU

	totals struct {
		sync.Mutex
		made   time.Time
		latest *totals
		err    error
		first  chan struct{} // closed with the first result of a count; nil: nothing is counted
	}
	seed struct {
		once sync.Once
		soon chan struct{} // closed when firstMost decisions were counted, or all
		done chan struct{}
		// Set when done is closed: the requests before the start, by the beginning of
		// their period in microseconds, and why they could not be counted.
		periods map[int64]*reason.Counts
		err     error
	}
	names struct {
		sync.Mutex
		bases   map[int64]basis
		clients map[int64]*store.Client
	}
}

// basis is what the pages show of a store.Basis.
type basis struct {
	class reason.Class
	store.Verdict
}

// acquire returns the record, when maxReaders pages read it after one of them has ended: each
// ends, since it reads a limited number of decisions. When maxWaiting pages wait for that
// already, it returns errBusy. The caller calls release.
func (d *record) acquire(ctx context.Context) (r *store.Record, release func(), err error) {
	if d.path == "" {
		return nil, nil, errNoRecord
	}
	d.mu.Lock()
	if d.readers == nil {
		d.readers = make(chan struct{}, maxReaders)
	}
	if d.open == nil {
		d.open, err = store.OpenRecord(d.path)
	}
	r = d.open
	crowded := d.waiting >= maxWaiting
	if !crowded {
		d.waiting++
		defer d.stopWaiting()
	}
	d.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &shownError{404, "The record cannot be found.\nIt is made when heed starts; see heed status."}
	}
	if err != nil {
		return nil, nil, err
	}
	if crowded {
		return nil, nil, errBusy
	}
	select {
	case d.readers <- struct{}{}:
		return r, func() { <-d.readers }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

func (d *record) stopWaiting() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
}

// prepare opens the record, which takes longer than a page may when it is large. An error
// is that of the first page.
func (d *record) prepare() {
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if _, release, err := d.acquire(context.Background()); err == nil {
		release()
	}
}

// background runs a task beside the pages until close. A fault in it is logged, and does
// not end heed.
func (d *record) background(task func()) {
	d.work.Go(func() {
		defer logFault(d.log, "the dashboard could not count the record")
		task()
	})
}

// close ends what is counted in the background.
func (d *record) close() {
	d.cancel()
	d.work.Wait()
}
