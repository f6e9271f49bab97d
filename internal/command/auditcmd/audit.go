// Package auditcmd holds the commands over the record of decisions: heed audit and
// heed why.
package auditcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"

	"heed/internal/audit/store"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/output/console"
)

// AuditCmd is `heed audit`: the record of decisions.
type AuditCmd struct {
	Verify  AuditVerifyCmd     `cmd:"" help:"Verify that a record is as heed wrote it."`
	Seal    AuditSealCmd       `cmd:"" help:"Print the head of a record, for publication or a signature."`
	Key     AuditKeyCmd        `cmd:"" help:"Print the public key that verifies heads and proofs."`
	Prove   AuditProveCmd      `cmd:"" help:"Write a proof of one decision, or of those on a site."`
	Check   AuditCheckProofCmd `cmd:"" name:"check-proof" help:"Check a proof: needs no record and no state directory."`
	Backup  AuditBackupCmd     `cmd:"" help:"Copy a record into one file while heed writes to it."`
	List    AuditListCmd       `cmd:"" help:"List decisions, one per line."`
	Replay  AuditReplayCmd     `cmd:"" help:"Judge every decision again, also by other rules or agents."`
	Recheck AuditRecheckCmd    `cmd:"" help:"List past requests that today's robots.txt would refuse."`
	Report  AuditReportCmd     `cmd:"" help:"Report requests and refusals by agent and by site."`
	Export  AuditExportCmd     `cmd:"" help:"Export every decision as JSON Lines or CSV."`
	Diff    AuditDiffCmd       `cmd:"" help:"Compare the requests of two records, and their verdicts."`
}

// recordFiles are the records that a verb of heed audit reads.
type recordFiles struct {
	config.FileFlags
	Files []string `arg:"" optional:"" name:"file" help:"Records to read (default: this heed's own)."`
}

// paths returns the files named, else the record that the settings name. Where no settings
// are selected, it is that of the running heed.
func (f *recordFiles) paths(a *console.App) ([]string, error) {
	if len(f.Files) > 0 {
		return f.Files, nil
	}
	cfg, err := f.Load(a)
	if err != nil {
		return nil, fmt.Errorf("the path of the record cannot be read from the settings: %w\nName the file", err)
	}
	path := cfg.Audit.File
	if path == "" {
		dir, err := state.Find(a.Stderr)
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, state.AuditFile)
		if running := runningRecord(dir); running != "" && cfg.File == "" && !f.Chosen(a) {
			path = running
		}
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no record at %s\nName the file (see --help), or its settings with --config%s", path, state.ServiceAdvice(filepath.Dir(path)))
	}
	return []string{path}, nil
}

// runningRecord returns the record that the heed of the state directory writes to; empty
// when none runs, or it keeps no record.
func runningRecord(dir string) string {
	s, err := control.ReadStatus(context.Background(), dir)
	if err != nil || s.Room.Record == nil {
		return ""
	}
	return s.Room.Record.Path
}

// open opens the records, and completes those that no heed writes to. Files of one
// record are read as one.
func (f *recordFiles) open(a *console.App) ([]*store.Record, error) {
	paths, err := f.paths(a)
	if err != nil {
		return nil, err
	}
	if len(f.Files) == 0 { // after an upgrade it has two parts
		earlier, err := store.Continued(paths[0])
		if err != nil {
			return nil, err
		}
		paths = append(paths, earlier...)
	}
	records, err := store.Records(paths...)
	for _, r := range records {
		if r.Waiting > 0 {
			fmt.Fprintf(a.Stderr, "heed: %s in the tail of %s are left out, since no heed adds them to the record: see `heed status`, or run this as the owner of the file\n", console.Plural(uint64(r.Waiting), "decision"), console.Quoted(r.Path))
		}
	}
	return records, err
}

// openWhole is open for commands whose result is about all decisions of the records. It
// prints a warning about each record with missing or added rows.
func (f *recordFiles) openWhole(a *console.App) ([]*store.Record, error) {
	records, err := f.open(a)
	if err != nil {
		return nil, err
	}
	ctx, stop := interruptible()
	defer stop()
	for _, r := range records {
		miscount, err := r.Miscount(ctx)
		if err != nil {
			return nil, err
		}
		if miscount != "" {
			fmt.Fprintf(a.Stderr, "heed: %s is not as heed wrote it: %s\nSee `heed audit verify`\n", console.Quoted(r.Path), miscount)
		}
	}
	return records, nil
}

// judgeEach opens the records, judges one after the other, with a progress bar, and prints
// each result. It ends with ExitNo when print reports that a record did not come out well,
// and at an interrupt.
func judgeEach[R any](a *console.App, files *recordFiles, doing string,
	judge func(context.Context, *store.Record, func(done, all int64)) (R, error),
	print func(R) (well bool, err error),
) error {
	records, err := files.openWhole(a)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	status := error(nil)
	for _, r := range records {
		progress, end := a.Bar(fmt.Sprintf(doing, console.Quoted(r.Path)))
		result, err := judge(ctx, r, progress)
		end()
		if err != nil {
			return fmt.Errorf("%s cannot be judged again: %w", console.Quoted(r.Path), err)
		}
		well, err := print(result)
		if err != nil {
			return err
		}
		if !well {
			status = console.Exit(console.ExitNo)
		}
	}
	return status
}

// interruptible returns a context that ends at an interrupt. The caller must call stop.
func interruptible() (ctx context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt)
}
