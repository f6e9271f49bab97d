package store

import (
	"database/sql"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// connect opens the database at path in the given SQLite mode: ro, rw or rwc;
// or immutable: ro, on a disk where nobody can write. Readers never hold up
// the writer (write-ahead log). Pages that are removed can be given back to
// the system.
func connect(path, mode string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", source(path, mode))
	if err != nil {
		return nil, fmt.Errorf("the record %s cannot be opened: %w", path, err)
	}
	return db, nil
}

// source is how the driver is told what to open.
func source(path, mode string) string {
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(5000)"}}
	switch mode {
	case "immutable":
		q.Set("mode", "ro")
		q.Set("immutable", "1")
	case "rw", "rwc":
		q["_pragma"] = append(q["_pragma"], "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(NORMAL)", "journal_size_limit(8388608)")
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}
