package command

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
)

// AuditCmd is `heed audit`: the record of decisions.
type AuditCmd struct {
	Verify  AuditVerifyCmd  `cmd:"" help:"Say whether a record is as heed wrote it."`
	Seal    AuditSealCmd    `cmd:"" help:"Print the head of a record, to be published or signed elsewhere."`
	Backup  AuditBackupCmd  `cmd:"" help:"Copy a record into one file, while heed writes to it."`
	List    AuditListCmd    `cmd:"" help:"Find decisions: a line for each."`
	Replay  AuditReplayCmd  `cmd:"" help:"Judge every decision again, and say what would have been if."`
	Recheck AuditRecheckCmd `cmd:"" help:"Ask sites for their robots.txt, and list past requests that would be refused now."`
	Report  AuditReportCmd  `cmd:"" help:"Say what was asked, allowed and refused, by agent and by site."`
	Export  AuditExportCmd  `cmd:"" help:"Write every decision for other programs."`
}

// recordFiles are the records that a verb of heed audit reads.
type recordFiles struct {
	Files []string `arg:"" optional:"" name:"file" help:"Records to read; this heed's own if none is named."`
}

// paths returns the files named, or the one that the settings here name.
func (f *recordFiles) paths(a *App) ([]string, error) {
	if len(f.Files) > 0 {
		return f.Files, nil
	}
	file, _ := lookup(a.Environ, "HEED_CONFIG")
	cfg, err := Load(file, a.Defaults)
	if err != nil {
		return nil, fmt.Errorf("the settings do not tell where the record is: %w\nName the file", err)
	}
	path := cfg.Audit.File
	if path == "" {
		dir, err := StateDir()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, auditFile)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no record at %s\nName the file", path)
	}
	return []string{path}, nil
}

// open opens the records for reading, those that no heed writes to completed;
// close them with what it returns. Files of one record are read as one.
func (f *recordFiles) open(a *App) (records []report.Record, leave func(), err error) {
	paths, err := f.paths(a)
	if err != nil {
		return nil, nil, err
	}
	all, err := store.Records(paths...)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range all {
		if r.Waiting > 0 {
			fmt.Fprintf(a.Stderr, "heed: %s more stand in the tail of %s, and nobody completes it: run this as the user who owns it\n", plural(uint64(r.Waiting), "decision"), quoted(r.Path))
		}
		records = append(records, report.Record{Name: r.Path, DB: r.DB})
	}
	return records, func() { store.Close(all) }, nil
}

// handles returns the handles of records.
func handles(records []report.Record) []*sql.DB {
	var all []*sql.DB
	for _, r := range records {
		all = append(all, r.DB)
	}
	return all
}
