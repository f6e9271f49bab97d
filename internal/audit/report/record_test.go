package report_test

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "heed/internal/audit/store" // the driver, and what the record looks like
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// record is an audit.db in the making. What it is given twice it stores once.
type record struct {
	t     testing.TB
	path  string
	db    *sql.DB
	tx    *sql.Tx
	known map[string]int64 // id by table and values
	last  map[string]int64 // id by table
	held  map[string]*sql.Stmt
}

// newRecord begins an empty record in a folder of its own.
func newRecord(t testing.TB) *record {
	t.Helper()
	r := &record{t: t, path: filepath.Join(t.TempDir(), "audit.db"), known: map[string]int64{}, last: map[string]int64{}, held: map[string]*sql.Stmt{}}
	db := must.Get(sql.Open("sqlite", "file:"+r.path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"))(t)
	r.db = db
	t.Cleanup(func() { db.Close() })
	for _, file := range []string{"../store/schema.sql", "../store/views.sql"} {
		head, rest, _ := strings.Cut(testkit.Read(t, file), "DROP VIEW IF EXISTS hosts;") // a template, which no table is made of
		_, rest, _ = strings.Cut(rest, ";\n")
		must.Get(db.Exec(head + rest))(t)
	}
	about := "PRAGMA user_version = 2; INSERT INTO about VALUES ('store', ?), ('created', '2026-03-01T00:00:00Z')"
	must.Get(db.Exec(about, rand.Text()+"-123456789"))(t)
	r.tx = must.Get(db.Begin())(t)
	r.add("run", r.micros(0), "1.0", 2, nil, "a crawl for a test")
	r.add("configuration", strings.Repeat("0123456789abcdef", 4), "profile = \"standard\"\n")
	return r
}

// begun is when the records of these tests begin.
var begun = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// micros is a time after begun as the record writes it.
func (r *record) micros(after time.Duration) int64 { return begun.Add(after).UnixMicro() }

// add adds a row and returns its id.
func (r *record) add(table string, values ...any) int64 {
	r.last[table]++
	id := r.last[table]
	r.insert(table, append([]any{id}, values...)...)
	return id
}

// once is add for a row that there may be already.
func (r *record) once(table string, values ...any) int64 {
	key := fmt.Sprint(table, values)
	if r.known[key] == 0 {
		r.known[key] = r.add(table, values...)
	}
	return r.known[key]
}

// insert adds a row. Columns without a value are NULL.
func (r *record) insert(table string, values ...any) {
	key := fmt.Sprint(table, len(values))
	s := r.held[key]
	if s == nil {
		var columns int
		must.OK(r.t, r.tx.QueryRow("SELECT count(*) FROM pragma_table_info(?)", table).Scan(&columns))
		missing := strings.Repeat(",NULL", columns-len(values))
		s = must.Get(r.tx.Prepare("INSERT INTO " + table + " VALUES (" + strings.Repeat(",?", len(values))[1:] + missing + ")"))(r.t)
		r.held[key] = s
	}
	must.Get(s.Exec(values...))(r.t)
}

// file ends the record and returns where it lies.
func (r *record) file() string {
	r.t.Helper()
	r.insert("commits", 1, r.micros(24*time.Hour), r.last["run"], r.last["configuration"], r.last["asker"], r.last["site"], r.last["body"],
		r.last["snapshot"], r.last["policy"], r.last["ground"], r.last["entry"], 0, 0, nil, bytes.Repeat([]byte{0xab}, 32), []byte{}, 0, []byte{}, []byte{}, []byte{})
	must.OK(r.t, r.tx.Commit())
	must.OK(r.t, r.db.Close())
	return r.path
}

// asker is who asks: the client's address, the name that is judged, the User-Agent.
func (r *record) asker(client, token, userAgent string) int64 {
	return r.once("asker", client, nil, nil, "enforce", userAgent, fmt.Sprintf("[%q]", token), 0, nil, nil)
}

func (r *record) site(host string) int64 { return r.once("site", "https", host, 443) }

// policy is what a site's robots.txt said from a time on.
func (r *record) policy(host string, after time.Duration, text string) int64 {
	key := fmt.Sprint("policy of ", host, after, text)
	if r.known[key] == 0 {
		r.known[key] = r.newPolicy(host, after, text)
	}
	return r.known[key]
}

func (r *record) newPolicy(host string, after time.Duration, text string) int64 {
	site, sum := r.site(host), sha256.Sum256([]byte(text))
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	body := r.once("body", sum[:], len(text), packed.Bytes())
	snapshot := r.once("snapshot", site, r.micros(after), nil, fmt.Sprintf("[\"https://%s/robots.txt\"]", host), 200, "{}", body)
	return r.add("policy", site, snapshot, "standard", "available", 200, r.micros(after), r.micros(after+time.Hour), 0, 0, 0, nil, nil)
}

// lost is the lack of a site's robots.txt.
func (r *record) lost(host, why string) int64 {
	return r.once("policy", r.site(host), nil, "standard", "unreachable", 0, nil, nil, 0, 0, 0, why, nil)
}

// ground is a verdict and its reason. line 0: no rule decided.
func (r *record) ground(judged, verdict, reason, rule string, line int, settled any, policy any) int64 {
	var group, text, at any
	if rule != "" {
		group, text, at = "*", rule, line
	}
	return r.once("ground", judged, verdict, reason, nil, group, text, at, nil, 0, settled, nil, policy, 1, 2)
}

// entry is a request after so long, and returns its number.
func (r *record) entry(after time.Duration, asker int64, host, target string, ground int64, waited time.Duration) int64 {
	seq := r.last["entry"] + 1
	id := make([]byte, 16)
	binary.BigEndian.PutUint64(id, uint64(begun.Add(after).UnixMilli())<<16|0x7000|uint64(seq)&0xfff)
	binary.BigEndian.PutUint64(id[8:], 1<<63|uint64(seq))
	return r.add("entry", id, r.micros(after), 1, asker, 40000+seq%20000, r.site(host), ground, "GET", []byte(target), nil, 0, 1200, nil, waited.Microseconds(), nil, nil, nil)
}

// ended is what became of an entry.
func (r *record) ended(entry int64, status int, fromSite bool, size int64) {
	r.insert("outcome", entry, 1, status, fromSite, 0, size, 120_000, 0, nil, nil)
}

// set changes what an entry says, before the record is done.
func (r *record) set(entry int64, column string, value any) {
	_, err := r.tx.Exec("UPDATE entry SET "+column+" = ? WHERE seq = ?", value, entry)
	must.OK(r.t, err)
}
