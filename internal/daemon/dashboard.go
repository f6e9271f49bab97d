package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"heed/internal/admin"
	"heed/internal/admin/dashboard"
	"heed/internal/config"
	"heed/internal/console"
	"heed/internal/control"
	"heed/internal/counts"
	"heed/internal/pace"
	"heed/internal/state"
	"heed/rules"
)

// dashboard returns the pages of the admin listener. defaults is proxy.toml as built in.
func (d *daemon) dashboard(cfg *config.Config, defaults []byte) *dashboard.Dashboard {
	o := dashboard.Options{Heed: observed{d}, Actions: operated{d}, MayAct: admin.MayAct, Admitted: admin.StillAdmitted, Now: d.now, Log: d.log}
	if d.record != nil {
		o.Record = cmp.Or(cfg.Audit.File, filepath.Join(d.state, state.AuditFile))
	}
	o.BuiltIn = defaults
	o.Defaults, _ = config.BuiltIn(defaults) // heed has read it; nil without it, when nothing is marked
	return dashboard.New(o)
}

// observed implements dashboard.Heed.
type observed struct{ d *daemon }

// Status implements dashboard.Heed.
func (o observed) Status() *control.Status { return o.d.status() }

// Recent implements dashboard.Heed.
func (o observed) Recent() (minute counts.Counts, day []counts.Period) {
	now := o.d.now()
	return o.d.counts.Minute(now), o.d.counts.Day(now)
}

// Check implements dashboard.Heed.
func (o observed) Check(ctx context.Context, q *control.CheckRequest) (*control.Judgement, error) {
	return o.d.check(ctx, q)
}

// Policies implements dashboard.Heed.
func (o observed) Policies(ctx context.Context, each func(*control.CacheEntry) error) error {
	k, leave, err := o.d.openCache()
	if err != nil {
		return err
	}
	defer leave()
	return k.List(ctx, each)
}

// Policy implements dashboard.Heed.
func (o observed) Policy(ctx context.Context, origin string) ([]*control.CacheEntry, error) {
	k, leave, err := o.d.openCache()
	if err != nil {
		return nil, err
	}
	defer leave()
	return k.Show(ctx, origin)
}

// Queues implements dashboard.Heed.
func (o observed) Queues() []pace.SiteStatus { return o.d.waits() }

// Config implements dashboard.Heed.
func (o observed) Config() *config.Config { return o.d.current.Load().cfg }

// operated implements dashboard.Actions.
type operated struct{ d *daemon }

// EndException implements dashboard.Actions.
func (o operated) EndException(id string) error {
	known, err := o.d.grants.end(id)
	if err == nil && !known {
		err = fmt.Errorf("there is no exception or block with the id %s\nIt may have ended already", console.Quoted(id))
	}
	return err
}

// EndObserving implements dashboard.Actions.
func (o operated) EndObserving() error {
	_, err := o.d.grants.enforce()
	return err
}

// EndPause implements dashboard.Actions.
func (o operated) EndPause(origin string) error {
	site, _, err := rules.ParseURL(origin)
	if err != nil {
		return err
	}
	o.d.Turns.Release(site.Host)
	o.d.log.Warn("the pause of a site was ended by hand", "site", origin)
	return nil
}

// Forget implements dashboard.Actions.
func (o operated) Forget(ctx context.Context, origin string) error {
	k, leave, err := o.d.openCache()
	if err != nil {
		return err
	}
	defer leave()
	_, err = k.Purge(ctx, origin)
	return err
}

// Fetch implements dashboard.Actions.
func (o operated) Fetch(ctx context.Context, origin string) error {
	k, leave, err := o.d.openCache()
	if err != nil {
		return err
	}
	defer leave()
	_, err = k.Warm(ctx, origin)
	return err
}
