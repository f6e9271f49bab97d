package command

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"

	"heed/cache"
	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/ca"
	"heed/internal/fleet"
	"heed/internal/pace"
	"heed/internal/terms"
	"heed/proxy"
)

// opened is what a heed opens once, and keeps through every reload.
type opened struct {
	authority *ca.Authority
	log       *slog.Logger
	level     *slog.LevelVar // of log and of record
	record    *audit.Log
	evidence  *store.Writer // nil: decisions are not recorded, but in the log
	// unrecorded says why there is no evidence although there should be; nil: there is.
	unrecorded error
	file       *cache.File  // nil: no policy outlives the process
	fleet      *fleet.Store // nil: there are no other heeds
	turns      *pace.Turns  // at all sites
}

// generation is what one reading of the settings comes to. It is immutable:
// a reload puts another one in its place.
type generation struct {
	cfg      *Config
	joinHash string      // what runs compare: JoinHash of the settings, before flags
	book     *terms.Book // without what was added while heed runs
	ways     *egresses   // to the sites
	egress   *egress     // the way of the settings
	limits   proxy.Limits
	to       *proxy.Destinations
	pacer    *pacer
}

// settings is what a proxy goes by that takes this way and keeps to this book.
func (g *generation) settings(e *egress, book *terms.Book) proxy.Settings {
	s := proxy.Settings{Destinations: g.to, Book: book, Limits: g.limits, Pacer: g.pacer, Mark: g.cfg.Log.Mark}
	if e != nil {
		s.Policies, s.Upstream, s.DialTunnel = e.policies, e.transport, e.transport.DialTunnel
		if e.recorded != nil {
			s.Policies = e.recorded
		}
	}
	return s
}

// generation opens what the settings name: their files and the ways to the
// sites. Ways stay where the settings say the same of them as before.
func (d *daemon) generation(cfg *Config, joinHash string) (*generation, error) {
	g := &generation{cfg: cfg, pacer: cfg.pacer(d.turns), joinHash: joinHash, limits: cfg.Limits.of(openFiles()).WithDefaults()}
	var err error
	if g.book, err = cfg.book(d.now); err != nil {
		return nil, err
	}
	if g.to, err = cfg.destinations(); err != nil {
		return nil, err
	}
	if g.ways, err = d.waysOf(cfg); err != nil {
		return nil, err
	}
	g.egress, err = g.ways.take(way{})
	return g, err
}

// waysOf returns those in force, or others when cfg says something else of them.
func (d *daemon) waysOf(cfg *Config) (*egresses, error) {
	ways, err := newEgresses(cfg, d.environ)
	if err != nil {
		return nil, err
	}
	ways.self, ways.memory, ways.lanes, ways.file, ways.fleet, ways.turns = d.shared.Self, d.memory, &d.lanes, d.file, d.fleet, d.turns
	id, err := ways.identity(way{})
	if err != nil {
		return nil, err
	}
	ways.means = id + cfg.waysText()
	if f := d.book.current.Load(); f != nil && f.ways.means == ways.means {
		return f.ways, nil
	}
	return ways, nil
}

// waysText holds all settings but those that ways to sites have nothing to do
// with: ways whose text is the same are the same.
func (c *Config) waysText() string {
	private := fmt.Sprint(c.servesItself()) // access.private_destinations = "auto" goes by it
	w := *c
	w.Listen, w.Drain, w.HTTPS, w.Log, w.Clients = Addresses{private}, 0, HTTPSConfig{}, LogConfig{}, nil
	w.Audit = AuditConfig{}
	w.Pacing = PacingConfig{RetryAfter: c.Pacing.RetryAfter}
	w.Limits = LimitsConfig{SiteConnections: c.Limits.SiteConnections}
	w.Access.Clients, w.Access.Users = nil, ""
	w.Hosts = slices.Clone(c.Hosts)
	for i := range w.Hosts {
		h := &w.Hosts[i]
		h.HTTPS, h.Ports, h.HostTerms = "", nil, HostTerms{}
	}
	w.Hosts = slices.DeleteFunc(w.Hosts, func(h HostConfig) bool { return reflect.DeepEqual(h, HostConfig{Match: h.Match}) })
	text, err := json.Marshal(w)
	if err != nil {
		panic("settings of plain strings and numbers cannot be marshalled: " + err.Error())
	}
	return string(text)
}
