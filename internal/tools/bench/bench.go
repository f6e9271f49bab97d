package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"heed/internal/trust/ca"
)

// bench is a run of the benchmark.
type bench struct {
	dir        string // for all files; other users may enter it
	self       string // this program, for the load generator and proxies of its own
	scale      scale
	cases      []workload
	series     []series
	contenders []contender
	rounds     int
	slice      time.Duration
	progress   func(string)

	caCert, caKey string // of intercepted connections
	caRoots       string // the certificate as PEM
	generator     *generator
	network       *network // with a load generator of its own; nil: no case needs it
	origin        *origin
	distinct      int64 // jobs that requested every URL once
}

// entrant is a contender in a case.
type entrant struct {
	contender
	workload workload
	state    string
	dir      string
	addr     string
	process  *process
	rate     float64 // of tailAtHalf
	samples  []sample
	wrong    int64
	first    string // of the wrong answers
}

// run starts the site and the load generator, and runs all cases and series.
func (b *bench) run(ctx context.Context) (rep report, err error) {
	defer func() { err = errors.Join(err, b.end()) }()
	if err := b.begin(ctx); err != nil {
		return rep, err
	}
	for _, w := range b.cases {
		result, err := b.runCase(ctx, w)
		if err != nil {
			return rep, fmt.Errorf("%s: %w", w.name, err)
		}
		rep.Cases = append(rep.Cases, result)
	}
	for _, s := range b.series {
		result, err := b.runSeries(ctx, s)
		if err != nil {
			return rep, fmt.Errorf("%s: %w", s.name, err)
		}
		rep.Growth = append(rep.Growth, result)
	}
	return rep, nil
}

// begin makes the CA of intercepted connections, and starts the site and the load
// generator.
func (b *bench) begin(ctx context.Context) error {
	authority, err := ca.Open(filepath.Join(b.dir, "ca"), time.Now)
	if err != nil {
		return err
	}
	b.caCert, b.caRoots = authority.CertPath(), string(authority.CertPEM())
	b.caKey = filepath.Join(filepath.Dir(b.caCert), "ca-key.pem")
	originDir := filepath.Join(b.dir, "origin")
	if err := os.Mkdir(originDir, 0o755); err != nil {
		return err
	}
	if b.origin, err = startOrigin(ctx, originDir, b.scale); err != nil {
		return err
	}
	if err := b.origin.server.accepting(net.JoinHostPort("127.0.0.1", b.origin.plain)); err != nil {
		return fmt.Errorf("%w\n%s", err, b.origin.server.said())
	}
	if b.generator, err = startGenerator(exec.CommandContext(ctx, b.self)); err != nil {
		return err
	}
	if slices.ContainsFunc(b.cases, func(w workload) bool { return w.remote }) {
		b.network, err = startNetwork(ctx, b.self)
	}
	return err
}

// generatorOf returns the load generator of a case.
func (b *bench) generatorOf(e *entrant) *generator {
	if e.workload.remote {
		return b.network.generator
	}
	return b.generator
}

// end stops what begin started.
func (b *bench) end() (err error) {
	if b.generator != nil {
		err = b.generator.stop()
	}
	if b.network != nil {
		err = errors.Join(err, b.network.stop())
	}
	if b.origin != nil {
		b.origin.server.stop()
	}
	return err
}

// runCase gives each contender a slice per round, in an order that changes.
func (b *bench) runCase(ctx context.Context, w workload) (caseReport, error) {
	var entrants []*entrant
	defer func() {
		for _, e := range entrants {
			e.stop()
		}
	}()
	for _, c := range b.contenders {
		if c.can(w) {
			entrants = append(entrants, &entrant{contender: c, workload: w})
		}
	}
	if err := b.compete(ctx, w.name, entrants); err != nil {
		return caseReport{}, err
	}
	return newCaseReport(w, entrants), nil
}

// compete starts the entrants and takes a sample of each per round.
func (b *bench) compete(ctx context.Context, name string, entrants []*entrant) error {
	for _, e := range entrants {
		b.progress(name + ": starting " + e.name)
		if err := b.enter(ctx, e); err != nil {
			return e.failed(err)
		}
	}
	for round := range b.rounds {
		b.progress(fmt.Sprintf("%s: round %d of %d", name, round+1, b.rounds))
		for i := range entrants {
			e := entrants[(i+round)%len(entrants)]
			if err := ctx.Err(); err != nil {
				return err
			}
			s, err := b.sample(ctx, e)
			if err != nil {
				return e.failed(err)
			}
			e.samples = append(e.samples, s)
		}
	}
	return nil
}

// enter makes the contender's directory and, unless each sample has a process of its
// own, starts it and sends it one request to each target.
func (b *bench) enter(ctx context.Context, e *entrant) (err error) {
	w := e.workload
	if e.dir, err = os.MkdirTemp(b.dir, w.name+"-"+e.name+"-"); err != nil {
		return err
	}
	if err := os.Chmod(e.dir, 0o755); err != nil {
		return err
	}
	e.state = filepath.Join(e.dir, "state")
	if err := os.Mkdir(e.state, 0o700); err != nil {
		return err
	}
	if err := b.start(ctx, e); err != nil {
		return err
	}
	warm := b.job(e)
	warm.Count = max(int64(w.targets), int64(2*b.scale.Conns))
	warm.Conns = min(warm.Conns, b.scale.Conns)
	r, err := b.load(e, warm)
	if err != nil {
		return err
	}
	if err := b.fillRecord(e); err != nil {
		return err
	}
	if w.unit == tailAtHalf {
		full := b.job(e)
		if r, err = b.load(e, full); err != nil {
			return err
		}
		e.rate = float64(r.Requests) / r.Elapsed.Seconds() / 2
	}
	if w.fresh() {
		e.stop()
	}
	return nil
}

// start starts the contender's process and waits until it accepts connections.
func (b *bench) start(ctx context.Context, e *entrant) error {
	dir, err := os.MkdirTemp(e.dir, "start-")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if e.addr, err = freeAddr(e.workload); err != nil {
		return err
	}
	cmd, err := e.command(ctx, e.workload, place{dir: dir, state: e.state, addr: e.addr, bench: b, origin: b.origin})
	if err != nil {
		return err
	}
	if e.process, err = start(cmd, filepath.Join(dir, "output")); err != nil {
		return err
	}
	return e.process.accepting(e.addr)
}

// failed names the contender in an error, with the last lines that it printed.
func (e *entrant) failed(err error) error {
	if e.process == nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	return fmt.Errorf("%s: %w\n%s", e.name, err, e.process.said())
}

func (e *entrant) stop() {
	if e.process != nil {
		e.process.stop()
		e.process = nil
	}
}

// job is the case's load for a contender.
func (b *bench) job(e *entrant) job {
	w := e.workload
	j := job{
		Proxy: e.addr, Roots: b.caRoots, Target: b.origin.target(w), Targets: int64(w.targets),
		Status: w.status, Size: w.size, Mode: w.mode, Conns: w.conns, Duration: b.slice, Rate: e.rate,
	}
	if w.distinct {
		b.distinct++
		j.First, j.Targets = b.distinct<<32, 1<<62
	}
	if e.shipsCA {
		j.Roots = shippedGoproxyCA()
	}
	return j
}

// load runs a job and keeps its wrong answers.
func (b *bench) load(e *entrant, j job) (result, error) {
	r, err := b.generatorOf(e).do(j)
	e.count(r)
	return r, err
}

func (e *entrant) count(r result) {
	e.wrong += r.Wrong
	if e.first == "" {
		e.first = r.FirstWrong
	}
}
