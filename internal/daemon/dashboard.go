package daemon

import (
	"cmp"
	"path/filepath"

	"heed/internal/admin"
	"heed/internal/admin/dashboard"
	"heed/internal/config"
	"heed/internal/counts"
	"heed/internal/state"
	"heed/rules"
)

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
