package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"

	"golang.org/x/mod/sumdb/tlog"
)

// The head of every commit is that which tlog computes from the leaves.
func TestTree_HeadsAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(3000)
	c := must.Get(view(m.path))(t)
	defer c.Close()
	n := m.count("SELECT max(n) FROM commits")
	for _, size := range []int64{1, 2, 3, 17, n, n + 1} {
		got := must.Get(tlog.TreeHash(size, c))(t)
		var want []byte
		if m.db.QueryRow("SELECT hash FROM commits WHERE n = ?", size-1).Scan(&want) == nil && string(want) != string(got[:]) {
			t.Errorf("size %d: %x, the record has %x", size, got, want)
		}
		proof := must.Get(tlog.ProveTree(n+1, size, c))(t)
		whole, _ := tlog.TreeHash(n+1, c)
		must.OK(t, tlog.CheckTree(proof, n+1, whole, size, got), "size %d", size)
	}
}

// heads returns the hash of each commit.
func (m *made) heads() map[int64]string {
	m.t.Helper()
	all := map[int64]string{}
	rows := must.Get(m.db.Query("SELECT n, lower(hex(hash)) FROM commits"))(m.t)
	defer rows.Close()
	for rows.Next() {
		var n int64
		var hash string
		must.OK(m.t, rows.Scan(&n, &hash))
		all[n] = hash
	}
	return all
}

// A head that was noted before its commit was pruned is proved by the hashes that are kept.
// They take at most 64 octets a commit. Where the size of the record is bounded, the oldest go,
// and verify names what is not proved.
func TestTree_HeadsFromBeforeWhatWasPruned(t *testing.T) {
	t.Parallel()
	m := newMade(t)
	for range 60 { // many commits
		m.entries(20)
		for range 15 {
			m.add(exemptTable, m.now(), 1, nil)
			m.commit(nil)
		}
	}
	heads := m.heads()
	p := m.pruner(limits{keep: 20 * time.Second})
	m.prune(p)
	through := m.count("SELECT min(n) - 1 FROM commits")
	must.Need(t, through >= 2*chunk, "only %d commits were pruned", through)
	proof := prove(t, m.path)
	must.True(t, proof.Hashes != 0 && proof.Hashes <= 64*through, "%d octets are kept of %d commits", proof.Hashes, through)
	check := func(n int64, found bool) {
		t.Helper()
		for _, known := range []int64{n, 0} {
			proof, err := Verify(context.Background(), m.path, []*Seal{{Hash: heads[n], Commit: known}}, nil)
			if err != nil || len(proof.Sealed) != 1 || proof.Sealed[0].Found != found || found && (!proof.Whole || proof.Sealed[0].Commit != n) {
				t.Errorf("commit %d (%d): %+v, %v %v", n, known, proof.Sealed, proof.Damage, err)
			}
		}
	}
	for _, n := range []int64{1, 2, 255, 256, 257, through - 1, through, through + 1} {
		check(n, true)
	}
	if p := prove(t, m.path, &Seal{Hash: strings.Repeat("ab", 32), Commit: 5}); p.Sealed[0].Found || p.Whole {
		t.Errorf("a head that never was: %+v", p.Sealed)
	}
	must.OK(t, p.db.InTransaction(func() error { return p.db.dropHashes((through + 1 - chunk) * tlog.HashSize) }))
	check(5, false)
	check(chunk-1, true) // that of a whole chunk
	check(chunk+5, true)
	proof = prove(t, m.path)
	must.True(t, proof.Whole, "%v", proof.Damage)
	m.before = p.db.head
	m.ids = [eventTable + 1]int64{}
	for i := runTable; i <= lastTable; i++ {
		m.ids[i] = m.before.last[i]
	}
	m.ids[exemptTable], m.ids[eventTable], m.open = m.before.exempt, m.before.event, nil
	m.anew()
	m.entries(50)
	check(chunk+5, true)
}

// Every change of a kept hash, and each row of them that is added or missing, is found.
func TestTree_AnyChangeOfKeptHashesIsFound(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(3000)
	m.prune(m.pruner(limits{keep: 100 * time.Second}))
	octets := m.count("SELECT length(hashes) FROM hashes")
	for range rounds(100) {
		at := m.random.Int64N(octets)
		var old []byte
		must.OK(t, m.db.QueryRow("SELECT hashes FROM hashes").Scan(&old))
		now := slices.Clone(old)
		now[at] ^= 1 << m.random.IntN(8)
		m.exec("UPDATE hashes SET hashes = ?", now)
		m.found("octet %d of the hashes was changed", at)
		m.exec("UPDATE hashes SET hashes = ?", old)
	}
	var leaves int64
	var hashes []byte
	must.OK(t, m.db.QueryRow("SELECT leaves, hashes FROM hashes").Scan(&leaves, &hashes))
	for _, change := range []string{"UPDATE hashes SET leaves = leaves - 1", "UPDATE hashes SET id = 1", "INSERT INTO hashes VALUES (1, 0, x'')", "DELETE FROM hashes"} {
		m.exec(change)
		m.found("%s", change)
		m.exec("DELETE FROM hashes")
		m.exec("INSERT INTO hashes VALUES (0, ?, ?)", leaves, hashes)
	}
	proof := prove(t, m.path)
	must.True(t, proof.Whole, "after all was put right: %v", proof.Damage)
}

// A proof shows hashes of the rows beside its own. Who knows such a row to the last value cannot
// find out from the proof that it is there: with none of the salts that the proof has do they
// give one of its hashes.
func TestProve_ANeighbourCannotBeGuessed(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(600)
	c, err := view(m.path)
	if err == nil {
		err = c.findHead()
	}
	must.OK(t, err)
	defer c.Close()
	p := &prover{conn: c, stub: &stub{}}
	shown := 0 // leaves of others among the hashes
	for seq := int64(7); seq < 600; seq += 13 {
		e, err := Prove(t.Context(), m.path, &Wanted{Filter: &Filter{First: seq, Last: seq}, Most: 1, WithClient: true}, func(*Head) (string, string, error) { return "", "", nil })
		must.OK(t, err)
		salts := [][]byte{nil, make([]byte, saltSize/2)}
		for _, row := range e.Rows {
			if salts = append(salts, row.Salt); row.Private != nil {
				salts = append(salts, row.Private.Salt)
			}
		}
		for at, of := range e.Commits {
			commit, rows := must.Two(p.rowsOf(of.N))(t)
			l := newLeaves(commit.salt)
			for i, row := range rows {
				if slices.ContainsFunc(e.Rows, func(r ProvedRow) bool { return r.Commit == at && r.Place == int64(i) }) {
					continue
				}
				if h := l.hash(row.octets, int64(i)); e.has(h[:]) {
					shown++
				}
				for _, salt := range salts {
					leaf, hidden, some := hide(append([]byte{0}, salt...), slices.Clone(salt), row.octets, private[row.octets[0]])
					if sum := sha256.Sum256(hidden); some {
						leaf = append(leaf, sum[:]...)
					}
					guess := sha256.Sum256(leaf)
					must.True(t, !e.has(guess[:]), "decision %d: leaf %d of commit %d is known by the salt %x", seq, i, of.N, salt)
				}
			}
		}
	}
	must.True(t, shown != 0, "no proof has a hash of a leaf beside its own")
}

// has reports whether h is one of the hashes of the proof.
func (e *Evidence) has(h []byte) bool {
	for of := range slices.Chunk(e.Hashes, tlog.HashSize) {
		if bytes.Equal(of, h) {
			return true
		}
	}
	return false
}
