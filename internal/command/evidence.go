package command

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/proxy"
)

// auditFile is the record of decisions, in the state directory, when audit.file
// names no other place.
const auditFile = "audit.db"

// openEvidence opens the record of decisions, when there is to be one. One that
// cannot be opened ends the start, unless the settings say that it may be missing.
func (o *opened) openEvidence(cfg *Config, state string) error {
	c := &cfg.Audit
	if !c.Enabled {
		return nil
	}
	hidden, err := openPrivacy(c, state)
	if err != nil {
		return err
	}
	how := c.options(hidden, o.log)
	how.Keep, how.MaxSize = c.Keep, int64(c.MaxSize)
	o.evidence, err = store.Open(cmp.Or(c.File, filepath.Join(state, auditFile)), how)
	if err != nil && how.Continue {
		o.log.Error("decisions are not recorded until heed is restarted; requests go on all the same, since the settings say so", "error", err)
		o.unrecorded, err = err, nil
	}
	return err
}

func (c *AuditConfig) options(hidden *audit.Privacy, log *slog.Logger) store.Options {
	return store.Options{Heed: Version(), Disk: c.Durability == "disk", Continue: c.OnFailure == "continue", Privacy: hidden, Log: log}
}

// runAudit is what a run wants recorded in a file of its own.
type runAudit struct {
	File    string   `json:"file"` // absolute; there is none yet
	Command []string `json:"command"`
	Note    string   `json:"note,omitempty"`
}

// check says what is wrong with it.
func (a *runAudit) check() error {
	if len(a.Note) > maxNote {
		return fmt.Errorf("--note takes up to %d octets, and this one has %d", maxNote, len(a.Note))
	}
	if _, err := os.Lstat(a.File); err == nil {
		return fmt.Errorf("--audit: there is a %s already, and a run has a file of its own\nName another file, or move that one away", printable(a.File))
	}
	if dir, err := os.Stat(filepath.Dir(a.File)); err != nil || !dir.IsDir() {
		return fmt.Errorf("--audit: there is no directory %s\nMake it, or name a file elsewhere", printable(filepath.Dir(a.File)))
	}
	return nil
}

// maxNote bounds --note, in octets, so that the record has it whole.
const maxNote = 4096

// openRunEvidence opens the record of a run that wants one of its own; nil when
// it does not. It is kept whole: nothing of it is removed for its age or size.
func (d *daemon) openRunEvidence(a *runAudit) (*store.Writer, error) {
	if a == nil {
		return nil, nil
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	c := &d.current().cfg.Audit
	hidden, err := openPrivacy(c, d.state)
	if err != nil {
		return nil, err
	}
	o := c.options(hidden, d.log)
	o.Command, o.Note = hidden.Command(a.Command), a.Note
	return store.Open(a.File, o)
}

// closeEvidence completes the record of a run that has ended.
func (s *session) closeEvidence(log *slog.Logger) {
	if s.evidence == nil {
		return
	}
	err := s.evidence.Close("heed: cut off, since the run has ended")
	if err == nil {
		err = store.DropTail(s.recorded)
	}
	if err != nil {
		log.Error("the record of a run could not be completed; who reads it does that", "error", err)
	}
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
