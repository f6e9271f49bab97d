package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// ErrNotProvable is the error of Prove for a record of a layout without a tree.
var ErrNotProvable = errors.New("the record has the layout of an earlier heed, which proves a record as a whole only (heed audit verify)")

// Wanted says what Prove proves.
type Wanted struct {
	Filter     *Filter // the decisions
	Most       int     // of them; more are an error
	WithClient bool    // adds the rows of clients and the private values
}

// Prove returns a proof of the decisions of the record at path that are wanted, with the rows
// that they rest on, against its last commit. sign returns the signed form of a checkpoint.
// Without a decision it returns nil.
func Prove(ctx context.Context, path string, want *Wanted, sign func(*Head) (note, key string, err error)) (*Evidence, error) {
	c, _, err := viewComplete(ctx, path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Exec("BEGIN"); err != nil {
		return nil, viewError(path, err)
	}
	if err := c.findHead(); err != nil {
		return nil, viewError(path, err)
	}
	if c.layout < treed {
		return nil, fmt.Errorf("%s: %w", path, ErrNotProvable)
	}
	stub, err := c.stub()
	if err != nil {
		return nil, viewError(path, err)
	}
	p := &prover{conn: c, want: want, stub: stub, places: map[place]bool{}, byCommit: map[int64][]place{}, hashes: map[tlog.Hash]int{}, out: &Evidence{Form: evidenceForm}}
	if err := p.gather(); err != nil || len(p.places) == 0 {
		return nil, err
	}
	head := &Head{Store: c.store, Commit: c.head.n, Hash: c.head.hash.String(), Time: moment(c.head.time)}
	if p.out.Checkpoint, p.out.Key, err = sign(head); err != nil {
		return nil, err
	}
	for _, n := range sortedKeys(p.byCommit) {
		if err := p.prove(n, p.byCommit[n]); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

func sortedKeys[V any](m map[int64]V) (keys []int64) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// place names a row.
type place struct {
	table table
	id    int64
}

// prover makes a proof.
type prover struct {
	*conn
	want     *Wanted
	stub     *stub
	places   map[place]bool // the rows of the proof
	byCommit map[int64][]place
	hashes   map[tlog.Hash]int // indexes in Evidence.Hashes
	out      *Evidence
}

// gather finds the rows of the proof.
func (p *prover) gather() error {
	var decisions []place
	filters, err := p.NearFirst(p.want.Filter)
	for _, by := range filters {
		if err != nil || decisions != nil {
			break
		}
		err = p.each(fmt.Sprintf("SELECT seq, outcome.entry FROM entry LEFT JOIN outcome ON entry = seq WHERE %s ORDER BY seq LIMIT %d", by.Condition(), p.want.Most+1), func(f *fields) {
			decisions = append(decisions, place{entryTable, f.integer()})
			if !f.null() {
				decisions = append(decisions, place{outcomeTable, f.integer()})
			}
		})
	}
	if n := len(decisions); err == nil && n > 2*p.want.Most {
		err = fmt.Errorf("more than %d decisions are chosen\nChoose a shorter time", p.want.Most)
	}
	for _, d := range decisions {
		if err == nil {
			err = p.visit(d)
		}
	}
	return err
}

// visit adds a row, and the rows that it rests on. Of those that it refers to, the run and the
// settings are left out, and the client unless it is wanted.
func (p *prover) visit(at place) error {
	if p.places[at] {
		return nil
	}
	p.places[at] = true
	row, err := p.openWhere(at.table, fmt.Sprintf("%s = %d", tables[at.table].columns[0], at.id))
	if err != nil {
		return err
	}
	defer row.Close()
	if row.id != at.id {
		return fmt.Errorf("the record has no %s %d, which it refers to\nSee `heed audit verify`", at.table, at.id)
	}
	n := row.integer(1) // of an outcome
	if at.table != outcomeTable {
		if n, err = p.commitOf(at); err != nil {
			return err
		}
	}
	p.byCommit[n] = append(p.byCommit[n], at)
	for _, r := range tables[at.table].references {
		id := row.integer(r.column)
		if id == 0 || r.to == runTable || r.to == configurationTable || r.to == askerTable && !p.want.WithClient {
			continue
		}
		if err := p.visit(place{r.to, id}); err != nil {
			return err
		}
	}
	return nil
}

// commitOf returns the commit that covers a row.
func (p *prover) commitOf(at place) (int64, error) {
	if at.id <= p.stub.Last[at.table] {
		return 0, fmt.Errorf("%s %d is in a part of the record that is being pruned\nIts decisions are about to be removed, and can be proved no more", at.table, at.id)
	}
	low, high := p.stub.Through+1, p.head.n
	for low < high {
		middle := low + (high-low)/2
		last, err := p.integer(fmt.Sprintf("SELECT %s FROM commits WHERE n = %d", at.table, middle))
		if err != nil {
			return 0, err
		}
		if last >= at.id {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, nil
}

// prove adds the proof of rows of commit n.
func (p *prover) prove(n int64, of []place) error {
	c, rows, err := p.rowsOf(n)
	if err != nil {
		return err
	}
	l, inner := newLeaves(c.salt), []tlog.Hash{}
	read := tlog.HashReaderFunc(func(indexes []int64) (all []tlog.Hash, err error) {
		for _, i := range indexes {
			all = append(all, inner[i])
		}
		return all, nil
	})
	for i, row := range rows {
		hashes, err := tlog.StoredHashesForRecordHash(int64(i), l.hash(row.octets, int64(i)), read)
		if err != nil {
			return err
		}
		inner = append(inner, hashes...)
	}
	root, err := tlog.TreeHash(int64(len(rows)), read)
	if err != nil {
		return err
	}
	if leaf := leafOf(root, int64(len(rows))); !bytes.HasPrefix(c.hashes, leaf[:]) {
		return fmt.Errorf("commit %d is not as heed wrote it\nSee `heed audit verify`", n)
	}
	path, err := tlog.ProveRecord(p.head.n+1, n, p)
	if err != nil {
		return err
	}
	at := len(p.out.Commits)
	p.out.Commits = append(p.out.Commits, ProvedCommit{N: n, Leaves: int64(len(rows)), Root: p.index(root), Path: p.indexes(path)})
	for i, row := range rows {
		if i == 0 || !slices.Contains(of, place{table(row.octets[0]), row.id}) {
			continue
		}
		path, err := tlog.ProveRecord(int64(len(rows)), int64(i), read)
		if err != nil {
			return err
		}
		l.hash(row.octets, int64(i)) // sets the salt
		p.out.Rows = append(p.out.Rows, l.proved(row.octets, at, int64(i), p.indexes(path), p.want.WithClient))
	}
	return nil
}

// rowsOf returns commit n and its leaves: its own row, and those that it covers.
func (p *prover) rowsOf(n int64) (*commit, []row, error) {
	at, err := p.openWhere(commits, fmt.Sprintf("n IN (%d, %d)", n-1, n))
	if err != nil {
		return nil, nil, err
	}
	defer at.Close()
	before := p.stub.last()
	if at.id == n-1 {
		if before, err = readCommit(p.layout, at); err == nil {
			err = at.next()
		}
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := readCommit(p.layout, at)
	if err != nil {
		return nil, nil, err
	}
	rows := []row{{0, c.appendTo(nil, p.layout)}}
	take := func(t table, where string) {
		var of *cursor
		if err == nil {
			of, err = p.openWhere(t, where)
		}
		for ; err == nil && of.id != end; err = of.next() {
			rows = append(rows, row{of.id, bytes.Clone(of.row)})
		}
		of.close()
	}
	for t := runTable; t <= lastTable; t++ {
		take(t, fmt.Sprintf("%s BETWEEN %d AND %d", tables[t].columns[0], before.last[t]+1, c.last[t]))
	}
	for ended := range slices.Chunk(endedOf(c.ended), 500) {
		take(outcomeTable, "entry IN ("+joined(ended)+")")
	}
	take(exemptTable, fmt.Sprintf("id BETWEEN %d AND %d", before.exempt+1, c.exempt))
	take(eventTable, fmt.Sprintf("id BETWEEN %d AND %d", before.event+1, c.event))
	return c, rows, err
}

// index returns the index of h in the hashes of the proof.
func (p *prover) index(h tlog.Hash) int {
	i, ok := p.hashes[h]
	if !ok {
		i = len(p.hashes)
		p.hashes[h], p.out.Hashes = i, append(p.out.Hashes, h[:]...)
	}
	return i
}

func (p *prover) indexes(path []tlog.Hash) []int {
	all := []int{}
	for _, h := range path {
		all = append(all, p.index(h))
	}
	return all
}
