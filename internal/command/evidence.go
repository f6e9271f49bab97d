package command

import (
	"cmp"
	"log/slog"
	"path/filepath"

	"heed/internal/audit/store"
	"heed/proxy"
)

// auditFile is the record of decisions, in the state directory, when audit.file
// names no other place.
const auditFile = "audit.db"

// openEvidence opens the record of decisions; nil when there is to be none.
func openEvidence(cfg *Config, state string, log *slog.Logger) (*store.Writer, error) {
	c := &cfg.Audit
	if !c.Enabled {
		return nil, nil
	}
	hidden, err := openPrivacy(c, state)
	if err != nil {
		return nil, err
	}
	return store.Open(cmp.Or(c.File, filepath.Join(state, auditFile)), store.Options{
		Heed: Version(), Disk: c.Durability == "disk", Continue: c.OnFailure == "continue", Privacy: hidden, Log: log,
		Keep: c.Keep, MaxSize: int64(c.MaxSize),
	})
}

// closeEvidence completes the record: what has not ended is cut off.
func (o *opened) closeEvidence() {
	if o.evidence == nil {
		return
	}
	if err := o.evidence.Close("heed: cut off, since heed is stopping"); err != nil {
		o.log.Error("the record of decisions could not be completed; the next start does that", "error", err)
	}
}

// recorders are those that every decision goes to. The log comes first: it takes
// none that it could not tell, and tells none before its end.
func (d *daemon) recorders() recorders {
	all := recorders{d.record}
	if d.evidence != nil {
		all = append(all, d.evidence)
	}
	return append(all, proxy.Recorder(d.tally))
}
