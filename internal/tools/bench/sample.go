package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// sample is what one slice, or one start, showed.
type sample struct {
	Cost      float64 `json:"cost"` // in the unit of the case
	Requests  int64   `json:"requests"`
	PerSecond float64 `json:"per_second"`
	P50, P99  time.Duration
	Resident  int64   `json:"resident"` // octets, after the slice
	Passed    float64 `json:"passed_ms,omitempty"`
	Resumed   int64   `json:"resumed,omitempty"`
	Reopened  int64   `json:"reopened,omitempty"`
}

// sample takes one sample of the case.
func (b *bench) sample(ctx context.Context, e *entrant) (sample, error) {
	switch e.workload.unit {
	case startCPU:
		return b.sampleStart(ctx, e)
	case connMemory:
		return b.sampleIdle(ctx, e)
	}
	return b.sampleLoad(e)
}

// sampleLoad measures a slice of load.
func (b *bench) sampleLoad(e *entrant) (s sample, err error) {
	if err := b.generatorOf(e).prepare(b.job(e)); err != nil {
		return s, err
	}
	accepted, err := b.origin.connections()
	if err != nil {
		return s, err
	}
	before, _, err := settled(e.process.pid())
	if err != nil {
		return s, err
	}
	r, err := b.generatorOf(e).run()
	if err != nil {
		return s, err
	}
	after, resident, err := settled(e.process.pid())
	if err != nil {
		return s, err
	}
	e.count(r)
	s = sample{
		Requests: r.Requests, PerSecond: float64(r.Requests) / r.Elapsed.Seconds(), P50: r.P50, P99: r.P99,
		Resident: resident, Resumed: r.Resumed, Reopened: r.Reopened,
	}
	s.Cost = float64((after - before).Microseconds()) / float64(max(r.Requests, 1))
	if e.workload.unit == tailAtHalf {
		s.Cost = float64(r.P99.Microseconds())
	}
	if e.workload.status != 200 {
		if err := b.untouched(e, accepted); err != nil {
			return s, err
		}
	}
	return s, b.generatorOf(e).release()
}

// untouched counts a connection to the site as a wrong answer: for a refused request
// there is none. accepted is how many there were before, with the benchmark's own.
func (b *bench) untouched(e *entrant, accepted int) error {
	now, err := b.origin.connections()
	if err != nil {
		return err
	}
	if more := now - accepted - 1; more > 0 {
		e.count(result{Wrong: int64(more), FirstWrong: fmt.Sprintf("%d connections to the site for refused requests", more)})
	}
	return nil
}

// sampleStart measures a start: CPU time until the first answer.
func (b *bench) sampleStart(ctx context.Context, e *entrant) (s sample, err error) {
	begun := time.Now()
	if err := b.start(ctx, e); err != nil {
		return s, err
	}
	defer e.stop()
	j := b.job(e)
	j.Conns, j.Count = 1, 1
	if err := b.generatorOf(e).prepare(j); err != nil { // with the first request
		return s, err
	}
	passed := time.Since(begun)
	cpu, resident, err := usage(e.process.pid())
	if err != nil {
		return s, err
	}
	r, err := b.generatorOf(e).run()
	e.count(r)
	s = sample{Cost: milliseconds(cpu), Passed: milliseconds(passed), Resident: resident, Requests: 1 + r.Requests}
	return s, errors.Join(err, b.generatorOf(e).release())
}

// sampleIdle measures the memory of a new process with idle connections and without.
func (b *bench) sampleIdle(ctx context.Context, e *entrant) (s sample, err error) {
	if err := b.start(ctx, e); err != nil {
		return s, err
	}
	defer e.stop()
	warm := b.job(e)
	warm.Conns, warm.Count = 1, int64(b.scale.Conns)
	if _, err := b.load(e, warm); err != nil {
		return s, err
	}
	before, err := b.rested(e)
	if err != nil {
		return s, err
	}
	idle := b.job(e)
	idle.Count = 1
	if err := b.generatorOf(e).prepare(idle); err != nil {
		return s, err
	}
	after, err := b.rested(e)
	if err != nil {
		return s, err
	}
	r, err := b.generatorOf(e).run()
	e.count(r)
	s = sample{Cost: float64(after-before) / 1024 / float64(idle.Conns), Resident: after, Requests: int64(idle.Conns) + r.Requests}
	return s, errors.Join(err, b.generatorOf(e).release())
}

// rested returns the resident memory of the contender after a rest, in which a process may
// return memory to the system.
func (b *bench) rested(e *entrant) (resident int64, err error) {
	time.Sleep(b.scale.Rest)
	_, resident, err = settled(e.process.pid())
	return resident, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// costs returns the cost of each round.
func (e *entrant) costs() []float64 {
	costs := make([]float64, 0, len(e.samples))
	for s := range slices.Values(e.samples) {
		costs = append(costs, s.Cost)
	}
	return costs
}
