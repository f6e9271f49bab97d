package command

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
)

// reloaded says what a reload did.
type reloaded struct {
	Source  string   `json:"source"` // where the settings are from, for people
	Hash    string   `json:"hash"`
	Same    bool     `json:"same"`    // they say what they said before
	Notices []string `json:"notices"` // what an operator should know of them, as at every start
}

// reload reads the settings anew and puts them in force, whole or not at all.
// Requests under way end under the settings that they began with.
func (d *daemon) reload() (*reloaded, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	done, err := d.reloadLocked()
	if err != nil {
		d.log.Error("the settings were not reloaded; those of before stay in force", "config", shortHash(d.current().cfg.Hash()), "error", err)
		return nil, err
	}
	d.log.Info("the settings were reloaded", "from", done.Source, "config", shortHash(done.Hash), "same", done.Same)
	for _, notice := range done.Notices {
		d.log.Warn(notice)
	}
	return done, nil
}

func (d *daemon) reloadLocked() (*reloaded, error) {
	before := d.current()
	cfg, joinHash, err := d.again()
	if err != nil {
		return nil, err
	}
	if keys := before.cfg.fixedKeys(cfg); len(keys) > 0 {
		return nil, fmt.Errorf("%s: what is changed needs a restart: %s\nRestart heed, or leave that as it was and reload again", cfg.source(), strings.Join(keys, ", "))
	}
	next, err := d.generation(cfg, joinHash)
	if err != nil {
		return nil, err
	}
	opened, err := d.openFor(cfg)
	if err != nil {
		d.giveBack(next, nil)
		return nil, err
	}
	runs, err := d.runsTake(next.ways)
	if err != nil {
		d.giveBack(next, runs)
		closeAll(opened)
		return nil, err
	}
	d.book.renew(next)
	d.changeTo(cfg, opened)
	d.level.Set(cfg.Log.level())
	d.giveBack(before, runs)
	return &reloaded{
		Source: cfg.source(), Hash: cfg.Hash(), Same: cfg.Hash() == before.cfg.Hash(),
		Notices: append(cfg.unjudged(), cfg.notices(d.now())...),
	}, nil
}

// openFor opens the listeners that the settings add. A background heed has none.
func (d *daemon) openFor(cfg *Config) ([]*listening, error) {
	if d.background {
		return nil, nil
	}
	return d.openNew(cfg.Listen)
}

// changeTo has the listeners be those of the settings.
func (d *daemon) changeTo(cfg *Config, opened []*listening) {
	if d.background {
		return
	}
	d.change(cfg.Listen, opened)
	if err := d.tell(); err != nil {
		d.log.Warn("the lock file does not say where heed listens", "error", err)
	}
}

// runsTake opens the ways that the runs take among ways, and returns those runs.
func (d *daemon) runsTake(ways *egresses) ([]*session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var runs []*session
	for _, s := range d.runs {
		runs = append(runs, s)
		if err := s.ways.take(ways); err != nil {
			return runs, err
		}
	}
	return runs, nil
}

// giveBack gives back the ways of a generation that is not in force. When those
// in force are the same ones, the runs keep theirs.
func (d *daemon) giveBack(g *generation, runs []*session) {
	g.ways.give(g.egress)
	if g.ways == d.current().ways {
		return
	}
	for _, s := range runs {
		s.ways.give(g.ways)
	}
	g.ways.retire()
}

// fixed are the settings that hold as long as the process does.
var fixed = []string{
	"name", "https.ca_cert", "https.ca_key", "cache.max_bytes", "cache.file", "fleet.url", "fleet.ca_file", "log.format",
	"audit.enabled", "audit.file", "audit.durability", "audit.on_failure", "audit.clients", "audit.redact",
	"limits.header_bytes", "limits.header_time", "limits.idle_time", "limits.streams",
}

// fixedKeys returns those of the fixed settings that differ from next's.
func (c *Config) fixedKeys(next *Config) []string {
	var keys []string
	for _, key := range fixed {
		if !reflect.DeepEqual(c.valueOf(key), next.valueOf(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// valueOf returns the value of a key by its full name.
func (c *Config) valueOf(key string) any {
	v := reflect.ValueOf(*c)
	for part := range strings.SplitSeq(key, ".") {
		v = fieldsByKey(v)[part]
	}
	return v.Interface()
}

// shortHash is what stands in the log for a configuration's hash.
func shortHash(hash string) string { return hash[:min(12, len(hash))] }

// postReload reloads the settings and answers with the outcome.
func (d *daemon) postReload(w http.ResponseWriter, _ *http.Request) {
	done, err := d.reload()
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, &refusedJoin{Message: err.Error()})
		return
	}
	answer(w, http.StatusOK, done)
}
