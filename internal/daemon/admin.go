package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"heed/cache"
	"heed/internal/audit/counts"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/daemon/admin"
	"heed/internal/daemon/admin/dashboard"
	"heed/internal/judge/signal"
	"heed/internal/output/console"
	"heed/internal/pace/fleet"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/rules"
)

// adminListener is the listener for operators.
type adminListener struct {
	net.Listener
	server *admin.Server
	pages  *dashboard.Dashboard
}

// adminSettings returns the settings of the admin listener. It reads the token and the
// users.
func (d *daemon) adminSettings(cfg *config.Config) (*admin.Settings, error) {
	token, users, err := cfg.AdminAccess(d.environ, d.now)
	s := &admin.Settings{Hosts: cfg.Admin.Hosts, Token: token, Actions: cfg.Admin.Actions, Pprof: cfg.Admin.Pprof}
	if users != nil { // else the interface would not be nil
		s.Users = users
	}
	return s, err
}

// openAdmin opens the admin listener; nil without one in the settings, and in the
// background, where heed has no settings of its own to open a fixed address. Requests
// through heed cannot reach it. defaults is proxy.toml as built in.
func (d *daemon) openAdmin(cfg *config.Config, defaults []byte) (*adminListener, error) {
	if cfg.Admin.Listen == "" || d.background {
		return nil, nil
	}
	l, err := listenAdmin(&cfg.Admin)
	if err != nil {
		return nil, err
	}
	d.Self.Add(l.Addr())
	pages := d.dashboard(cfg, defaults)
	return &adminListener{l, admin.New(admin.Config{
		Live: func() *admin.Settings { return d.current.Load().admin },
		Health: func() (notReady, unwell []string) {
			s := d.status()
			return s.NotReady(), s.Unwell()
		},
		Metrics: d.metrics.Handler(), Dashboard: pages, ProxyName: d.shared.Name, Log: d.log,
	}), pages}, nil
}

// listenAdmin opens the address of the admin listener. A Unix socket that no process
// listens on any more is replaced. Its file has mode 0660: the directory that it is in, and
// its group, define who may connect.
func listenAdmin(c *config.AdminConfig) (net.Listener, error) {
	network, address := c.Network()
	if network == "unix" {
		removeStale(address)
	}
	l, err := net.Listen(network, address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("admin.listen: another program listens on %s\nStop it, or choose another address under [admin]", address)
	case err != nil:
		return nil, fmt.Errorf("admin.listen: heed cannot listen on %s: %w\nChoose another address under [admin]", address, err)
	case network == "unix":
		if err := os.Chmod(address, 0o660); err != nil {
			l.Close()
			return nil, fmt.Errorf("admin.listen: the socket %s cannot be protected: %w", address, err)
		}
	}
	return l, nil
}

// removeStale removes a socket that refuses connections: the process that made it has
// ended.
func removeStale(path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path) // listening on it reports what is wrong
	}
}

// url returns the address for a person.
func (l *adminListener) url() string {
	if l.Addr().Network() == "unix" {
		return "the Unix socket " + l.Addr().String()
	}
	return "http://" + l.Addr().String() + "/"
}

// serveAdmin serves until close.
func (d *daemon) serveAdmin() {
	if err := d.admin.server.Serve(d.admin.Listener); err != nil {
		d.failed <- fmt.Errorf("the admin listener failed: %w", err)
	}
}

// adminDrain is how long answers of the admin listener may take when heed stops.
const adminDrain = 2 * time.Second

// close ends the listener. Streams of the dashboard are cut off.
func (l *adminListener) close() {
	ctx, cancel := context.WithTimeout(context.Background(), adminDrain)
	defer cancel()
	l.pages.Close()
	l.server.Shutdown(ctx)
}

// dashboard returns the pages of the admin listener. defaults is proxy.toml as built in.
func (d *daemon) dashboard(cfg *config.Config, defaults []byte) *dashboard.Dashboard {
	o := dashboard.Options{MayAct: admin.MayAct, Admitted: admin.StillAdmitted, Now: d.now, Log: d.log, BuiltIn: defaults}
	o.Heed = dashboard.Heed{
		Status: d.status, Check: d.check, Cache: d.withCache, Queues: d.waits, EndPause: d.endPause,
		Recent: func() (counts.Counts, []counts.Period) {
			now := d.now()
			return d.counts.Minute(now), d.counts.Day(now)
		},
		Config:       func() *config.Config { return d.current.Load().cfg },
		EndException: func(id string) error { return d.grants.end(id, "It may have ended already") },
		EndObserving: func() error {
			_, err := d.grants.enforce()
			return err
		},
	}
	if d.record != nil {
		o.Record = cmp.Or(cfg.Audit.File, filepath.Join(d.state, state.AuditFile))
	}
	o.Defaults, _ = config.BuiltIn(defaults) // heed has read it; nil without it, when nothing is marked
	return dashboard.New(o)
}

// endPause ends the pause of a site.
func (d *daemon) endPause(origin string) error {
	site, _, err := rules.ParseURL(origin)
	if err != nil {
		return err
	}
	d.Turns.Release(site.Host)
	d.log.Warn("the pause of a site was ended by hand", "site", origin)
	return nil
}

// openMetrics begins to count for /metrics. It is called before the other resources are
// opened, which report to it.
func (d *daemon) openMetrics() {
	c := counts.MetricsConfig{
		Version: console.Version(), Commit: console.Revision(), FetchOutcomes: cache.FetchOutcomes(),
		FleetOps: fleet.Ops(), Gauges: d.gauges,
	}
	for _, a := range signal.SiteAnswers() {
		c.SiteAnswers = append(c.SiteAnswers, string(a))
	}
	for _, k := range limit.Kinds() {
		c.Limits = append(c.Limits, k.String())
	}
	d.metrics = counts.NewMetrics(c)
	d.Connections, d.Fetched = &upstream.Counts{}, d.metrics.FetchDone
	d.store.Failed, d.store.Answered = d.metrics.FleetFailed, d.metrics.FleetAnswered
}

// gauges returns what metrics reads at each scrape.
func (d *daemon) gauges() counts.Gauges {
	load, turns, policies, conns := d.shared.Load.Status(), d.Turns.Counts(), d.Memory.Counts(), d.Connections.Read()
	g := counts.Gauges{
		InFlight: load.Requests, TurnsWaiting: turns.Waiting, SitesPaused: turns.Paused,
		Policies: policies.States, PoliciesBytes: policies.Bytes,
		Connecting: conns.Connecting, Open: conns.Open, SiteHandshakes: [2]uint64{conns.Failed, conns.OK},
		Listeners:  d.listeners.redirected(),
		CANotAfter: d.authority.NotAfter(), LimitHits: load.Reached, LogUp: d.decisionLog.Err() == nil, FleetUp: d.Fleet == nil || !d.Fleet.Health().Away,
	}
	switch {
	case d.unrecorded != nil: // since the start: the record could not be opened
		g.Unrecorded = d.metrics.Requests()
	case d.record != nil:
		g.Unrecorded, g.AuditWaiting = d.record.Lost(), d.record.Waiting()
		_, g.Healings = d.record.Healings()
	}
	if d.recordSpace != nil {
		g.AuditBytes = d.recordSpace.Now(d.now()).Bytes
	}
	return g
}
