package plan

import (
	"fmt"
	"strings"

	"heed/internal/base/sqlite"
	"heed/rules"
)

// list is the sites and URLs of a plan, in a temporary file that SQLite removes. The zero value is
// empty.
type list struct {
	db     *sqlite.Conn // nil: it has none yet
	recent map[rules.Origin]*part
	size   int   // octets of recent
	sites  int64 // in the file, numbered from 1
}

// part is URLs of one site, each with a newline.
type part struct {
	urls  []byte
	count int
}

// Bounds of the URLs that are a row of the file and are judged together.
const (
	maxBytes = 32 << 10 // unless it is one URL
	maxCount = 1000
)

// tables has a row of urls for each part, in the order in which they were added.
const tables = `PRAGMA journal_mode = OFF;
CREATE TABLE sites (id INTEGER PRIMARY KEY, origin TEXT UNIQUE);
CREATE TABLE urls (id INTEGER PRIMARY KEY, site INTEGER, urls BLOB);
CREATE INDEX of_site ON urls (site);
BEGIN`

// add adds a URL of the site at o. What is more than recent octets is written.
func (l *list) add(o rules.Origin, url string, recent int) error {
	p := l.recent[o]
	if p != nil && (p.count == maxCount || len(p.urls)+len(url) >= maxBytes) {
		if err := l.write(o, p); err != nil {
			return err
		}
		p = nil
	}
	if p == nil {
		if err := l.begin(o); err != nil {
			return err
		}
		p = &part{}
		l.recent[o] = p
	}
	p.urls = append(append(p.urls, url...), '\n')
	p.count++
	if l.size += len(url) + 1; l.size > recent {
		return l.flush()
	}
	return nil
}

// flush writes what is in memory.
func (l *list) flush() error {
	for o, p := range l.recent {
		if err := l.write(o, p); err != nil {
			return err
		}
	}
	return nil
}

// begin adds the site at o, unless it is known.
func (l *list) begin(o rules.Origin) (err error) {
	if l.db == nil {
		if l.db, err = sqlite.Open("", "rwc", 0); err != nil { // https://sqlite.org/inmemorydb.html, 3
			return listError(err)
		}
		if _, err = l.db.Exec(tables); err != nil {
			return listError(err)
		}
		l.recent = map[rules.Origin]*part{}
	}
	added, err := l.db.Exec("INSERT OR IGNORE INTO sites (origin) VALUES (?)", o.String())
	l.sites += added
	return listError(err)
}

// write writes a part of the site at o.
func (l *list) write(o rules.Origin, p *part) error {
	_, err := l.db.Exec("INSERT INTO urls (site, urls) SELECT id, ? FROM sites WHERE origin = ?", p.urls, o.String())
	l.size -= len(p.urls)
	delete(l.recent, o)
	return listError(err)
}

func listError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the URLs that wait cannot be kept in a temporary file: %w\nSet TMPDIR to a directory with more room", err)
}

// of begins the reading of a site's rows.
func (l *list) of(site int64) (*sqlite.Rows, error) {
	rows, err := l.db.Query("SELECT urls, origin FROM urls JOIN sites ON site = sites.id WHERE site = ? ORDER BY urls.id", site)
	return rows, listError(err)
}

// next returns the URLs of the next row; nil: there is none.
func next(rows *sqlite.Rows) (origin string, urls []string, err error) {
	row, err := rows.Next()
	if err != nil || row == nil {
		return "", nil, listError(err)
	}
	data, _ := row[0].([]byte)
	origin, _ = row[1].(string)
	return origin, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), nil
}

func (l *list) close() {
	if l.db != nil {
		_ = l.db.Close() // its content is not needed
	}
}
