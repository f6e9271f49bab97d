package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"heed/cache"
	"heed/cache/policyfile"
	"heed/internal/base/ownfile"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/pace"
	"heed/internal/pace/fleet"
	"heed/internal/trust/ca"
	"heed/internal/trust/passport"
	"heed/proxy/upstream"
	"heed/rules"
)

const (
	// policiesFile is the default of cache.file, in the state directory.
	policiesFile = "policies.db"
	// fileShare is the ratio of policies on disk to policies in memory, in octets. The
	// file may become twice as long.
	fileShare = 2
	// minPolicySize is about the size of the smallest policy in memory. It bounds their
	// number.
	minPolicySize = 1 << 10
)

// OpenPolicies opens the file that stores policies across restarts.
func OpenPolicies(cfg *config.Config, state string, log *slog.Logger) (*policyfile.File, error) {
	return policyfile.Open(PoliciesPath(cfg, state), fileShare*int64(cfg.Cache.MaxBytes), log)
}

// PoliciesPath returns the path of the file that stores policies across restarts.
func PoliciesPath(cfg *config.Config, state string) string {
	return cmp.Or(cfg.Cache.File, filepath.Join(state, policiesFile))
}

// PolicyMemory returns the memory for policies that all routes share: cache.max_bytes
// minus the buffer for writes to disk, but at least half of cache.max_bytes.
func PolicyMemory(cfg *config.Config) *cache.Memory {
	all := int64(cfg.Cache.MaxBytes)
	room := max(all-policyfile.Memory, all/2)
	return cache.NewMemory(int(room/minPolicySize), room)
}

// cacheConfig returns the configuration of the cache that fetches over r, whose identity
// is id.
func (p *Pool) cacheConfig(r *Route, profile rules.Profile, id string) cache.Config {
	c := cache.Config{
		Profile:   profile,
		Transport: r.Transport, Carry: upstream.CarryClient, Signer: clientSigner, Sign: signAs,
		UserAgent: cache.DefaultUserAgent(p.cfg.Contact), Purged: p.purged,
		Memory: p.Memory, Limits: p.FetchLimits, Fetched: p.Fetched, Redact: p.Redact, Route: id + " " + profile.String(),
	}
	guarded := r.Transport.GuardRedirects()
	c.PerFetch = func() http.RoundTripper { return ownFetch{guarded().(guardedFetch), p} }
	if p.Turns != nil {
		c.Turn = p.visitTurn
	}
	switch {
	case p.File != nil:
		c.Store = p.File.ForRoute(id)
	case p.Stored != "":
		c.Store = policyfile.OpenReadOnly(p.Stored, id)
	}
	if r.Shared != nil {
		c.Shared = r.Shared
	}
	return c
}

// purged forgets what the routes keep of a site beside its policies; see cache.Config.
func (p *Pool) purged(o rules.Origin) (had bool) {
	for _, r := range p.All() {
		had = r.Documents.Purge(o) || had
	}
	return p.Purged != nil && p.Purged(o) || had
}

// identity returns a hash that identifies the route of spec across settings. A policy is
// valid only for the route it was fetched over: through another proxy, or without
// upstream.resolve, the same name may be another site.
func (p *Pool) identity(spec control.RouteSpec) (string, error) {
	parts := struct {
		Proxy   *control.UpstreamProxy
		Roots   string
		CA      []byte
		Resolve map[string]string
		Hosts   []config.HostRoute `json:",omitempty"`
		Signer  string             `json:",omitempty"`
	}{Proxy: cmp.Or(spec.Proxy, p.proxy), Hosts: p.hosts, Roots: spec.Roots, Resolve: p.cfg.Upstream.Resolve, Signer: p.signing.own.ID()}
	if p.cfg.Upstream.CAFile != "" {
		file, err := ownfile.Read(p.cfg.Upstream.CAFile, config.MaxCAFile)
		if err != nil {
			return "", fmt.Errorf("upstream.ca_file: %w", err)
		}
		parts.CA = file.Data
	}
	return console.Digest(parts), nil
}

// shared returns the fleet's policies for the route of the settings. Runs with another
// route share nothing. The passwords of upstream proxies are not part of the key: not even
// a hash of them may be in the store.
func (p *Pool) shared() (*fleet.Policies, error) {
	redacted := Pool{cfg: p.cfg, hosts: slices.Clone(p.hosts), signing: p.signing}
	for i := range redacted.hosts {
		redacted.hosts[i].Upstream = config.RedactURL(redacted.hosts[i].Upstream)
	}
	if proxy := p.proxy; proxy != nil {
		redacted.proxy = &control.UpstreamProxy{All: config.RedactURL(proxy.All), HTTP: config.RedactURL(proxy.HTTP), HTTPS: config.RedactURL(proxy.HTTPS), NoProxy: proxy.NoProxy}
	}
	space, err := redacted.identity(control.RouteSpec{})
	if err != nil {
		return nil, err
	}
	if profile := p.cfg.RulesProfile(); profile != rules.Standard {
		space += "-" + profile.String() // instances with different profiles interpret a denial differently
	}
	return p.Fleet.Policies(space), nil
}

// OpenFleet opens the store of the fleet, which reports as o says; nil when none is configured.
func OpenFleet(cfg *config.Config, environ []string, o fleet.Options) (*fleet.Store, error) {
	if err := fleetAccess(cfg, environ, &o); err != nil || o.URL == "" {
		return nil, err
	}
	return fleet.Open(o)
}

// TryFleet returns why the store of the fleet cannot be used, from here and now; nil when it
// can, or none is configured.
func TryFleet(ctx context.Context, cfg *config.Config, environ []string) error {
	var o fleet.Options
	if err := fleetAccess(cfg, environ, &o); err != nil || o.URL == "" {
		return err
	}
	return fleet.Try(ctx, o)
}

// errOtherFleet is the error of settings that name another store than before.
var errOtherFleet = errors.New("fleet.url: another store needs a restart\nRestart heed, or undo the change and reload again")

// RenewFleet returns a function that makes new connections to store, nil where there is
// none, use what the settings and the files that they name say of it now.
func RenewFleet(cfg *config.Config, environ []string, store *fleet.Store) (use func(), err error) {
	var o fleet.Options
	switch err := fleetAccess(cfg, environ, &o); {
	case err != nil:
		return nil, err
	case store == nil && o.URL == "":
		return func() {}, nil
	case store == nil || o.URL == "":
		return nil, errOtherFleet
	}
	if use, err = store.Renew(o); errors.Is(err, fleet.ErrOtherStore) {
		return nil, errOtherFleet
	}
	return use, err
}

// fleetAccess sets the URL of o, empty where no store is configured, and what connections
// to it need.
func fleetAccess(cfg *config.Config, environ []string, o *fleet.Options) (err error) {
	if o.URL, err = config.FleetURL(cfg, environ); o.URL == "" || err != nil {
		return err
	}
	if cfg.Fleet.CAFile != "" {
		if o.RootCAs, err = ca.SystemPool(cfg.Fleet.CAFile); err != nil {
			return fmt.Errorf("fleet.ca_file: %w", err)
		}
	}
	if o.Certificate, err = cfg.Fleet.Certificate(); err != nil {
		return fmt.Errorf("fleet.cert: %w", err)
	}
	return nil
}

// errNoTurn is the error of a visit without a turn.
var errNoTurn = errors.New("its turn at the host that it is redirected to did not come in time")

// visitTurn implements cache.Config.Turn.
func (p *Pool) visitTurn(ctx context.Context, v cache.Visit) (context.Context, func(), error) {
	patience := cache.DefaultTimeout
	if end, ok := ctx.Deadline(); ok {
		patience = time.Until(end)
	}
	a := p.Turns.Take(ctx, &pace.Ask{
		Settings: p.pacing.Load(), Origin: v.Origin, Hints: v.Hints, RobotsTxt: v.RobotsTxt,
		Agent: "heed", Client: "heed", Name: "heed", Patience: &patience,
	})
	switch {
	case a.Refused, a.Left:
		return nil, nil, errNoTurn
	case a.Turn == nil:
		return ctx, func() {}, nil
	}
	return context.WithValue(ctx, turnKey{}, a.Turn), a.Turn.End, nil
}

// turnKey is the context key of the pace.Turn that a visit has.
type turnKey struct{}

// guardedFetch is what carries the requests of one fetch.
type guardedFetch interface {
	upstream.Sender
	Scope(context.Context) string
}

// ownFetch sends the requests of one fetch of heed's own, and signs each for the host that it is
// sent to. They are never delayed, but the pacing of the site counts them; visits have a turn.
type ownFetch struct {
	guardedFetch
	pool *Pool
}

// RoundTrip implements http.RoundTripper.
func (f ownFetch) RoundTrip(r *http.Request) (*http.Response, error) {
	q, turns := &upstream.Request{Request: r}, f.pool.Turns
	o, err := rules.OriginOf(r.URL)
	if err != nil {
		return f.Send(q) // which returns the error
	}
	if own := f.pool.Fetches; own != nil && f.pool.proxy != nil && f.pool.cfg.IsAsked() {
		value, end := own.Begin(o)
		defer end()
		q.Request = r.Clone(r.Context())
		q.Header.Set(upstream.OwnField, value)
	}
	if f.pool.signing.sign(q, o); turns == nil {
		return f.Send(q)
	}
	sent := time.Now()
	turn, _ := r.Context().Value(turnKey{}).(pace.Turn)
	q.Hooks = &counted{turns: turns, origin: o, turn: turn}
	resp, err := f.Send(q)
	if err == nil && f.pool.cfg.Pacing.RetryAfter != "observe" {
		turns.Answered(o, resp.StatusCode, resp.Header, sent)
	}
	return resp, err
}

// counted are the hooks of a fetch that the pacing of its site counts when it is sent.
type counted struct {
	upstream.NoHooks
	turns  *pace.Scheduler
	origin rules.Origin
	turn   pace.Turn // nil: it has none
}

// Connected implements upstream.Hooks. A fetch has one turn only.
func (c *counted) Connected(bool) bool {
	if c.turn != nil {
		c.turn.Going()
	}
	return true
}

// Written implements upstream.Hooks.
func (c *counted) Written() {
	if c.turn != nil {
		c.turn.Started()
		return
	}
	c.turns.Fetches(c.origin)
}

// FindStored returns the path of the file with the policies that this user's heed stored, which
// may have it open; empty when there is no state directory.
func FindStored(cfg *config.Config) string {
	state, err := state.Find(io.Discard)
	if err != nil {
		return ""
	}
	return PoliciesPath(cfg, state)
}

// signing is how heed's own requests are signed: with a key of heed's own, or, as far as they
// are made as a client, as the requests of this client.
type signing struct {
	own  *passport.Signer // nil: those that are made as heed itself are not signed
	site func(rules.Origin) (form passport.Form, signed bool)
}

// Signer returns what signs heed's own requests; nil when they are not signed.
func (p *Pool) Signer() *passport.Signer { return p.signing.own }

// clientKey is the context key of the *passport.Signer of the client that a request is made
// as; nil: the requests of this client are not signed.
type clientKey struct{}

// clientSigner implements cache.Config.Signer.
func clientSigner(ctx context.Context) cache.Signer {
	if s := upstream.SignerOf(ctx); s != nil {
		return s
	}
	return nil
}

// signAs implements cache.Config.Sign.
func signAs(to context.Context, as cache.Signer) context.Context {
	s, _ := as.(*passport.Signer)
	return context.WithValue(to, clientKey{}, s)
}

// sign has q signed for the site at o.
func (s *signing) sign(q *upstream.Request, o rules.Origin) {
	by := s.own
	if as, ok := q.Context().Value(clientKey{}).(*passport.Signer); ok {
		by = as
	}
	if by == nil {
		return
	}
	if form, signed := s.site(o); signed {
		q.Signer, q.SignForm = by, form
	}
}
