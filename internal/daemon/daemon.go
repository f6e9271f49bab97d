// Package daemon implements a running heed: heed serve, the current settings and their
// reload, the listeners (listeners), the runs that joined (runs), what was granted at run time
// (grants), and the server of the control socket. The type daemon has methods in the file of each
// subject that needs the settings in force and the resources together.
package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/config/clientenv"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/daemon/systemd"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/internal/trust/ca"
	"heed/proxy"
	"heed/proxy/usage"
)

// daemon is a running heed: its resources, the current settings and the runs that joined.
type daemon struct {
	*resources
	grants       *grants                                                 // mode overrides and exceptions added at run time
	loadSettings func() (cfg *config.Config, joinHash string, err error) // reads the settings anew
	environ      []string
	counts       *counts.Counter
	shared       proxy.Config // of the shared proxy; each run changes a copy
	background   bool
	manager      *systemd.Manager // nil: no service manager started heed
	now          func() time.Time
	since        time.Time
	notReloaded  atomic.Pointer[control.FailedReload] // the last reload, if it was rejected
	pages        usage.Memory                         // what was read of pages, over all routes

	state    string             // the state directory
	stopping context.Context    // ends when heed begins to stop: no run is admitted any more
	stop     context.CancelFunc // ends it

	changing sync.Mutex                     // held to change the settings, or which runs there are
	added    func(*acl.Rules) *acl.Rules    // adds mode overrides and exceptions; nil: none
	current  atomic.Pointer[runtimeConfig]  // the current settings
	settings atomic.Pointer[proxy.Settings] // of the shared listeners

	failed        chan error   // errors of servers that must not end before heed
	publishHolder func() error // writes the holder into the lock file

	admin     *adminListener // nil: there is none; set before heed serves
	listeners listeners
	runs      runs        // changed with changing held
	leaving   atomic.Bool // it is to stop, and serves on for a while
}

// retire stops a heed without runs and reports whether it did. A run that joins at the moment is
// awaited.
func (d *daemon) retire() bool {
	d.changing.Lock()
	defer d.changing.Unlock()
	if d.runs.count() > 0 {
		return false
	}
	d.stop()
	return true
}

// admit returns an error unless the run may join. The caller holds changing until it has entered.
func (d *daemon) admit(j *control.JoinRequest) error {
	if d.stopping.Err() != nil {
		return &control.Refusal{Message: "heed is ending", Again: true}
	}
	if text := d.mismatch(j); text != "" {
		return &control.Refusal{Message: text, Retire: d.background && d.runs.count() == 0}
	}
	if d.runs.count() >= maxRuns {
		return &control.Refusal{Message: "too many simultaneous runs share this state directory\nWait for one to end, or set HEED_STATE to another directory"}
	}
	return nil
}

// mismatch returns why this heed does not fit j; empty when it does.
func (d *daemon) mismatch(j *control.JoinRequest) string {
	is := d.info()
	switch {
	case j.Version != is.Version:
		return fmt.Sprintf("the running heed (pid %d) is version %s, this one is %s\nStop that one, wait for its runs to end, or set HEED_STATE to another directory",
			is.PID, is.Version, j.Version)
	case j.Config != is.ConfigHash && (j.Asked || d.background):
		return fmt.Sprintf("the running heed (pid %d) has different settings from this run: those of %s\nUse the same ones, wait until it has ended, or set HEED_STATE to another directory",
			is.PID, d.current.Load().cfg.Source())
	}
	return ""
}

// maxBypassed is the number of events about what bypassed heed in the record of one run.
const maxBypassed = 32

// deleteRun ends the run that the request names, whose body is a control.RunEnd.
func (d *daemon) deleteRun(w http.ResponseWriter, r *http.Request) {
	bodyHandler(func(_ context.Context, end *control.RunEnd) (any, error) {
		return nil, d.endRun(r.PathValue("id"), end)
	})(w, r)
}

// endRun ends a run, and records what bypassed it. It is an error when there is none with the
// id.
func (d *daemon) endRun(id string, end *control.RunEnd) error {
	found := d.runs.with(id, func(s *runSession) {
		if s.record != nil {
			for _, b := range end.Bypassed[:min(len(end.Bypassed), maxBypassed)] {
				s.record.Note(audit.Event{Time: d.now(), Kind: audit.Bypassed, Name: b.Program, Count: b.Count, Detail: b.Detail})
			}
		}
		s.end()
	})
	if !found {
		return errors.New("there is no such run")
	}
	return nil
}

// runDrain returns how long a run's open exchanges may take to end.
func (d *daemon) runDrain() time.Duration {
	if d.stopping.Err() != nil {
		return d.current.Load().cfg.Drain
	}
	return control.RunDrain
}

func (d *daemon) info() control.Info {
	return control.Info{
		Version: console.Version(), PID: os.Getpid(), Background: d.background,
		ConfigFile: d.current.Load().cfg.File, ConfigHash: d.current.Load().joinHash,
	}
}

func caStatus(a *ca.Authority, now time.Time) control.CAStatus {
	s := control.CAStatus{Path: a.CertPath(), NotBefore: a.NotBefore(), NotAfter: a.NotAfter(), DaysLeft: a.DaysLeft(now)}
	for _, r := range a.Roots() {
		if r.File != "" && r.File != s.Path {
			s.Beside = append(s.Beside, control.CARoot{File: r.File, NotAfter: r.Cert.NotAfter, Replaced: r.Replaced})
		}
	}
	return s
}

func (d *daemon) status() *control.Status {
	now, cfg := d.now(), d.current.Load().cfg
	s := &control.Status{
		Info: d.info(), Since: d.since,
		Mode: cfg.DefaultMode(), Profile: cfg.Profile, Unjudged: cfg.Unjudged(),
		CA:   caStatus(d.authority, now),
		Keys: d.current.Load().keys(),
		Load: d.shared.Load.Status(), Turns: d.Turns.Counts(),
		Five: d.counts.FiveMinutes(now), Hour: d.counts.Hour(now), Troubles: d.counts.Troubles(now),
	}
	granted := d.grants.list()
	s.Breaks, s.Exceptions = granted.Breaks, granted.Exceptions
	s.ConfigHash, s.NotReloaded = cfg.Hash(), d.notReloaded.Load()
	s.Continues = cfg.Audit.OnFailure == "continue"
	if err := d.decisionLog.Err(); err != nil {
		s.Log, s.LogIsRecord = err.Error(), !cfg.Audit.Enabled && !s.Continues
		if errors.Is(err, syscall.EPIPE) {
			s.Log += "; heed has to be started again, since its reader is gone"
		}
	}
	s.LogLost = d.lostLines()
	if d.unrecorded != nil {
		s.Record = d.unrecorded.Error()
	}
	if d.record != nil {
		s.Unrecorded = d.record.Lost()
		if err := d.record.Err(); err != nil {
			s.Record = err.Error()
		}
		if err := d.record.Held(); err != nil {
			s.RecordHeld = err.Error()
		}
		if latest, n := d.record.Healings(); n > 0 {
			h := latest[len(latest)-1]
			s.Healings = &control.Healings{Count: n, Last: h.Time, Why: h.Why, Refused: h.Refused}
		}
	}
	s.Busiest, s.Room = d.counts.Busiest(now, mostBusy), d.space(now)
	s.Reach = d.counts.Reach(now)
	if d.Fleet != nil {
		s.Fleet = new(d.Fleet.Health())
	}
	if d.File != nil {
		s.Kept = new(d.File.Health())
	}
	s.Listeners, s.Runs, s.Redirected = d.listeners.addresses(), d.runs.addresses(), d.listeners.redirected()
	s.Ending = d.leaving.Load() || d.stopping.Err() != nil
	return s
}

// mostBusy is how many clients, and how many sites, the status lists.
const mostBusy = 10

// space returns the space that the record and the stored policies have.
func (d *daemon) space(now time.Time) (r control.Room) {
	if d.recordSpace != nil {
		r.Record = new(d.recordSpace.Now(now))
	}
	if d.File != nil {
		r.Policies = new(state.SpaceOf(route.PoliciesPath(d.current.Load().cfg, d.state)))
	}
	return r
}

// greet prints the addresses, how to use them, the CA, and the remarks of the start.
func (d *daemon) greet(a *console.App) {
	fmt.Fprintf(a.Stderr, "heed listens on http://%s\n", strings.Join(d.listeners.addresses(), ", http://"))
	if all := d.listeners.redirectedTo(false); len(all) > 0 {
		fmt.Fprintf(a.Stderr, "It takes redirected connections on %s\n", strings.Join(all, ", "))
	}
	if all := d.listeners.redirectedTo(true); len(all) > 0 {
		fmt.Fprintf(a.Stderr, "Other proxies ask it on %s\n", strings.Join(all, ", "))
	}
	fmt.Fprintf(a.Stderr, "Point a client at it:  eval \"$(heed env)\"\n")
	if d.admin != nil {
		fmt.Fprintf(a.Stderr, "Its admin listener is %s\n", d.admin.url())
	}
	fmt.Fprintf(a.Stderr, "Its CA certificate is  %s%s\n", d.authority.CertPath(), console.DaysLeft(d.authority.DaysLeft(a.Now())))
	cfg, through := d.current.Load().cfg, d.current.Load().route.Proxy
	a.Remark(append(cfg.Unjudged(), cfg.LimitsRemark(openFiles()))...)
	found := clientenv.Inspect(a.Environ, "", d.listeners.addresses()[0])
	switch proxy := through; {
	case proxy != nil && proxy.All != "":
		fmt.Fprintf(a.Stderr, "heed: sites are reached through %s, which resolves their names\n", config.RedactURL(proxy.All))
	case proxy != nil:
		fmt.Fprintf(a.Stderr, "heed: sites are reached through the proxy that the environment names (%s), which resolves their names\n", clientenv.List(found.Proxies))
	case cfg.Upstream.Proxy == "env":
		fmt.Fprintln(a.Stderr, "heed: sites are reached directly: the environment names no proxy")
	case len(found.Proxies) > 0:
		fmt.Fprintf(a.Stderr, "heed: the proxy that the environment names is not used (%s); to go through it, add --upstream env\n", clientenv.List(found.Proxies))
	}
	a.Remark(cfg.Notices(a.Now())...)
	if through != nil {
		fmt.Fprintln(a.Stderr, "heed: that proxy resolves names, so [access] applies to host names and literal addresses, not to resolved addresses")
	}
}

// ProxyName returns the pseudonym of this heed in Via: the configured one, or a random one
// that is created once per state directory dir. It reveals neither the machine nor the
// product to sites.
func ProxyName(c *config.Config, dir string) (string, error) {
	if c.Name != "" {
		return c.Name, nil
	}
	path := filepath.Join(dir, "name")
	text, err := state.ReadOrCreate(path, strings.ToLower(rand.Text())[:12]+"\n")
	if err != nil {
		return "", fmt.Errorf("the proxy's name cannot be kept: %w\n%s", err, state.Remedy(err))
	}
	name := strings.TrimSpace(text)
	if err := config.CheckName(name); err != nil || name == "" {
		return "", fmt.Errorf("the file %s contains no valid name\nRemove it; heed creates a new one", path)
	}
	return name, nil
}
