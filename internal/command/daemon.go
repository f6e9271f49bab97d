package command

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"heed/cache"
	"heed/internal/audit"
	"heed/proxy"
)

// daemon is a running heed as the control socket sees it: what serve put
// together, and the runs that joined.
type daemon struct {
	*opened
	book       *books
	grants     *grants                                          // what was added to it while heed runs
	again      func() (cfg *Config, joinHash string, err error) // reads the settings anew
	environ    []string
	memory     *cache.Memory // of all ways to the sites
	lanes      cache.Lanes   // of their fetches
	tally      *audit.Tally
	shared     proxy.Config // of the shared proxy; runs change what is their own
	listens    []string     // of shared listeners beside fronts
	background bool
	now        func() time.Time
	since      time.Time

	state    string        // the state directory
	stopping chan struct{} // closed when heed begins to end

	changing sync.Mutex // held while a reload, or a run that joins, takes ways

	failed  chan error     // of what must not end before heed does
	leaving sync.WaitGroup // listeners that take nobody any more
	tell    func() error   // writes into the lock who holds it; nil: nothing has changed

	mu      sync.Mutex
	fronts  []*listening // the shared ones; none of a background heed
	runs    map[string]*session
	joining int         // admitted, not entered yet
	ending  bool        // nobody is admitted any more
	idle    *time.Timer // runs while a background heed has no run; else nil
	idleFor time.Duration
}

// current returns the settings in force.
func (d *daemon) current() *generation { return d.book.current.Load().generation }

// stop begins the end; it may be called more than once.
func (d *daemon) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopLocked()
}

func (d *daemon) stopLocked() {
	if !d.ending {
		d.ending = true
		close(d.stopping)
	}
}

// retire stops a heed that no run uses and reports whether it did.
func (d *daemon) retire() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busyLocked() {
		return false
	}
	d.stopLocked()
	return true
}

func (d *daemon) busyLocked() bool { return len(d.runs)+d.joining > 0 }

// awaitIdle begins to wait for the end of idleness: a background heed that no
// run uses for as long as idleFor ends by itself.
func (d *daemon) awaitIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idleLocked()
}

func (d *daemon) idleLocked() {
	if d.idle != nil {
		d.idle.Stop()
		d.idle = nil
	}
	if d.background && !d.busyLocked() {
		d.idle = time.AfterFunc(d.idleFor, func() { d.retire() })
	}
}

// admit decides whether a run may join, and keeps a place for it.
func (d *daemon) admit(j *join) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ending {
		return &refusedJoin{Message: "heed is ending", Again: true}
	}
	if text := d.mismatch(j); text != "" {
		return &refusedJoin{Message: text, Retire: d.background && !d.busyLocked()}
	}
	if len(d.runs)+d.joining >= maxRuns {
		return &refusedJoin{Message: "too many runs at once share this state directory\nWait for one to end, or set HEED_STATE to another directory"}
	}
	d.joining++
	d.idleLocked()
	return nil
}

// mismatch says why this heed is not the one that j asks for; empty when it is.
func (d *daemon) mismatch(j *join) string {
	is := d.info()
	file := is.ConfigFile
	if file == "" {
		file = "the built-in settings"
	}
	switch {
	case j.Version != is.Version:
		return fmt.Sprintf("the running heed (pid %d) is version %s, this one is %s\nStop that one, wait for its runs to end, or set HEED_STATE to another directory",
			is.PID, is.Version, j.Version)
	case j.Config != is.ConfigHash && (j.Asked || d.background):
		return fmt.Sprintf("the running heed (pid %d) has other settings than this run asks for: those of %s\nUse the same ones, wait until it has ended, or set HEED_STATE to another directory",
			is.PID, file)
	}
	return ""
}

// enter turns an admitted run into a running one.
func (d *daemon) enter(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.joining--
	d.runs[s.id] = s
}

// leave forgets a run; nil stands for one that was admitted only.
func (d *daemon) leave(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s == nil {
		d.joining--
	} else {
		delete(d.runs, s.id)
	}
	d.idleLocked()
}

// endRun tells a run's stream to end and reports whether there was one.
func (d *daemon) endRun(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	if s == nil {
		return false
	}
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	return true
}

// runDrain is how long a run's open exchanges may take to end.
func (d *daemon) runDrain() time.Duration {
	select {
	case <-d.stopping:
		return d.current().cfg.Drain
	default:
		return runDrain
	}
}

func (d *daemon) info() heedInfo {
	return heedInfo{
		Version: Version(), PID: os.Getpid(), Background: d.background,
		ConfigFile: d.current().cfg.File, ConfigHash: d.current().joinHash,
	}
}

func (d *daemon) status() *Status {
	now, cfg := d.now(), d.current().cfg
	s := &Status{
		heedInfo: d.info(), Since: d.since, Listeners: []string{}, Runs: []string{},
		Mode: cfg.mode(), Profile: cfg.Profile, Unjudged: cfg.unjudged(),
		CA:   CAStatus{d.authority.CertPath(), d.authority.NotAfter(), d.authority.DaysLeft(now)},
		Load: d.shared.Load.Status(), Turns: d.turns.Counts(),
		Hour: d.tally.Hour(now), Troubles: d.tally.Troubles(now),
	}
	granted := d.grants.list()
	s.Breaks, s.Exceptions = granted.Breaks, granted.Exceptions
	s.ConfigHash = cfg.Hash()
	if err := d.record.Err(); err != nil {
		s.Log = err.Error()
	}
	if d.unrecorded != nil {
		s.Record = d.unrecorded.Error()
	}
	if d.evidence != nil {
		s.Unrecorded = d.evidence.Lost()
		if err := d.evidence.Err(); err != nil {
			s.Record = err.Error()
		}
	}
	if d.fleet != nil {
		health := d.fleet.Health()
		s.Fleet = &health
	}
	if d.file != nil {
		health := d.file.Health()
		s.Kept = &health
	}
	s.Listeners = append(s.Listeners, d.addresses()...)
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Ending = d.ending
	for _, r := range d.runs {
		s.Runs = append(s.Runs, r.listen)
	}
	slices.Sort(s.Runs)
	return s
}
