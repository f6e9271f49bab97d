package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/audit/store"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/daemon/admin"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/internal/pace/fleet"
	"heed/internal/trust/ca"
	"heed/internal/trust/passport"
	"heed/proxy"
	"heed/proxy/limit"
	"heed/proxy/usage"
)

// resources holds what heed opens once and keeps across reloads.
type resources struct {
	authority     *ca.Authority
	log           *slog.Logger
	level         *slog.LevelVar  // of log and of decisionLog
	decisionLog   *audit.Log      // takes the decisions as log lines
	lostLines     func() uint64   // of the log
	privacy       *audit.Privacy  // what log, record and stored policies do not contain
	record        *store.Writer   // nil: decisions are written to the log only
	unrecorded    error           // why record could not be opened; nil: no failure
	recordSpace   *state.Growth   // of the files of record; nil: it is not enabled
	metrics       *counts.Metrics // nil: there is no admin listener
	store         fleet.Options   // of the fleet's store
	route.Options                 // of all routes
}

// runtimeConfig is one version of the settings, with what they open. It is immutable: a
// reload replaces it.
type runtimeConfig struct {
	cfg          *config.Config
	joinHash     string       // JoinHash of the settings, without flags
	rules        *acl.Rules   // without mode overrides and exceptions added at run time
	pool         *route.Pool  // of routes to sites
	route        *route.Route // the route of the settings
	limits       limit.Limits
	destinations *acl.Destinations
	pacer        *pacer
	pages        *usage.Memory   // of what was read of pages
	admin        *admin.Settings // of the admin listener
}

// newRuntimeConfig opens what the settings need. The error is about a file or a variable
// that they name.
func (d *daemon) newRuntimeConfig(cfg *config.Config, joinHash string) (*runtimeConfig, error) {
	g := &runtimeConfig{
		cfg: cfg, joinHash: joinHash, pages: &d.pages, limits: cfg.ProxyLimits(openFiles()), destinations: cfg.Destinations(),
		pacer: &pacer{d.Turns, &cfg.Pacing.Settings, cfg.Pacing.RetryAfter == "observe", &addresses{resolve: cfg.Upstream.Resolve}},
	}
	var err error
	if g.rules, err = cfg.Rules(d.now); err != nil {
		return nil, err
	}
	if g.admin, err = d.adminSettings(cfg); err != nil {
		return nil, err
	}
	var pool *route.Pool
	if before := d.current.Load(); before != nil {
		pool = before.pool
	}
	options := d.Options
	options.Purged = d.pages.Purge
	if g.pool, err = route.Renew(pool, cfg, d.environ, options); err != nil {
		return nil, err
	}
	g.warnOfKeys(d.log, d.now())
	g.route, err = g.pool.Route(control.RouteSpec{})
	return g, err
}

// keys returns the keys that requests are signed with, heed's own first.
func (g *runtimeConfig) keys() (all []control.KeyStatus) {
	add := func(client string, by *passport.Signer) {
		if by != nil {
			k := by.Key()
			all = append(all, control.KeyStatus{Client: client, Key: k.Thumbprint, Agent: by.Agent(), NotBefore: k.NotBefore, NotAfter: k.NotAfter})
		}
	}
	add("", g.pool.Signer())
	for i := range g.rules.Clients {
		add(g.rules.Clients[i].Name, g.rules.Clients[i].Signer)
	}
	return all
}

// warnOfKeys logs which keys of g sign nothing, or soon will not.
func (g *runtimeConfig) warnOfKeys(log *slog.Logger, now time.Time) {
	for _, k := range g.keys() {
		if trouble := k.Trouble(now); trouble != "" {
			log.Warn(trouble)
		}
	}
}

// settings returns the settings of a proxy with the route and the rules.
func (g *runtimeConfig) settings(r *route.Route, rules *acl.Rules) *proxy.Settings {
	s := &proxy.Settings{
		Destinations: g.destinations, Rules: rules, Limits: g.limits, Pacer: g.pacer, Mark: g.cfg.Log.Mark,
		Policies: r.Policies, Upstream: r.Transport, DialTunnel: r.Transport.DialTunnel,
	}
	pages := map[string]usage.Pages{config.PageClients: usage.OfClients, config.PageAll: usage.AllPages, config.PageOff: usage.NoPages}
	s.Signals = usage.Settings{Pages: pages[g.cfg.Signals.Page], Annotate: g.cfg.Signals.Annotate, Documents: r.Documents, Read: g.pages}
	if r.Recorded != nil {
		s.Policies, s.Signals.Documents = r.Recorded, nil
	}
	return s
}

// rules returns the current rules, with what was added at run time.
func (d *daemon) rules() *acl.Rules { return d.settings.Load().Rules }

// amend applies add to the rules of the settings from now on, after reloads too. add
// returns a copy and does not change its argument.
func (d *daemon) amend(add func(*acl.Rules) *acl.Rules) {
	d.changing.Lock()
	defer d.changing.Unlock()
	d.added = add
	d.applyLocked(d.current.Load())
}

// applyLocked makes g the current settings of the shared listeners and of the runs.
func (d *daemon) applyLocked(g *runtimeConfig) {
	rules := g.rules
	if d.added != nil {
		rules = d.added(rules)
	}
	d.current.Store(g)
	g.pool.Pace(&g.cfg.Pacing.Settings)
	shared := g.settings(g.route, rules)
	shared.Balancers = config.Networks(g.cfg.ProxyProtocol)
	d.settings.Store(shared)
	d.runs.each(func(s *runSession) { s.apply(g, rules) })
}

// apply makes g and the rules the current settings of the run, with its flags. Runs
// need no authentication, since they join over the control socket.
func (s *runSession) apply(g *runtimeConfig, rules *acl.Rules) {
	settings := g.settings(s.route, rulesForRun(rules, s.flags))
	if s.network != nil && settings.Destinations != nil {
		d := *settings.Destinations
		d.NoLoopback = true
		settings.Destinations = &d
	}
	s.settings.Store(settings)
}

// rulesForRun returns rules with the flags of a run.
func rulesForRun(rules *acl.Rules, flags acl.Flags) *acl.Rules {
	return config.AmendRules(rules.ForRun(flags), func(in *config.RecordedSettings) { in.Run = flags })
}

// reload reads the settings again and applies them, all or none. Requests in progress
// keep the settings that they began with.
func (d *daemon) reload() (*control.ReloadReply, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	d.manager.Reloading()
	done, err := d.reloadLocked()
	d.notReloaded.Store(nil)
	if err != nil {
		d.notReloaded.Store(&control.FailedReload{At: d.now(), Error: err.Error()})
	}
	d.metrics.Reloaded(d.now(), err)
	status := d.serving()
	if err != nil {
		status += "; the settings were not reloaded: " + console.Printable(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	d.manager.Ready(status)
	if err != nil {
		d.log.Error("the settings were not reloaded; the previous ones stay in effect", "config", control.ShortHash(d.current.Load().cfg.Hash()), "error", err)
		return nil, err
	}
	d.log.Info("the settings were reloaded", "from", done.Source, "config", control.ShortHash(done.Hash), "same", done.Same,
		"read_again", strings.Join(done.Read, ", "), "dropped_failures", done.Dropped)
	for _, notice := range done.Notices {
		d.log.Warn(notice)
	}
	return done, nil
}

func (d *daemon) reloadLocked() (*control.ReloadReply, error) {
	before := d.current.Load()
	cfg, joinHash, err := d.loadSettings()
	if err != nil {
		return nil, err
	}
	if keys := before.cfg.FixedKeys(cfg); len(keys) > 0 {
		return nil, fmt.Errorf("%s: these changes need a restart: %s\nRestart heed, or undo them and reload again", cfg.Source(), strings.Join(keys, ", "))
	}
	renewFleet, err := route.RenewFleet(cfg, d.environ, d.Fleet)
	if err != nil {
		return nil, err
	}
	next, err := d.newRuntimeConfig(cfg, joinHash)
	if err != nil {
		return nil, err
	}
	routes, err := d.runs.routes(next.pool)
	if err != nil {
		return nil, err
	}
	opened, err := d.listeners.openNew(cfg)
	if err != nil {
		return nil, err
	}
	for s, r := range routes {
		s.route = r
	}
	d.applyLocked(next)
	renewFleet()
	d.listeners.recheck()
	d.listeners.replace(cfg, opened)
	for _, l := range opened {
		d.log.Info("heed listens on another address", "listen", l.Addr().String())
	}
	if err := d.publishHolder(); err != nil {
		d.log.Warn("the lock file could not be updated with the listener address", "error", err)
	}
	d.level.Set(cfg.Log.MinLevel())
	dropped := before.pool.Refresh()
	if next.pool != before.pool {
		dropped += next.pool.Refresh() // other routes can have the same policies
	}
	d.counts.ForgetReach()
	done := &control.ReloadReply{
		Source: cfg.Source(), Hash: cfg.Hash(), Same: cfg.Hash() == before.cfg.Hash(),
		Notices: append(cfg.Unjudged(), cfg.Notices(d.now())...), Read: []string{}, Dropped: dropped,
	}
	for _, f := range config.Remarks(cfg) {
		done.Notices = append(done.Notices, f.String())
	}
	for _, f := range cfg.ReloadedFiles() {
		done.Read = append(done.Read, f.Key+" ("+f.Path+")")
	}
	return done, nil
}

// onHangup reloads the settings at every SIGHUP until stop is called. A SIGHUP because the
// terminal was closed stops heed, unless the signal was ignored at the start (nohup).
func (d *daemon) onHangup() (stop func()) {
	with := hasTerminal() && !signal.Ignored(syscall.SIGHUP)
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go d.reloadOn(hangups, done, with)
	return func() {
		signal.Stop(hangups)
		close(done)
	}
}

func (d *daemon) reloadOn(hangups <-chan os.Signal, done <-chan struct{}, withTerminal bool) {
	for {
		select {
		case <-done:
			return
		case <-hangups:
		}
		if withTerminal && !hasTerminal() {
			d.stop()
			return
		}
		_, _ = d.reload() // it logs its result
	}
}
