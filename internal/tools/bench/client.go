package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// serveLoad is the load generator's process: it runs jobs from its standard input
// until that ends.
func serveLoad() error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var j job
		if err := in.Decode(&j); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := serveJob(j, in, out); err != nil {
			return err
		}
	}
}

func serveJob(j job, in *json.Decoder, out *json.Encoder) error {
	l, err := newLoad(j)
	if err == nil {
		defer l.close()
		err = l.open()
	}
	if err != nil {
		return out.Encode(err.Error())
	}
	var said string
	if err := errors.Join(out.Encode(sayReady), in.Decode(&said)); err != nil {
		return err
	}
	return errors.Join(out.Encode(l.run()), in.Decode(&said))
}

// load is a job that runs.
type load struct {
	job     job
	dialer  *dialer
	body    []byte
	workers []*worker
	next    atomic.Int64 // number of the next request
	dead    atomic.Int64 // wrong answers

	mu         sync.Mutex
	firstWrong error
}

// worker sends one request after the other.
type worker struct {
	load    *load
	session session
	took    []time.Duration
}

func newLoad(j job) (*load, error) {
	d, err := newDialer(j)
	if err != nil {
		return nil, err
	}
	l := &load{job: j, dialer: d, body: body(j.Size)}
	for range j.Conns {
		l.workers = append(l.workers, &worker{load: l, session: d.session()})
	}
	return l, nil
}

// open opens the connections, a few at a time, with one request on each.
func (l *load) open() error {
	const atATime = 32
	var all sync.WaitGroup
	turn := make(chan struct{}, atATime)
	errs := make([]error, len(l.workers))
	for i, w := range l.workers {
		turn <- struct{}{}
		all.Go(func() {
			errs[i] = w.session.get(l.target(l.next.Add(1)), l.check)
			<-turn
		})
	}
	all.Wait()
	l.next.Store(0)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// run sends the requests.
func (l *load) run() result {
	resumedBefore := l.dialer.resumed.Load()
	begun := time.Now()
	var all sync.WaitGroup
	for _, w := range l.workers {
		all.Go(func() { w.run(begun) })
	}
	all.Wait()
	r := result{
		Elapsed: time.Since(begun), Wrong: l.dead.Load(),
		Resumed: l.dialer.resumed.Load() - resumedBefore, Reopened: l.dialer.reopened.Load(),
	}
	var took []float64
	for _, w := range l.workers {
		r.Requests += int64(len(w.took))
		for _, d := range w.took {
			took = append(took, float64(d))
		}
	}
	slices.Sort(took)
	r.P50, r.P99 = time.Duration(quantile(took, 0.5)), time.Duration(quantile(took, 0.99))
	if l.firstWrong != nil {
		r.FirstWrong = l.firstWrong.Error()
	}
	return r
}

// run sends requests until the job is over. At a given rate, the time to answer
// counts from when a request was due, so that a slow answer counts for those that
// wait behind it.
func (w *worker) run(begun time.Time) {
	j := w.load.job
	for {
		n := w.load.next.Add(1) - 1
		due := time.Now()
		if j.Rate > 0 {
			due = begun.Add(time.Duration(float64(n) / j.Rate * float64(time.Second)))
		}
		if j.Count > 0 && n >= j.Count || j.Count == 0 && due.Sub(begun) >= j.Duration {
			return
		}
		time.Sleep(time.Until(due))
		if err := w.session.get(w.load.target(int64(j.Conns)+1+n), w.load.check); err != nil {
			w.load.wrong(err)
		}
		w.took = append(w.took, time.Since(due))
	}
}

// target returns the number of the target of a request.
func (l *load) target(number int64) int64 { return (l.job.First + number) % l.job.Targets }

func (l *load) wrong(err error) {
	l.dead.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.firstWrong == nil {
		l.firstWrong = err
	}
}

func (l *load) close() {
	for _, w := range l.workers {
		w.session.close()
	}
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// check reads an answer to its end and compares it with what is expected.
func (l *load) check(status int, answer io.Reader) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	at := 0
	equal := true
	for {
		n, err := answer.Read(*buffer)
		if l.job.Size >= 0 {
			equal = equal && at+n <= len(l.body) && string((*buffer)[:n]) == string(l.body[at:at+n])
		}
		at += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if status != l.job.Status {
		return fmt.Errorf("status %d instead of %d", status, l.job.Status)
	}
	if !equal || l.job.Size >= 0 && at != l.job.Size {
		return fmt.Errorf("a body of %d bytes is not the site's of %d", at, l.job.Size)
	}
	return nil
}
