package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"heed/internal/audit"
	"heed/internal/ca"
	"heed/proxy"
)

// ServeCmd is `heed serve`: the proxy in the foreground.
type ServeCmd struct {
	Config   string   `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Listen   string   `short:"l" env:"HEED_LISTEN" placeholder:"ADDR" help:"Listen on ADDR (host:port) instead of the configured address."`
	Clients  []string `env:"HEED_CLIENTS" placeholder:"NETWORK,..." help:"Serve clients of these networks only, instead of the configured ones."`
	Profile  string   `placeholder:"NAME" help:"Read robots.txt as standard, strict, google or rep1994 have it, instead of the configured one."`
	Upstream string   `placeholder:"env|URL" help:"Reach sites through another proxy: a URL, file:PATH or env:NAME where one stands, or env for the one named in the environment."`

	Observe bool `help:"Refuse nothing: judge and record everything, and tell sites' answers apart that enforcing would refuse."`

	// Background is set by run, which starts the heed that runs share.
	Background bool `hidden:""`
}

// Help is what `heed serve --help` prints at the end.
func (ServeCmd) Help() string {
	return `Listens until Ctrl-C or SIGTERM; then running exchanges end within a limit, and a second signal ends them at once.

  heed serve &
  eval "$(heed env)"
  curl https://example.org/`
}

// Run puts a heed together, in the order its parts need each other, and lets it
// work until it is told to stop.
func (c *ServeCmd) Run(a *App) error {
	if c.Background {
		a.Stderr = a.Stdout // a pipe: who starts us reads there what went wrong
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads refuses requests; it does not end heed

	state, err := StateDir()
	if err != nil {
		return err
	}
	cfg, joinHash, err := c.settings(a, c.Config)
	if err != nil {
		return err
	}
	lock, err := c.lock(a, state)
	if err != nil {
		return err
	}
	defer lock.release()
	return c.serve(a, signals, &place{cfg, joinHash, lock, state})
}

// place is where a heed serves: its settings, and the state directory that it
// alone may use.
type place struct {
	cfg      *Config
	joinHash string
	lock     *stateLock
	state    string
}

// serve opens what lasts as long as heed does, and closes it when that is over.
func (c *ServeCmd) serve(a *App, signals <-chan os.Signal, at *place) error {
	cfg, state := at.cfg, at.state
	authority, err := openCA(cfg, state, a.Now)
	if err != nil {
		return err
	}
	o, written, err := c.openLog(a, cfg, state)
	if err != nil {
		return err
	}
	o.authority = authority
	go o.record.Run(context.Background()) // as long as the process lives
	defer func() {
		o.record.Close("heed: cut off, since heed is stopping")
		_ = written.drain(logPatience) // a log that cannot be written has nowhere to say so
	}()
	if err = o.openEvidence(cfg, state); err != nil {
		return err
	}
	defer o.closeEvidence()
	if o.file, err = openPolicies(cfg, state, o.log); err != nil {
		return err
	}
	defer func() {
		if err := o.file.Close(); err != nil {
			o.log.Error("the policies file could not be closed", "error", err)
		}
	}()
	if o.fleet, err = openFleet(cfg, a.Environ, o.log); err != nil {
		return err
	}
	if o.fleet != nil {
		defer o.fleet.Close() // what it says then is of no use to anybody
	}
	defer o.openTurns(state)()
	d, err := newDaemon(a, at, o)
	if err != nil {
		return err
	}
	d.again = func() (*Config, string, error) { return c.settings(a, cfg.File) }
	if d.background = c.Background; d.background {
		return d.serveBackground(a, signals, at.lock, state)
	}
	return d.serveForeground(a, signals, at.lock, state)
}

// settings returns those of the file, with what the command line says over them,
// and their JoinHash without: flags do not make a heed another one to runs. A
// background heed has the settings of the run that starts it, and does not look
// for a file of its own.
func (c *ServeCmd) settings(a *App, file string) (cfg *Config, joinHash string, err error) {
	if c.Background && file == "" {
		cfg, err = builtInConfig(a.Defaults)
	} else {
		cfg, err = Load(file, a.Defaults)
	}
	if err != nil {
		return nil, "", err
	}
	joinHash = cfg.JoinHash()
	return cfg, joinHash, c.override(cfg, a.Environ)
}

// override changes the settings as the command line says.
func (c *ServeCmd) override(cfg *Config, environ []string) error {
	if !c.Background { // it serves runs alone, at addresses of their own
		if err := cfg.serveAt(c.Listen, c.Clients); err != nil {
			return err
		}
		if err := cfg.exposed(); err != nil {
			return err
		}
	}
	cfg.Observe = c.Observe
	if c.Profile != "" {
		if err := checkProfile(c.Profile); err != nil {
			return fmt.Errorf("--profile: %w", err)
		}
		cfg.Profile = c.Profile
	}
	if c.Upstream != "" {
		var err error
		if cfg.Upstream.Proxy, err = upstreamFlag(c.Upstream); err != nil {
			return fmt.Errorf("--upstream: %w", err)
		}
	}
	if c.Upstream == "env" && upstreamOfEnviron(environ) == nil {
		return errNoEnvProxy
	}
	return nil
}

// lock makes this process the one heed of the state directory. A background
// heed that nobody uses gives way to one that is started by hand.
func (c *ServeCmd) lock(a *App, state string) (*stateLock, error) {
	if c.Background {
		lock, err := lockState(state, goPatience)
		if held := (*errHeld)(nil); errors.As(err, &held) {
			fmt.Fprintln(a.Stdout, heldWord) // then it is joined
			return nil, Exit(0)
		}
		return lock, err
	}
	lock, err := lockState(state, 0)
	if held := (*errHeld)(nil); errors.As(err, &held) && held.Background {
		if newControlClient(state).retire(context.Background()) {
			return lockState(state, goPatience)
		}
	}
	return lock, err
}

// openCA opens the configured CA, or the one of the state directory, which is
// made on first use.
func openCA(cfg *Config, state string, now func() time.Time) (*ca.Authority, error) {
	if cfg.HTTPS.CACert != "" {
		return ca.Load(cfg.HTTPS.CACert, cfg.HTTPS.CAKey, now)
	}
	return ca.Open(state, now)
}

// newDaemon puts together what every listener shares: the settings in force,
// the record and the name.
func newDaemon(a *App, at *place, o *opened) (*daemon, error) {
	name, err := ProxyName(at.cfg, at.state)
	if err != nil {
		return nil, err
	}
	d := &daemon{
		opened: o, state: at.state, book: &books{}, memory: policyMemory(at.cfg), environ: a.Environ, tally: &audit.Tally{}, now: a.Now, since: a.Now(),
		idleFor: idlePatience, stopping: make(chan struct{}), failed: make(chan error, 2), runs: map[string]*session{},
	}
	d.shared = proxy.Config{
		Name: name, Live: d.book.live, Recorder: d.recorders(), Leaves: o.authority, Self: &proxy.Addrs{},
		Load: &proxy.Load{}, Log: o.log, Announce: func(sentence string) { o.log.Info(sentence) },
		CACert: func() ([]byte, error) { return []byte(rootsPEM(o.authority)), nil },
		Bundle: func() ([]byte, error) { return ca.Bundle(o.authority, nil) },
	}
	first, err := d.generation(at.cfg, at.joinHash)
	if err != nil {
		return nil, err
	}
	d.book.renew(first)
	d.grants, err = openGrants(&grants{path: filepath.Join(at.state, grantsFile), log: o.log, now: a.Now, amend: d.book.amend})
	if err != nil {
		return nil, err
	}
	d.shared.Settings = *d.book.live()
	return d, nil
}

// serveForeground opens the shared listener and serves until a signal.
func (d *daemon) serveForeground(a *App, signals <-chan os.Signal, lock *stateLock, state string) error {
	opened, err := d.openNew(d.current().cfg.Listen)
	if err != nil {
		return err
	}
	control, err := listenControl(state, d)
	if err != nil {
		return err
	}
	d.change(d.current().cfg.Listen, opened)
	d.tell = func() error {
		return lock.tell(holder{PID: os.Getpid(), Listen: d.addresses()[0], Socket: control.path})
	}
	if err := d.tell(); err != nil {
		return err
	}
	defer d.onHangup()() // before anybody knows that heed is there
	d.greet(a)
	go func() { d.failed <- control.serve() }()
	select {
	case <-signals:
	case <-d.stopping:
	case err = <-d.failed:
	}
	if err != nil {
		return fmt.Errorf("heed cannot go on: %w", err)
	}
	farewell := fmt.Sprintf("heed: stopping; open exchanges have %v to end, a second signal ends them at once", d.current().cfg.Drain)
	go fmt.Fprintln(a.Stderr, farewell) // whoever does not read it holds nothing up
	return d.drain(signals, control)
}

// serveBackground serves the runs that join, until a signal or until no run has
// come for a while.
func (d *daemon) serveBackground(a *App, signals <-chan os.Signal, lock *stateLock, state string) error {
	control, err := listenControl(state, d)
	if err != nil {
		return err
	}
	if err := lock.tell(holder{PID: os.Getpid(), Background: true, Socket: control.path}); err != nil {
		return err
	}
	defer d.onHangup()()
	go func() { d.failed <- control.serve() }()
	d.awaitIdle()
	fmt.Fprintln(a.Stdout, readyWord)
	if pipe, ok := a.Stdout.(io.Closer); ok {
		pipe.Close()
	}
	a.Stderr = io.Discard // it was that pipe
	select {
	case <-signals:
	case <-d.stopping:
	case err = <-d.failed:
	}
	if err != nil {
		return fmt.Errorf("heed cannot go on: %w", err)
	}
	return d.drain(signals, control)
}

// drain takes no new connections, lets the open exchanges of all listeners end
// within the configured time, and then ends them. A signal ends them at once.
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
		return Exit(signalStatus(s))
	}
}

func (d *daemon) shutdown(control *controlServer) {
	d.turns.EndWaits()
	d.grants.close()
	d.stop() // the runs' proxies drain at the same time
	d.leaveAll()
	control.stop(endPatience) // the runs had the same time; their summaries follow
}
