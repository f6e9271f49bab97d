package dashboard

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"heed/internal/audit/store"
	"heed/internal/judge/reason"
)

// Bounds of what a page reads of the record. They are numbers of decisions, so that a page
// shows the same on a busy machine: what is read in a second differs by a factor of ten.
const (
	dayMost    = 100_000          // compared by a search of the last 24 hours
	wideMost   = 1_000_000        // compared by a wider search
	totalsMost = 100_000          // rows of counts that the lists of the last 24 hours are made of
	maxReaders = 4                // pages that read at the same time
	maxWaiting = 16               // pages that wait for one of them to end
	totalsAge  = 30 * time.Second // for which counts are shown again

	oneDay = 24 * time.Hour
)

// record reads the record for pages. Make it with openedRecord.
type record struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	open *store.Record // nil: not opened yet

	pages   chan struct{} // holds one for each page that reads, or waits for that
	readers chan struct{} // holds one for each page that reads

	totals struct { // of the last 24 hours
		sync.Mutex
		made   time.Time
		latest *totals // nil: not made yet
	}
	earlier struct { // see before
		sync.Mutex
		periods map[int64]*reason.Counts // nil: not read yet
	}
}

// openedRecord returns the record at path; an empty path means that there is none. It opens
// the record, which takes longer than a page may when it is large. An error is that of the
// first page.
func openedRecord(path string, now func() time.Time) *record {
	d := &record{path: path, now: now, pages: make(chan struct{}, maxReaders+maxWaiting), readers: make(chan struct{}, maxReaders)}
	if _, release, err := d.acquire(context.Background()); err == nil {
		release()
	}
	return d
}

// acquire returns the record, when maxReaders pages read it after one of them has ended: each
// ends, since it reads a limited number of decisions. When maxWaiting pages wait for that
// already, it returns errBusy. The caller calls release.
func (d *record) acquire(ctx context.Context) (r *store.Record, release func(), err error) {
	if d.path == "" {
		return nil, nil, errNoRecord
	}
	d.mu.Lock()
	if d.open == nil {
		d.open, err = store.OpenRecord(d.path)
	}
	r = d.open
	d.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		err = &shownError{404, "The record cannot be found.\nIt is made when heed starts; see heed status."}
	}
	if err != nil {
		return nil, nil, err
	}
	select {
	case d.pages <- struct{}{}:
	default:
		return nil, nil, errBusy
	}
	select {
	case d.readers <- struct{}{}:
		return r, d.release, nil
	case <-ctx.Done():
		<-d.pages
		return nil, nil, ctx.Err()
	}
}

func (d *record) release() {
	<-d.readers
	<-d.pages
}

// read calls do with a reader of the record.
func (d *record) read(ctx context.Context, do func(*store.Reader) error) error {
	r, release, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	reader, err := r.Read(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	return do(reader)
}

// before returns the requests of the last 24 hours before the start, by the beginning of
// their period in microseconds.
func (d *record) before(ctx context.Context, start time.Time) (map[int64]*reason.Counts, error) {
	d.earlier.Lock()
	defer d.earlier.Unlock()
	if d.path == "" || d.earlier.periods != nil {
		return d.earlier.periods, nil
	}
	all := map[int64]*reason.Counts{}
	err := d.read(ctx, func(r *store.Reader) error {
		return r.CountsBefore(start.Add(-oneDay), func(period int64, n reason.Counts) { all[period] = &n })
	})
	if err == nil {
		d.earlier.periods = all
	}
	return all, err
}
