package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/audit/store"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/daemon/logs"
	"heed/internal/judge/acl"
	"heed/internal/sealed"
	"heed/internal/sealed/process"
	"heed/proxy"
	"heed/proxy/upstream"
)

const (
	maxRuns       = 256              // simultaneous runs
	maxJoin       = 8 << 20          // octets of a JoinRequest, which contains CA files
	streamTimeout = 10 * time.Second // for a run that does not read its log
)

// runs are the runs that joined.
type runs struct {
	idleFor time.Duration // without runs, until retire is called
	retire  func()        // nil: heed does not end without runs

	mu   sync.Mutex
	all  map[string]*runSession
	idle *time.Timer // running while there are none, if that ends heed; else nil
}

// await starts the idle timer.
func (s *runs) await() { s.change(func() {}) }

// enter adds an admitted run.
func (s *runs) enter(r *runSession) { s.change(func() { s.all[r.id] = r }) }

// leave removes a run.
func (s *runs) leave(r *runSession) { s.change(func() { delete(s.all, r.id) }) }

// change changes the runs, and starts or stops the idle timer.
func (s *runs) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	if s.retire != nil && len(s.all) == 0 {
		s.idle = time.AfterFunc(s.idleFor, s.retire)
	}
}

// with calls do with the run that has the id, which does not leave meanwhile, and reports whether
// there is one.
func (s *runs) with(id string, do func(*runSession)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.all[id]
	if r != nil {
		do(r)
	}
	return r != nil
}

// each calls do with every run, none of which leaves meanwhile.
func (s *runs) each(do func(*runSession)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all {
		do(r)
	}
}

// count returns how many there are.
func (s *runs) count() (n int) {
	s.each(func(*runSession) { n++ })
	return n
}

// addresses returns the addresses of the listeners of the runs.
func (s *runs) addresses() []string {
	all := []string{}
	s.each(func(r *runSession) { all = append(all, r.listen) })
	slices.Sort(all)
	return all
}

// networks returns those of the sealed runs.
func (s *runs) networks() (all []*sealed.Network) {
	s.each(func(r *runSession) {
		if r.network != nil {
			all = append(all, r.network)
		}
	})
	return all
}

// routes returns the routes of all runs in pool.
func (s *runs) routes(pool *route.Pool) (map[*runSession]*route.Route, error) {
	routes := map[*runSession]*route.Route{}
	var failed error
	s.each(func(r *runSession) {
		to, err := pool.Route(r.spec)
		routes[r], failed = to, cmp.Or(failed, err)
	})
	return routes, failed
}

// runSession is a run that joined, with a separate listener and proxy.
type runSession struct {
	id     string
	listen string
	proxy  *proxy.Proxy
	tally  *counts.Tally
	log    *audit.Log // writes to the stream; nil: not requested

	flags    acl.Flags
	spec     control.RouteSpec
	route    *route.Route // of spec in the current pool; guarded by daemon.changing
	settings atomic.Pointer[proxy.Settings]

	record     *store.Writer // the separate record; nil: not requested
	recordPath string        // path of record
	stream     *stream
	group      *process.Group  // the processes of the run; nil: not known
	network    *sealed.Network // nil: the run is not sealed
	ended      context.Context // by end
	end        context.CancelFunc
}

// postRun joins a run. Its proxy exists as long as the response: until the run requests
// its end or disconnects, or heed stops.
func (d *daemon) postRun(w http.ResponseWriter, r *http.Request) {
	var j control.JoinRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJoin)).Decode(&j); err != nil {
		writeJSON(w, http.StatusBadRequest, &control.Refusal{Message: "the join request cannot be parsed: " + err.Error()})
		return
	}
	j.Sockets = callerOf(r).files()
	s, err := d.openRun(&j, newStream(w), process.NewGroup(callerOf(r).pid))
	if err != nil {
		var refused *control.Refusal
		if !errors.As(err, &refused) {
			refused = &control.Refusal{Message: err.Error()}
		}
		writeJSON(w, http.StatusConflict, refused)
		return
	}
	s.stream.send(control.StreamLine{Joined: d.joined(s)}) // a client that has disconnected ends the context
	if s.log != nil {
		go s.log.Run(r.Context())
	}
	go s.stream.pump()
	select {
	case <-r.Context().Done():
	case <-s.ended.Done():
	case <-d.stopping.Done():
	}
	d.closeRun(s)
	if s.log != nil {
		s.log.Close("heed: cut off, since the run has ended")
	}
	s.closeRecord(d.log)
	if d.record != nil {
		_ = d.record.Complete() // so that heed audit has the run as soon as it ends; the record logs its own errors
	}
	s.stream.close(control.StreamLine{Summary: new(s.tally.Summary())})
}

// openRun creates the run's proxy and serves on it. The processes of the run are those of
// group.
func (d *daemon) openRun(j *control.JoinRequest, out *stream, group *process.Group) (_ *runSession, err error) {
	network, err := networkOf(j)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && network != nil {
			network.Close()
		}
	}()
	flags, err := flagsOf(j)
	if err != nil {
		return nil, err
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.admit(j); err != nil {
		return nil, err
	}
	g := d.current.Load()
	r, err := g.pool.Route(j.Route)
	if err != nil {
		return nil, err
	}
	s := &runSession{
		id: audit.NewID().String(), tally: &counts.Tally{}, stream: out,
		flags: flags, spec: j.Route, route: r, group: group, network: network,
	}
	s.ended, s.end = context.WithCancel(context.Background())
	if network != nil {
		s.group = nil // the services of the run are in another network
	}
	s.apply(g, d.rules())
	l, err := d.openProxy(s, j)
	if err != nil {
		s.closeRecord(d.log)
		return nil, err
	}
	d.runs.enter(s)
	serve := func(err error) {
		if err != nil {
			d.log.Error("the listener of a run ended", "listen", s.listen, "error", err)
		}
	}
	go func() { serve(s.proxy.Serve(l)) }()
	if network != nil {
		network.Serve()
		go func() {
			serve(s.proxy.ServeTransparent(proxy.Transparent{
				Listener: network.Redirected, Original: network.Original, Name: network.Names.Name, Foreign: true,
			}))
		}()
	}
	return s, nil
}

// networkOf returns the network of a sealed run; nil when the run is not sealed. A run is
// sealed only with its sockets.
func networkOf(j *control.JoinRequest) (*sealed.Network, error) {
	if !j.Route.Sealed && len(j.Sockets) == 0 {
		return nil, nil
	}
	network, err := sealed.NewNetwork(j.Sockets)
	if err == nil && !j.Route.Sealed {
		network.Close()
		err = errors.New("the join request passes sockets, and is not that of a sealed run")
	}
	return network, err
}

// flagsOf returns the settings that the run requests for itself.
func flagsOf(j *control.JoinRequest) (acl.Flags, error) {
	f := j.Flags
	if s := j.Sign; s != nil {
		var err error
		if f.Signer, err = config.NewSigner(s.Key, s.Agent); err != nil {
			return f, fmt.Errorf("--sign: %w", err)
		}
	}
	return f, f.Validate()
}

// openProxy creates the proxy of s, with its record and its listener.
func (d *daemon) openProxy(s *runSession, j *control.JoinRequest) (net.Listener, error) {
	var err error
	if s.record, err = d.openRunRecord(j.Audit, s.network != nil); err != nil {
		return nil, err
	}
	if s.record != nil {
		s.recordPath = j.Audit.File
	}
	var l net.Listener
	if s.network != nil {
		l = s.network.Proxy
	} else {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err == nil {
		s.listen = l.Addr().String()
		s.proxy, err = proxy.New(d.proxyConfig(s, j))
	}
	if err != nil {
		return nil, fmt.Errorf("the proxy for the run cannot be started: %w", err)
	}
	return l, nil
}

// openRunRecord opens the separate record of a run; nil when a is nil. It is not pruned
// by age or size. The note of a sealed run says so.
func (d *daemon) openRunRecord(a *control.RunAudit, sealed bool) (*store.Writer, error) {
	if a == nil {
		return nil, nil
	}
	if err := a.Check(); err != nil {
		return nil, err
	}
	c := &d.current.Load().cfg.Audit
	o := c.StoreOptions(d.privacy, d.log)
	o.Command, o.Note = d.privacy.Command(a.Command), a.Note
	if sealed {
		o.Note = strings.TrimPrefix(o.Note+"; "+sealedNote, "; ")
	}
	return openStore(a.File, o)
}

// sealedNote is in the record of a sealed run: all that its command could send is in it.
const sealedNote = "sealed run: no network exit but heed"

// closeRecord completes the record of a run that has ended.
func (s *runSession) closeRecord(log *slog.Logger) {
	if s.record == nil {
		return
	}
	err := s.record.Close("heed: cut off, since the run has ended")
	if err == nil {
		err = store.DropWAL(s.recordPath)
	}
	if err != nil {
		log.Error("the record of a run could not be completed; its reader will complete it", "error", err)
	}
}

// proxyConfig returns the configuration of the shared proxy, changed for the run.
func (d *daemon) proxyConfig(s *runSession, j *control.JoinRequest) proxy.Config {
	c := d.shared
	c.Own = true
	c.Announce = func(forClient, forLog string) {
		d.log.Info(forLog, "listen", s.listen)
		s.stream.notice(forClient)
	}
	var own []audit.Recorder
	if j.Log {
		s.log = audit.NewLog(logs.Handler(s.stream, true, slog.LevelInfo, d.privacy.Redact), nil)
		own = append(own, s.log) // first: a decision that it refuses does not reach the others
	}
	if s.record != nil {
		own = append(own, s.record)
	}
	all := d.recording()
	c.Recorder = audit.Recording{Recorders: append(own, all.Recorders...), Observers: append(all.Observers, s.tally)}
	c.Silent = s.tally.Silent
	c.Live, c.Settings = s.settings.Load, *s.settings.Load()
	if s.group != nil {
		to := upstream.NewHostTransports(upstream.TransportConfig{Connect: s.group.Dial})
		c.OwnServices = &proxy.OwnServices{Find: s.group.Service, Vacant: s.group.Vacant, Upstream: to, DialTunnel: to.DialTunnel}
	}
	return c
}

// closeRun shuts down the run's proxy; open exchanges have the time runDrain to end.
func (d *daemon) closeRun(s *runSession) {
	ctx, cancel := context.WithTimeout(context.Background(), d.runDrain())
	defer cancel()
	if s.network != nil {
		defer s.network.Close()
	}
	if err := s.proxy.Shutdown(ctx); err != nil {
		d.log.Debug("exchanges of a run were cut off", "listen", s.listen)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	d.runs.leave(s)
}

// joined returns the first line of the stream of s.
func (d *daemon) joined(s *runSession) *control.JoinReply {
	cfg := d.current.Load().cfg
	return &control.JoinReply{
		ID: s.id, Listen: s.listen, Own: append(d.listeners.addresses(), d.runs.addresses()...),
		CA:     control.CAFiles{CACert: cfg.HTTPS.CACert, CAKey: cfg.HTTPS.CAKey},
		CADays: d.authority.DaysLeft(d.now()), Unjudged: cfg.Unjudged(),
	}
}
