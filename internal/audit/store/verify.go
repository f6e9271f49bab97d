package store

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"heed/internal/audit"
	"heed/internal/base/sqlite"
	"heed/rules"
)

// Proof is the result of Verify.
type Proof struct {
	File    string           `json:"file"`
	Store   string           `json:"store"` // the id of the record
	Layout  int64            `json:"layout"`
	Created string           `json:"created"`           // RFC 3339
	Follows string           `json:"follows,omitempty"` // the head of the record that this one continues
	Whole   bool             `json:"whole"`             // no damage was found
	Commits int64            `json:"commits"`           // in the file
	Rows    map[string]int64 `json:"rows"`              // of each table, up to the damage
	Files   int64            `json:"robots_files"`      // distinct robots.txt files; each start of heed records its own row of one
	From    time.Time        `json:"from,omitzero"`     // of the first decision in the file
	To      time.Time        `json:"to,omitzero"`       // and of the last
	Head    Head             `json:"head"`              // the last intact commit
	Pruned  *Removed         `json:"pruned"`            // nil: nothing was removed
	Hashes  int64            `json:"hashes,omitempty"`  // octets of the hashes that are kept of removed commits
	Sealed  []Sealed         `json:"sealed"`            // of each seal that was given
	Damage  *Damage          `json:"damage"`            // nil: none was found
	Waiting int64            `json:"waiting,omitempty"` // decisions that only the tail has
	Gaps    []audit.Gap      `json:"gaps,omitempty"`    // times in which requests were refused unrecorded
}

// Head identifies the contents of a record up to a commit: a change to them is
// detected by comparison with the head.
type Head struct {
	Store    string    `json:"store"`
	Commit   int64     `json:"commit"` // 0: before the first
	Hash     string    `json:"hash"`   // SHA-256, hexadecimal
	Time     time.Time `json:"time,omitzero"`
	Entries  int64     `json:"entries"`              // including those that were pruned
	Outcomes int64     `json:"outcomes"`             // likewise
	Signed   string    `json:"checkpoint,omitempty"` // the signed checkpoint; empty until it is signed
}

// Verify reads the record at path, to which a heed may be writing, and compares all
// of it with the chain, in which the head of each seal must be. progress,
// which may be nil, is called with the number of entries read and of all. An error
// means that the file could not be examined; damage is reported in the Proof.
func Verify(ctx context.Context, path string, seals []*Seal, progress func(done, all int64)) (*Proof, error) {
	proof := &Proof{File: path, Rows: map[string]int64{}}
	c, err := view(path)
	if err == nil {
		v := &verifier{conn: c, ctx: ctx, proof: proof, progress: progress, pending: map[int64][]pendingOutcome{}}
		for _, s := range seals {
			v.seals = append(v.seals, soughtSeal{s, -1})
		}
		err = v.verify()
		if v.before != nil {
			c.store, c.head, proof.Layout = proof.Store, *v.before, int64(c.layout)
			proof.Waiting = c.inTail()
		}
		v.close()
	}
	if !errors.As(err, &proof.Damage) {
		if proof.Damage = broken(err); proof.Damage == nil && err != nil {
			return nil, err
		}
	}
	proof.Whole = proof.Damage == nil
	return proof, nil
}

// verifier checks a record from its first commit to its last.
type verifier struct {
	*conn
	ctx      context.Context
	proof    *Proof
	seals    []soughtSeal
	progress func(done, all int64)

	at      [len(tables)]*cursor   // the current row of each table
	before  *commit                // the last intact commit
	stub    *stub                  // nil: nothing was removed
	types   *[len(tables)][]string // of the columns
	kept    [entryTable]map[int64]bool
	all     int64                      // number of entries
	pending map[int64][]pendingOutcome // outcomes by the later commit that covers them
	ended   []int64                    // the entries whose outcomes the current commit covers
	views   *Damage                    // of the views, reported if all else is right
	bad     *Damage                    // in the current commit, reported if its hash is right
}

// soughtSeal is a seal with the commit that has its head; -1: none before the current one.
type soughtSeal struct {
	*Seal
	found int64
}

// pendingOutcome is an outcome read before its commit.
type pendingOutcome struct {
	entry int64
	row   []byte
}

// verify returns a *Damage, or another error when the record cannot be examined.
func (v *verifier) verify() error {
	if _, err := v.Exec("BEGIN"); err != nil {
		return err
	}
	if err := v.layout(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(v.ctx)
	counted := make(chan error, 1)
	go func() { counted <- recount(ctx, v.proof.File) }() // takes half as long as all the others
	counts := sync.OnceValue(func() error { return <-counted })
	defer func() { cancel(); counts() }()
	for _, check := range []func() error{v.begin, v.chain, v.nothingLeft, v.pages, counts, v.sealed} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// chain checks all commits.
func (v *verifier) chain() error {
	for chain := v.at[commits]; chain.id != end; {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		c, err := v.commit(chain)
		if err != nil {
			return err
		}
		if v.advance(c); v.progress != nil {
			v.progress(v.proof.Rows[entryTable.String()], v.all)
		}
		if err := chain.next(); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) close() {
	for _, at := range v.at {
		at.close()
	}
	_ = v.conn.Close() // nothing was written
}

// begin opens the tables, and starts at the root of the chain or at the stub.
func (v *verifier) begin() error {
	pairs, err := v.about()
	if err != nil {
		return err
	}
	for t := range v.at {
		if !v.conn.layout.has(table(t)) {
			continue
		}
		if v.at[t], err = v.openWhere(table(t), "TRUE"); err != nil {
			return err
		}
	}
	before := first(v.conn.layout, pairs)
	v.before = &before
	if err := v.latest(); err != nil {
		return err
	}
	if v.stub != nil {
		if err := v.removed(v.before.hash); err != nil {
			return err
		}
		v.before = v.stub.last()
	}
	if v.conn.layout >= treed {
		head := v.head
		if v.seals == nil {
			head = nil
		}
		t, err := v.pastHashes(head)
		if err != nil {
			return err
		}
		if v.stub != nil {
			v.before.tree = t
		}
	}
	v.all -= v.before.last[entryTable]
	v.advance(v.before)
	v.proof.Commits = 0
	return nil
}

// advance makes c the last intact commit.
func (v *verifier) advance(c *commit) {
	v.before = c
	v.proof.Commits++
	h := &v.proof.Head
	h.Commit, h.Hash, h.Entries = c.n, c.hash.String(), c.last[entryTable]
	if c.n > 0 {
		h.Time = moment(c.time)
	}
	if c.n > 0 && (v.stub == nil || c.n > v.stub.Through) {
		h.Outcomes += c.outcomes
	}
	v.head(c.n, c.hash)
}

// head notes the head at commit n if it is one that is looked for.
func (v *verifier) head(n int64, hash digest) {
	for i := range v.seals {
		if s := &v.seals[i]; s.found < 0 && (s.Commit == 0 || s.Commit == n) && s.Hash == hash.String() {
			s.found = n
		}
	}
}

// nothingLeft returns a *Damage when there are rows after the last commit.
func (v *verifier) nothingLeft() error {
	for t := runTable; int(t) < len(tables); t++ {
		if v.at[t] != nil && v.at[t].id != end {
			return uncovered(v.before, t, v.at[t].id)
		}
	}
	for _, rows := range v.pending {
		return uncovered(v.before, outcomeTable, rows[0].entry)
	}
	return nil
}

// typeOf returns the type of a value, as schemas name it; empty for NULL.
func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return ""
	case int64:
		return "INTEGER"
	case string:
		return "TEXT"
	case []byte:
		return "BLOB"
	}
	return "REAL"
}

// examine returns the damage of a row that the hash does not detect: a value of another
// type than its column, a reference to a missing row, or a body that differs from its SHA-256. nil: none.
func (v *verifier) examine(c *commit, at *cursor) *Damage {
	for i, column := range v.conn.layout.columns(at.table) {
		if is, want := typeOf(at.values[i]), v.types[at.table][i]; is != "" && is != want {
			return damaged(c, at.table, at.id, fmt.Sprintf("its %s is %s, which heed never writes there", column, is))
		}
	}
	for _, r := range tables[at.table].references {
		id, isNumber := at.values[r.column].(int64)
		if at.values[r.column] == nil || isNumber && v.exists(c, at, r.to, id) {
			continue
		}
		return damaged(c, at.table, at.id, fmt.Sprintf("its %s %v is not there", tables[at.table].columns[r.column], at.values[r.column]))
	}
	if at.table == bodyTable {
		return examineBody(c, at)
	}
	return nil
}

// exists reports whether the row id of t is in the file. A row that an outcome refers
// to may be in the commit that covers the outcome, which is not read yet.
func (v *verifier) exists(c *commit, at *cursor, t table, id int64) bool {
	if v.stub != nil && id <= v.stub.Last[t] {
		return v.kept[t][id]
	}
	return id >= 1 && (id <= c.last[t] || at.table == outcomeTable && at.integer(1) > c.n)
}

// examineBody compares the octets of a robots.txt with their size and hash.
func examineBody(c *commit, at *cursor) *Damage {
	sum, _ := at.values[1].([]byte)
	packed, _ := at.values[3].([]byte)
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return damaged(c, bodyTable, at.id, "its octets cannot be unpacked: "+err.Error())
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(z, min(at.integer(2), rules.MaxUnpacked)+1))
	switch {
	case err != nil:
		return damaged(c, bodyTable, at.id, "its octets cannot be unpacked: "+err.Error())
	case n != at.integer(2):
		return damaged(c, bodyTable, at.id, "its size is not that of its octets")
	case !bytes.Equal(h.Sum(nil), sum):
		return damaged(c, bodyTable, at.id, "its SHA-256 is not that of its octets")
	}
	return nil
}

// Damage is the first difference between a record and what heed wrote.
type Damage struct {
	Table  string    `json:"table,omitempty"` // empty: the file itself
	ID     int64     `json:"id,omitempty"`    // of the row; 0: not known
	Commit int64     `json:"commit"`          // the commit that covers the row
	Time   time.Time `json:"time,omitzero"`   // of that commit; zero: not known
	What   string    `json:"what"`            // what differs
	Means  string    `json:"means"`           // the consequences
}

// Error returns the place and the kind of the damage.
func (d *Damage) Error() string {
	where := "the file"
	if d.Table != "" {
		where = d.Table
	}
	if d.ID != 0 {
		where += fmt.Sprintf(" %d", d.ID)
	}
	if d.Commit > 0 {
		where += fmt.Sprintf(", in commit %d", d.Commit)
	}
	if !d.Time.IsZero() {
		where += " of " + d.Time.Format(time.RFC3339)
	}
	return where + ": " + d.What
}

// The kinds of damage of a row.
const (
	isChanged  = "the row is not as it was written"
	isGone     = "the row is missing"
	isStrange  = "the row has a value of a kind that heed never writes"
	isExtra    = "no commit covers this row"
	linkBroken = "the hash does not fit"
)

// damaged returns the damage of a row of t in the commit c, which may be nil.
func damaged(c *commit, t table, id int64, what string) *Damage {
	d := &Damage{Table: t.String(), ID: id, What: what}
	if c != nil && c.n > 0 {
		d.Commit, d.Time = c.n, moment(c.time)
		d.Means = fmt.Sprintf("Something was changed, added or removed after heed wrote it. All before commit %d is as it was written; of what comes from there on nothing is proved.", c.n)
	}
	return d
}

// uncovered returns the damage of a row after the last commit, c.
func uncovered(c *commit, t table, id int64) *Damage {
	return &Damage{Table: t.String(), ID: id, Commit: 0, What: isExtra,
		Means: fmt.Sprintf("It was added by something else than heed, or the commit that covered it was removed. All up to commit %d is as it was written.", c.n)}
}

// broken returns the damage of a file that SQLite cannot read because of its
// contents; nil for other errors.
func broken(err error) *Damage {
	switch sqlite.Primary(err) {
	case sqlite.TooBig:
		return &Damage{What: fmt.Sprintf("it has a value of more than %d MiB, which heed never writes", sqlite.MaxValue>>20), Means: "Something else than heed wrote it. heed reads no such value."}
	case sqlite.Corrupt, sqlite.NotADB, sqlite.Format, sqlite.IOErr:
		return &Damage{What: "SQLite cannot read it: " + err.Error(),
			Means: "The file is damaged below its rows: by a disk, a copy that broke off, or by hand. Take a backup of it (heed audit backup makes them)."}
	}
	return nil
}

// moment returns the time of a number of microseconds since 1970.
func moment(micro int64) time.Time { return time.UnixMicro(micro).UTC() }

// Miscount describes the rows that commits of the record cover and that are missing, and the
// rows that no commit covers; it returns an empty text when there are none. It counts rows
// and computes no hashes: only Verify finds a value that was changed.
func (r *Record) Miscount(ctx context.Context) (string, error) {
	reader, err := r.Read(ctx)
	if err != nil {
		return "", err
	}
	defer reader.Close()
	if err := reader.findHead(); err != nil {
		return "", viewError(r.Path, err)
	}
	s, err := reader.stub()
	if err != nil {
		return "", viewError(r.Path, err)
	}
	var found []string
	note := func(n int64, t table, what string) {
		if n > 0 {
			found = append(found, fmt.Sprintf("%d %s in the table %s", n, what, t))
		}
	}
	for t := commits; int(t) < len(tables) && reader.layout.has(t); t++ {
		missing, extra, err := reader.miscount(s, t)
		if err != nil {
			return "", viewError(r.Path, err)
		}
		note(missing, t, "missing")
		note(extra, t, "added")
	}
	return strings.Join(found, ", "), nil
}

// miscount returns how many rows of t are missing after the stub s, up to the last commit, and
// how many are after it.
func (c *conn) miscount(s *stub, t table) (missing, extra int64, err error) {
	column, from, to := tables[t].columns[0], s.Through, c.head.n
	switch {
	case t == outcomeTable:
		column = "in_commit"
	case t == exemptTable:
		from, to = s.Exempt, c.head.exempt
	case t == eventTable:
		from, to = s.Event, c.head.event
	case t != commits:
		from, to = s.Last[t], c.head.last[t]
	}
	covered := fmt.Sprint(to - from)
	if t == outcomeTable {
		covered = fmt.Sprintf("CAST((SELECT total(outcomes) FROM commits WHERE n > %d) AS INTEGER)", from)
	}
	query := fmt.Sprintf("SELECT %s - count(*) FILTER (WHERE %s <= %d), count(*) FILTER (WHERE %[2]s > %[3]d) FROM main.%[4]s WHERE %[2]s > %[5]d", covered, column, to, t, from)
	err = c.row(query, &missing, &extra)
	return missing, extra, err
}
