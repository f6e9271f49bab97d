package store

import (
	"database/sql"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// connect opens the database at path in the given SQLite mode: ro, rw or rwc.
// Readers never hold up the writer (write-ahead log).
func connect(path, mode string) (*sql.DB, error) {
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(5000)"}}
	if mode != "ro" {
		q["_pragma"] = append(q["_pragma"], "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(NORMAL)")
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("the record %s cannot be opened: %w", path, err)
	}
	return db, nil
}

// View opens the record at path for reading, while a heed writes to it or
// none does.
func View(path string) (*sql.DB, error) { return connect(path, "ro") }
