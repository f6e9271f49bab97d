package accesslog

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"sort"
	"sync"
	"time"
)

// survey finds for each file that can be read twice whether it is in order, and in which
// window of lines it can be put in order.
func (r *Reader) survey() error {
	for _, s := range r.sources {
		r.all.Add(s.size)
	}
	failed := make([]error, len(r.sources))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for _, s := range r.sources {
		if s.twice {
			r.all.Add(s.size)
			slots <- struct{}{}
			group.Go(func() {
				failed[s.index] = s.survey()
				<-slots
			})
		}
	}
	group.Wait()
	return errors.Join(failed...)
}

// survey reads the times of a file. An error in the middle ends it
// without one: the reading that follows meets the error again, and returns it.
func (s *source) survey() error {
	if err := s.open(); err != nil {
		return err
	}
	defer s.close()
	var o disorder
	for s.reader.stopped.Err() == nil {
		t, ok, err := s.when()
		if err != nil {
			break
		}
		if ok {
			o.add(t)
		}
	}
	s.first, s.window, s.ordered = o.first, int(o.most), o.most <= maxWindow
	return nil
}

// disorder measures how far the lines of a file are from their places.
//
// A file is in order after it passed a heap of w requests if no time is less than the
// greatest one of those w or more lines before: whatever the heap has returned is not
// greater than the greatest time of as many lines from the beginning.
type disorder struct {
	n       int64 // times
	first   time.Time
	ring    [maxWindow]time.Time // of the n-th line: the greatest time up to it
	highest time.Time
	most    int64 // the window that is needed
}

func (o *disorder) add(t time.Time) {
	switch {
	case o.n == 0:
		o.first, o.highest = t, t
	case t.Before(o.highest):
		if t.Before(o.first) {
			o.first = t
		}
		kept := min(o.n, maxWindow)
		back := int64(sort.Search(int(kept), func(i int) bool { // the last line that is not after t
			return !o.ring[(o.n-1-int64(i))%maxWindow].After(t)
		}))
		if back == kept && o.n > maxWindow {
			back = maxWindow + 1
		}
		o.most = max(o.most, back)
	default:
		o.highest = t
	}
	o.ring[o.n%maxWindow] = o.highest
	o.n++
}

// windowed puts requests in order that are at most size lines from their places.
type windowed struct {
	from  stream
	size  int
	held  []*Request // in order
	free  *Request
	ended bool
}

// next returns the earliest request of the window.
func (w *windowed) next(q *Request) error {
	for !w.ended && len(w.held) <= w.size {
		fresh := w.free
		if w.free = nil; fresh == nil {
			fresh = &Request{}
		}
		if err := w.from.next(fresh); err != nil {
			if err != io.EOF {
				return err
			}
			w.ended = true
			break
		}
		at, _ := slices.BinarySearchFunc(w.held, fresh, (*Request).compare)
		w.held = slices.Insert(w.held, at, fresh)
	}
	if len(w.held) == 0 {
		return io.EOF
	}
	w.free, w.held = w.held[0], w.held[1:]
	*q = *w.free
	return nil
}
