package daemon

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/base/ownfile"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/daemon/logs"
	"heed/internal/daemon/systemd"
	"heed/internal/output/console"
)

// maxBackgroundLog is the size in octets at which the log of a background heed is rotated.
// One old file is kept.
const maxBackgroundLog = 8 << 20

// openLog opens the log and the recorder that writes decisions to it: on stderr, or for a
// background heed in a file of bounded size. It also returns the writer of both.
func (c *ServeCmd) openLog(a *console.App, cfg *config.Config, stateDir string) (*resources, *logs.Writer, error) {
	out := a.Stderr
	if c.Background {
		f, err := logs.OpenFile(filepath.Join(stateDir, state.BackgroundLog), maxBackgroundLog)
		if err != nil {
			return nil, nil, fmt.Errorf("the log cannot be written: %w", err)
		}
		out = f
	}
	o, buffered := &resources{level: &slog.LevelVar{}}, logs.NewWriter(out)
	o.level.Set(cfg.Log.MinLevel())
	var err error
	if o.privacy, err = openPrivacy(&cfg.Audit, stateDir); err != nil {
		return nil, nil, err
	}
	o.Redact = func(url string) string { kept, _ := o.privacy.Redact(url); return kept }
	json := cfg.Log.Format == "json" || cfg.Log.Format == "auto" && !console.IsTerminal(out)
	to := io.Writer(buffered)
	if systemd.ToJournal(out) {
		to = logs.Prefixed{Writer: buffered}
	}
	handler := logs.Handler(to, json, o.level, o.privacy.Redact)
	o.decisionLog = audit.NewLog(handler, buffered.Err)
	o.decisionLog.WriteLater(buffered.Wake)
	if o.lostLines = buffered.Lost; cfg.Audit.Enabled || cfg.Audit.OnFailure == "continue" {
		o.decisionLog.Spare()
	}
	buffered.Gather(o.decisionLog.Flush)
	o.log = slog.New(logs.Events{Handler: handler, Decisions: o.decisionLog.Flush, Hurry: buffered.Hurry})
	o.store.Log = o.log
	return o, buffered, nil
}

// openRecord opens the record of decisions, if it is enabled. A record that cannot be
// opened is an error unless audit.on_failure is "continue".
func (o *resources) openRecord(cfg *config.Config, stateDir string) error {
	c := &cfg.Audit
	if !c.Enabled {
		return nil
	}
	how := c.StoreOptions(o.privacy, o.log)
	if o.metrics != nil {
		how.Committed = o.metrics.CommitDone
	}
	how.Keep, how.MaxSize = c.Keep, int64(c.MaxSize)
	path := cmp.Or(c.File, filepath.Join(stateDir, state.AuditFile))
	var err error
	o.record, err = openStore(path, how)
	o.recordSpace = state.WatchSpace(path, how.MaxSize, time.Now())
	if err != nil && how.Continue {
		o.log.Error("decisions are not recorded until heed is restarted; requests continue (audit.on_failure)", "error", err)
		o.unrecorded, err = err, nil
	}
	return err
}

// openStore opens a record, with advice where its disk is full.
func openStore(path string, o store.Options) (*store.Writer, error) {
	w, err := store.Open(path, o)
	if err != nil && state.Full(path, err) {
		err = fmt.Errorf("%w\nMake room on its disk, or name a file on another one in [audit] file", err)
	}
	return w, err
}

// closeRecord completes the record. Open exchanges are recorded as cut off.
func (o *resources) closeRecord() error {
	if o.record == nil {
		return nil
	}
	if err := o.record.Close("heed: cut off, since heed is stopping"); err != nil {
		o.log.Error("the record of decisions could not be completed; the next start completes it from its tail, if that is left", "error", err)
		return console.Exit(console.ExitUsage)
	}
	return nil
}

// stopWithoutLog stops heed when its log has no reader any more and nothing else keeps the
// decisions, so that what supervises heed starts it with a new one.
func (d *daemon) stopWithoutLog(err error) {
	if c := &d.current.Load().cfg.Audit; !c.Enabled && c.OnFailure != "continue" {
		d.failed <- fmt.Errorf("the log has lost its reader, and decisions are recorded nowhere else (audit.enabled = false): %w", err)
	}
}

// recording returns what records and counts every decision. The log is the first recorder:
// where it is the only record, it refuses decisions that it cannot log. It logs none before
// its end.
func (d *daemon) recording() audit.Recording {
	all := audit.Recording{Recorders: []audit.Recorder{d.decisionLog}, Observers: []audit.Observer{d.counts}}
	if d.record != nil {
		all.Recorders = append(all.Recorders, d.record)
	}
	return all
}

// privacyKeyFile is the key for hashed values in the record, in the state directory.
const privacyKeyFile = "audit.key"

// openPrivacy returns the redaction that c configures, with the key of the state
// directory, which is created on first use.
func openPrivacy(c *config.AuditConfig, state string) (*audit.Privacy, error) {
	key, err := privacyKey(filepath.Join(state, privacyKeyFile))
	if err != nil {
		return nil, err
	}
	clients, err := audit.ParseClients(c.Clients)
	if err != nil {
		return nil, err
	}
	return audit.NewPrivacy(clients, c.Redact, key)
}

// privacyKey reads the key at path, or creates it.
func privacyKey(path string) ([]byte, error) {
	fresh := make([]byte, audit.PrivacyKeySize)
	_, _ = rand.Read(fresh) // never fails
	text, err := state.ReadOrCreate(path, hex.EncodeToString(fresh)+"\n")
	if err == nil {
		err = ownfile.CheckFile(ownfile.Secret, "the key", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the key for hidden values of the record cannot be used: %w\n%s", err, state.Remedy(err))
	}
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != audit.PrivacyKeySize {
		return nil, fmt.Errorf("the file %s contains no key\nRemove it and heed creates a new one; values hidden from then on cannot be compared with earlier ones", path)
	}
	return key, nil
}
