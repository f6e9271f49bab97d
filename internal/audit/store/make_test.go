package store

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/base/sqlite"
	"heed/internal/tools/testkit/must"
)

// made is a record that a test writes without a heed: rows and commits as the
// schema and the chain say.
type made struct {
	t      testing.TB
	path   string
	db     *sql.DB
	random *rand.Rand
	before commit
	ids    [eventTable + 1]int64
	old    [eventTable + 1]int64   // up to these they are not referred to any more
	rows   [eventTable + 1][][]any // of the commit to come
	open   []int64                 // entries without an outcome
}

// day is when the made record begins, in microseconds.
var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro()

// newMade returns an empty record.
func newMade(t testing.TB) *made {
	t.Helper()
	m := &made{t: t, path: filepath.Join(t.TempDir(), "audit.db"), random: rand.New(rand.NewPCG(1, 2))}
	db := must.Get(sql.Open("sqlite", sqlite.Source(m.path, "rwc", busyTime)))(t)
	t.Cleanup(func() { db.Close() })
	m.db = db
	about := [][2]string{{"created", "2026-03-01T12:00:00Z"}, {"store", "019ca8f4-1c00-7000-8000-000000000001"}}
	m.exec(schema + views + fmt.Sprintf("PRAGMA user_version = %d", Schema))
	for _, p := range about {
		m.exec("INSERT INTO about VALUES (?, ?)", p[0], p[1])
	}
	m.before = first(Schema, about)
	return m
}

func (m *made) exec(query string, args ...any) {
	m.t.Helper()
	_, err := m.db.Exec(query, args...)
	must.Need(m.t, err == nil, "%s: %v", query, err)
}

// add puts a row into the commit to come and returns its id.
func (m *made) add(t table, values ...any) int64 {
	m.ids[t]++
	for i, v := range values {
		if n, ok := v.(int); ok {
			values[i] = int64(n)
		}
	}
	m.rows[t] = append(m.rows[t], append([]any{m.ids[t]}, values...))
	return m.ids[t]
}

// one returns the id of some row of t.
func (m *made) one(t table) int64 { return m.old[t] + 1 + m.random.Int64N(m.ids[t]-m.old[t]) }

// now is the time of the next entry: ten a second.
func (m *made) now() int64 { return day + m.ids[entryTable]*100_000 }

// site adds a site with its robots.txt and what it leads to.
func (m *made) site() {
	text := []byte(fmt.Sprintf("User-agent: *\nDisallow: /%d\n", m.ids[siteTable]))
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	z.Write(text)
	z.Close()
	sum := sha256.Sum256(text)
	site := m.add(siteTable, "https", fmt.Sprintf("s%d.example.org", m.ids[siteTable]), 443)
	body := m.add(bodyTable, sum[:], len(text), packed.Bytes())
	snapshot := m.add(snapshotTable, site, m.now(), nil, `["https://example.org/robots.txt"]`, 200, `{"Content-Type":["text/plain"]}`, body)
	policy := m.add(policyTable, site, snapshot, "standard", "available", 200, m.now(), m.now()+3600e6, 0, 0, 0, nil, "a note")
	m.add(groundTable, "path", "refuse", "rule", "newsbot", "*", "Disallow: /1", 2, "/one", 0, "because", "detail", policy, m.one(configurationTable), 2, `{"crawl":"allow"}`)
	m.add(groundTable, "path", "allow", "no-rule", nil, nil, nil, nil, nil, 0, nil, nil, policy, nil, 2, nil)
}

// anew begins a part that refers to nothing before it.
func (m *made) anew() {
	m.t.Helper()
	if len(m.rows[entryTable])+len(m.rows[outcomeTable]) > 0 {
		m.commit(nil)
	}
	m.old = m.ids
	m.names()
}

// names adds what else decisions refer to.
func (m *made) names() {
	m.add(runTable, m.now(), "heed 1.0", 2, `["crawl"]`, "a note")
	m.add(configurationTable, fmt.Sprintf("%012x", m.ids[configurationTable]), "profile = standard")
	m.add(askerTable, fmt.Sprintf("192.0.2.%d", m.ids[askerTable]), "user", "newsbot", "enforce", "NewsBot/1", `["NewsBot"]`, 1, "NewsBot/2", "bot@example.org", `["search"]`, "thumbprint", "https://bot.example.org/", `["Other"]`)
	m.add(askerTable, fmt.Sprintf("192.0.2.%d", m.ids[askerTable]), nil, nil, "observe", nil, `[]`, 0, nil, nil, nil, nil, nil, nil)
}

// entries adds n decisions in commits of several sizes. Some exchanges last long, some have no end.
func (m *made) entries(n int) *made {
	m.t.Helper()
	for range n {
		if m.ids[entryTable]%300 == 0 {
			m.anew()
		}
		if m.ids[siteTable] == m.old[siteTable] || m.random.IntN(50) == 0 {
			m.site()
		}
		id := make([]byte, 16)
		for i := range id {
			id[i] = byte(m.random.Uint32())
		}
		var raw, page, revises any
		if m.random.IntN(10) == 0 {
			raw, page, revises = []byte("/%7Eraw"), "https://example.org/", id
		}
		e := m.add(entryTable, id, m.now(), m.one(runTable), m.one(askerTable), 40000, m.one(siteTable), m.one(groundTable), "GET", []byte(fmt.Sprintf("/page/%d", m.ids[entryTable])),
			raw, 0, 12, 500000, 20, "document", page, revises, 10)
		if m.open = append(m.open, e); m.random.IntN(3) == 0 {
			m.end(m.random.IntN(min(len(m.open), 30)))
		}
		if m.random.IntN(500) == 0 {
			m.add(exemptTable, m.now(), 3, nil)
			m.add(eventTable, m.now(), "robots", m.one(siteTable), "NewsBot/1", 2, 403, "a note")
		}
		if m.random.IntN(60) == 0 {
			m.commit(nil)
		}
	}
	m.commit(nil)
	m.recount()
	return m
}

// end ends n of the exchanges, in no order.
func (m *made) end(n int) {
	for range n {
		i := m.random.IntN(len(m.open))
		entry := m.open[i]
		m.open = append(m.open[:i], m.open[i+1:]...)
		var failed, late any
		if m.random.IntN(10) == 0 {
			failed, late = "it broke off", m.one(groundTable)
		}
		m.rows[outcomeTable] = append(m.rows[outcomeTable], []any{entry, m.before.n + 1, int64(200), int64(1), int64(0), entry * 7, int64(5000), int64(0), failed, late, nil, nil, nil})
	}
}

// commit writes the rows that were added, and their commit.
func (m *made) commit(pruned []byte) {
	m.t.Helper()
	c := commit{salt: newSalt(), n: m.before.n + 1, time: m.now(), last: lasts(m.ids[:entryTable+1]), outcomes: int64(len(m.rows[outcomeTable])), exempt: m.ids[exemptTable], event: m.ids[eventTable], pruned: pruned}
	l := c.begin(Schema, &m.before)
	tx := must.Get(m.db.Begin())(m.t)
	defer tx.Rollback()
	outcomes := m.rows[outcomeTable]
	for i := range outcomes { // by entry
		for j := i; j > 0 && outcomes[j][0].(int64) < outcomes[j-1][0].(int64); j-- {
			outcomes[j], outcomes[j-1] = outcomes[j-1], outcomes[j]
		}
	}
	for t := runTable; t <= eventTable; t++ {
		for _, row := range m.rows[t] {
			spelt := must.Get(appendRow(nil, t, row))(m.t)
			l.cover(spelt, row[0].(int64))
			insert(m.t, tx, t, row)
		}
		m.rows[t] = nil
	}
	l.end()
	row := []any{c.n, c.time}
	for _, id := range c.last[runTable:] {
		row = append(row, id)
	}
	var stub any
	if pruned != nil {
		stub = pruned
	}
	insert(m.t, tx, commits, append(row, c.outcomes, c.exempt, stub, c.hash[:], c.marks, c.event, c.salt, c.hashes, c.ended))
	must.OK(m.t, tx.Commit())
	m.before = c
}

// recount makes the table counts.
func (m *made) recount() {
	m.exec("DELETE FROM counts")
	m.exec("INSERT INTO counts " + countsOf(1, "TRUE"))
}

func insert(t testing.TB, tx *sql.Tx, table table, row []any) {
	t.Helper()
	query := fmt.Sprintf("INSERT INTO %s VALUES (?%s)", table, strings.Repeat(", ?", len(row)-1))
	_, err := tx.Exec(query, row...)
	must.Need(t, err == nil, "%s: %v", query, err)
}
