package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"heed/cache"
	"heed/internal/audit/counts"
	"heed/internal/base/memory"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/daemon/logs"
	"heed/internal/daemon/systemd"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/internal/trust/ca"
	"heed/proxy"
	"heed/proxy/limit"
	"heed/proxy/upstream"
)

// ServeCmd is `heed serve`: the proxy in the foreground.
type ServeCmd struct {
	config.FileFlags
	Listen   string   `short:"l" env:"HEED_LISTEN" placeholder:"ADDR" help:"Listen on ADDR (host:port) instead of the configured address."`
	Clients  []string `env:"HEED_CLIENTS" placeholder:"NETWORK,..." help:"Serve only clients of these networks, not the configured ones."`
	Profile  string   `placeholder:"NAME" help:"Use this profile: standard, strict, google or rep1994."`
	Upstream string   `placeholder:"env|URL" help:"Reach sites through a proxy: URL, file:PATH, env:NAME or env."`

	Observe bool `help:"Refuse nothing; judge, record and log what would be refused."`

	// Background is set by run, which starts the heed that runs share.
	Background bool `hidden:""`
}

// Run opens the parts of a heed in the order of their dependencies and serves until a
// signal.
func (c *ServeCmd) Run(a *console.App) error {
	if c.Background {
		a.Stderr = a.Stdout // a pipe: the process that starts heed reads errors from it
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	signal.Ignore(syscall.SIGPIPE) // a log without a reader is an error in the status: see stopWithoutLog

	state, err := state.Dir()
	if err != nil {
		return err
	}
	cfg, joinHash, err := c.settings(a, nil)
	if err != nil {
		return err
	}
	volume, err := openVolume(state)
	if err != nil {
		return err
	}
	lock, err := c.lock(a, state)
	if err != nil {
		return err
	}
	defer lock.Release()
	return c.serve(a, signals, &serveEnv{cfg, joinHash, lock, state, volume})
}

// serveEnv holds the settings of a heed and the state directory that it has locked.
type serveEnv struct {
	cfg      *config.Config
	joinHash string
	lock     *state.Lock
	state    string
	volume   *volume
}

// serve opens the resources, serves, and closes them.
func (c *ServeCmd) serve(a *console.App, signals <-chan os.Signal, env *serveEnv) (err error) {
	defer memory.Manage()()
	cfg, state := env.cfg, env.state
	authority, err := route.OpenCA(cfg.HTTPS.CACert, cfg.HTTPS.CAKey, state, a.Now)
	if err != nil {
		return err
	}
	o, written, err := c.openLog(a, cfg, state)
	if err != nil {
		return err
	}
	o.authority = authority
	for _, f := range config.Remarks(cfg) {
		o.log.Warn(f.Text, "file", f.File, "line", f.Line)
	}
	if err := env.volume.check(cfg, state, o.log); err != nil {
		return err
	}
	go o.decisionLog.Run(context.Background()) // as long as the process lives
	defer func() {
		o.decisionLog.Close("heed: cut off, since heed is stopping")
		_ = written.Drain(logs.DrainTimeout) // a log that cannot be written cannot report that
	}()
	d := &daemon{resources: o, background: c.Background}
	if cfg.Admin.Listen != "" && !c.Background {
		d.openMetrics()
	}
	if err = o.openRecord(cfg, state); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, o.closeRecord()) }()
	if o.File, err = route.OpenPolicies(cfg, state, o.log); err != nil {
		return err
	}
	defer func() {
		if err := o.File.Close(); err != nil {
			o.log.Error("the policies file could not be closed", "error", err)
		}
	}()
	if o.Fleet, err = route.OpenFleet(cfg, a.Environ, o.store); err != nil {
		return err
	}
	if o.Fleet != nil {
		defer o.Fleet.Close() // its error does not matter any more
	}
	turns := openTurnsFile(filepath.Join(state, turnsName), o.Fleet, o.log)
	defer turns.close()
	o.Turns = turns.turns
	if err := d.prepare(a, env); err != nil {
		return err
	}
	written.Broken(d.stopWithoutLog)
	d.loadSettings = func() (*config.Config, string, error) { return c.settings(a, cfg) }
	return d.serve(a, signals, env)
}

// settings returns the settings with the flags applied, and their JoinHash without flags,
// since runs do not compare those. At a reload, before are the settings of the start; at
// the start it is nil.
func (c *ServeCmd) settings(a *console.App, before *config.Config) (cfg *config.Config, joinHash string, err error) {
	if cfg, err = c.Again(a, before); err != nil {
		return nil, "", err
	}
	joinHash = cfg.JoinHash()
	if err := c.override(cfg, a.Environ); err != nil {
		return nil, "", err
	}
	return cfg, joinHash, checkFiles(cfg, a)
}

// override applies the flags to the settings.
func (c *ServeCmd) override(cfg *config.Config, environ []string) error {
	if !c.Background { // it serves only runs, on separate addresses
		if err := cfg.ServeAt(c.Listen, c.Clients); err != nil {
			return err
		}
		if err := cfg.CheckExposure(); err != nil {
			return err
		}
	}
	cfg.Observe = c.Observe
	if c.Profile != "" {
		if err := config.CheckProfile(c.Profile); err != nil {
			return fmt.Errorf("--profile: %w", err)
		}
		cfg.Profile = c.Profile
	}
	if c.Upstream != "" {
		var err error
		if cfg.Upstream.Proxy, err = config.UpstreamFlag(c.Upstream); err != nil {
			return fmt.Errorf("--upstream: %w", err)
		}
		if _, err = config.ResolveUpstream(cfg.Upstream.Proxy, environ); err != nil {
			return fmt.Errorf("--upstream: %w", err)
		}
	}
	if c.Upstream == "env" && route.ProxyOfEnviron(environ) == nil {
		return route.ErrNoEnvProxy
	}
	return nil
}

// lock acquires the lock of the state directory. A foreground heed replaces a background
// heed without runs.
func (c *ServeCmd) lock(a *console.App, stateDir string) (*state.Lock, error) {
	if c.Background {
		lock, err := state.Acquire(stateDir, control.ExitTimeout)
		if held := (*state.HeldError)(nil); errors.As(err, &held) {
			fmt.Fprintln(a.Stdout, control.HeldWord) // the run joins that heed
			return nil, console.Exit(0)
		}
		return lock, err
	}
	lock, err := state.Acquire(stateDir, 0)
	if held := (*state.HeldError)(nil); errors.As(err, &held) && held.Background {
		if control.NewClient(stateDir).Retire(context.Background()) {
			return state.Acquire(stateDir, control.ExitTimeout)
		}
	}
	return lock, err
}

// prepare sets what all listeners of d share: the current settings, the record and the
// name. The resources of d are open.
func (d *daemon) prepare(a *console.App, env *serveEnv) error {
	o := d.resources
	name, err := ProxyName(env.cfg, env.state)
	if err != nil {
		return err
	}
	o.Self, o.Memory, o.FetchLimits = &acl.Addrs{}, route.PolicyMemory(env.cfg), &cache.FetchLimits{}
	d.state, d.environ, d.now, d.since = env.state, a.Environ, a.Now, a.Now()
	d.counts = counts.New(d.metrics)
	if !d.background { // else the variables of a manager are those of a program that started a run
		d.manager = systemd.Open(d.log)
	}
	d.failed = make(chan error, 4)
	if d.runs.all = map[string]*runSession{}; d.background {
		d.runs.idleFor, d.runs.retire = idleTimeout, func() { d.retire() }
	}
	d.listeners.none, d.listeners.log, d.listeners.failed, d.listeners.shared = d.background, o.log, d.failed, &d.shared
	d.listeners.config = func() *config.Config { return d.current.Load().cfg }
	d.stopping, d.stop = context.WithCancel(context.Background())
	o.ProxyUsed, o.IdleConns, o.Fetches = d.counts.ProxyUsed, config.IdleSiteConnections(openFiles()), &upstream.OwnFetches{}
	d.shared = proxy.Config{
		Name: name, Live: d.settings.Load, Recorder: d.recording(), Leaves: o.authority, Self: o.Self, Fetches: o.Fetches,
		Load: &limit.Load{}, Log: o.log, Announce: func(_, forLog string) { o.log.Info(forLog) },
		CACert:  func() ([]byte, error) { return o.authority.CertPEM(), nil },
		Contact: func() string { return d.current.Load().cfg.Contact },
		Bundle:  func() ([]byte, error) { return ca.Bundle(o.authority, nil) },
	}
	if d.metrics != nil {
		d.shared.Handshake = d.metrics.ClientHandshake
	}
	first, err := d.newRuntimeConfig(env.cfg, env.joinHash)
	if err != nil {
		return err
	}
	d.applyLocked(first)
	d.grants, err = openGrants(&grants{path: filepath.Join(env.state, grantsFile), log: o.log, now: a.Now, rules: d.rules, amend: d.amend})
	if err != nil {
		return err
	}
	d.shared.Settings = *d.settings.Load()
	d.metrics.Reloaded(d.since, nil)
	return nil
}

// serve serves on the shared listeners, or in the background the runs that join, until a
// signal, an error, or the end of an idle background heed.
func (d *daemon) serve(a *console.App, signals <-chan os.Signal, env *serveEnv) error {
	opened, err := d.listeners.openNew(env.cfg)
	if err != nil {
		return err
	}
	if d.admin, err = d.openAdmin(env.cfg, a.Defaults); err != nil {
		closeAll(opened)
		return err
	}
	socket, err := listenControl(env.state, d)
	if err != nil {
		return err
	}
	d.listeners.replace(env.cfg, opened)
	d.publishHolder = func() error {
		listen := config.Addresses(d.listeners.addresses()).First()
		return env.lock.Publish(state.Holder{PID: os.Getpid(), Background: d.background, Listen: listen, Socket: socket.path})
	}
	if err := d.publishHolder(); err != nil {
		return err
	}
	defer d.onHangup()() // before heed announces that it is ready
	go func() { d.failed <- socket.serve() }()
	if d.admin != nil {
		go d.serveAdmin()
	}
	if d.background {
		d.announceReady(a)
	} else {
		d.greet(a)
	}
	defer d.supervise()()
	select {
	case <-signals:
	case <-d.stopping.Done():
	case err = <-d.failed:
	}
	if err != nil {
		return fmt.Errorf("heed must stop: %w", err)
	}
	drain, after := d.current.Load().cfg.Drain, d.current.Load().cfg.DrainAfter
	d.stoppingWithin(after + drain)
	farewell := fmt.Sprintf("heed: stopping; open exchanges have %v to end, a second signal ends them immediately", drain)
	go fmt.Fprintln(a.Stderr, farewell) // a reader that is blocked does not delay the end
	if s, again := d.linger(after, signals); again {
		return console.Exit(console.SignalStatus(s))
	}
	return d.drain(signals, socket)
}

// linger serves on for a time without being ready, or until a signal, which is returned.
func (d *daemon) linger(after time.Duration, signals <-chan os.Signal) (s os.Signal, again bool) {
	if after == 0 {
		return nil, false
	}
	d.leaving.Store(true)
	d.listeners.leave()
	select {
	case <-time.After(after):
		return nil, false
	case s = <-signals:
		return s, true
	}
}

// announceReady reports to the run that started this heed that it can join. heed ends
// after it has been idle for idleTimeout.
func (d *daemon) announceReady(a *console.App) {
	d.runs.await()
	fmt.Fprintln(a.Stdout, control.ReadyWord)
	if pipe, ok := a.Stdout.(io.Closer); ok {
		pipe.Close()
	}
	a.Stderr = io.Discard // it was the same pipe
}

// drain accepts no new connections and waits for the open exchanges of all listeners, up
// to the time drain of the settings. A signal ends them immediately.
func (d *daemon) drain(signals <-chan os.Signal, control *controlServer) error {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		d.shutdown(control)
	}()
	select {
	case <-drained:
		return nil
	case s := <-signals:
		return console.Exit(console.SignalStatus(s))
	}
}

func (d *daemon) shutdown(socket *controlServer) {
	d.stop() // not ready from now on; the runs' proxies drain at the same time
	d.Turns.EndWaits()
	d.grants.close()
	d.listeners.drainAll()
	if d.admin != nil {
		d.admin.close()
	}
	socket.stop(control.EndTimeout) // runs had the same time; this is for their summaries
}

// idleTimeout is how long a background heed waits for the next run before it ends.
const idleTimeout = 30 * time.Second

// CheckSettings returns every error that would prevent a heed with these settings from
// starting: errors of the files and variables that they name, and missing client
// restrictions. The errors are joined; nil when there are none.
func CheckSettings(c *config.Config, a *console.App) error {
	if err := checkFiles(c, a); err != nil {
		return errors.Join(err, c.CheckExposure())
	}
	_, routes := route.NewPool(c, a.Environ, route.Options{})
	_, rules := c.Rules(a.Now)
	return errors.Join(c.CheckExposure(), routes, rules)
}

// checkFiles returns the mistakes in the files that the settings name, as
// config.Mistakes; nil when there are none.
func checkFiles(c *config.Config, a *console.App) error {
	all := c.FileMistakes(a.Environ)
	if c.HTTPS.CACert != "" {
		if _, err := ca.Load(c.HTTPS.CACert, c.HTTPS.CAKey, a.Now); err != nil {
			all = append(all, c.Find("https.ca_cert", "https.ca_cert: %v", err))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
