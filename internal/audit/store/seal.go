package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"heed/internal/base/memo"
)

// Seal is a head noted earlier, which Verify looks for in the chain.
type Seal struct {
	Store  string `json:"store"`  // empty: not known
	Commit int64  `json:"commit"` // 0: not known
	Hash   string `json:"hash"`
}

// Sealed is the result of looking for a Seal in the chain.
type Sealed struct {
	Hash   string `json:"hash"`
	Commit int64  `json:"commit"` // 0: not known
	Found  bool   `json:"found"`
}

var (
	hashPattern   = memo.Expression(`(?i)(?:^|[^0-9a-f])([0-9a-f]{64})(?:[^0-9a-f]|$)`)
	commitPattern = memo.Expression(`(?m)^\s*commit\s+([0-9]+)`)
	storePattern  = memo.Expression(`(?m)^\s*record\s+(\S+)`)
)

// ReadSeal reads a hash in hexadecimal digits, or the output of heed audit seal: a signed
// checkpoint, whose signature is not verified, or text or JSON of a record of an earlier layout.
func ReadSeal(text []byte) (*Seal, error) {
	s := new(Seal)
	if body, _, signed := strings.Cut(string(text), "\n\n"); signed && strings.HasPrefix(body, originPrefix) {
		h, err := parseCheckpoint(body + "\n")
		if err != nil {
			return nil, err
		}
		return &Seal{Store: h.Store, Commit: h.Commit, Hash: h.Hash}, nil
	}
	if json.Unmarshal(text, s) == nil && s.Hash != "" {
		s.Hash = strings.ToLower(s.Hash)
	} else if found := hashPattern().FindSubmatch(text); found != nil && !bytes.ContainsRune(text, 0) { // no record, which has hashes too
		s.Hash = strings.ToLower(string(found[1]))
		if n := commitPattern().FindSubmatch(text); n != nil {
			s.Commit, _ = strconv.ParseInt(string(n[1]), 10, 64)
		}
		if id := storePattern().FindSubmatch(text); id != nil {
			s.Store = string(id[1])
		}
	}
	if new(digest).UnmarshalText([]byte(s.Hash)) != nil {
		return nil, errors.New("there is no head in it: 64 hexadecimal digits, as heed audit seal prints them")
	}
	return s, nil
}

// sealed returns a *Damage unless the views are those of heed and all seals are in the chain.
func (v *verifier) sealed() error {
	if v.views != nil {
		return v.views
	}
	for _, s := range v.seals {
		if err := v.inChain(s); err != nil {
			return err
		}
	}
	n, err := v.integer("SELECT count(DISTINCT sha256) FROM body NOT INDEXED")
	v.proof.Files = n
	return err
}

// inChain returns a *Damage unless a seal is in the chain.
func (v *verifier) inChain(s soughtSeal) error {
	found, commit := s.found >= 0, s.Commit
	if found {
		commit = s.found
	}
	follows := !found && strings.Contains(v.proof.Follows, s.Hash) // the table about names it, which the first leaf is of
	if follows {
		commit = 0
	}
	v.proof.Sealed = append(v.proof.Sealed, Sealed{Hash: s.Hash, Commit: commit, Found: found || follows})
	d := &Damage{What: "the sealed head is not in the chain", Commit: commit}
	switch {
	case found && v.stub != nil && len(v.stub.Kept) > 0 && commit < v.stub.at:
		d.What = fmt.Sprintf("the sealed head is in the chain, but names of commits before it are proved by commit %d alone", v.stub.at)
		d.Means = "A part of the record is being pruned. Verify again when heed is done with it, which takes it a minute; heed finishes it when it runs the next time."
	case found || follows:
		return nil
	case s.Store != "" && s.Store != v.proof.Store:
		d.What = fmt.Sprintf("the seal is of another record, %s", s.Store)
		d.Means = "Each file has a separate chain. Verify the file that was sealed."
	case v.stub != nil && s.Commit > 0 && s.Commit < v.stub.Through:
		d.What = fmt.Sprintf("the sealed commit was pruned, with all up to commit %d, and its hash is not kept or is another", v.stub.Through)
		d.Means = "What is left is consistent, but this seal proves nothing of it. Use a later one, or a backup from that time."
	case s.Commit > v.before.n:
		d.Means = fmt.Sprintf("The record ends with commit %d, before the sealed one: its end was removed, or it is an older copy.", v.before.n)
	default:
		d.Means = "The chain was made anew after it was sealed, its end was removed, or the seal is of another record."
	}
	return d
}

// about returns the table "about", and sets what the proof has of it.
func (v *verifier) about() ([][2]string, error) {
	pairs, store, err := v.conn.about()
	if errors.Is(err, errStrange) {
		err = &Damage{Table: "about", What: isStrange, Means: "The file was changed by something else than heed."}
	}
	v.proof.Store, v.proof.Head.Store = store, store
	for _, p := range pairs {
		switch p[0] {
		case "created":
			v.proof.Created = p[1]
		case "follows":
			v.proof.Follows = p[1]
		}
	}
	return pairs, err
}

// layout compares the tables with the schema. Any other object that can change what
// ordinary tools read (a trigger, a false index) is damage; so is a view that differs,
// which is reported after the rows.
func (v *verifier) layout() error {
	schema, err := expectedSchema()
	if err != nil {
		return err
	}
	v.types = &schema.types
	want := v.conn.layout.objects(schema.objects)
	have := map[string]string{}
	if err := v.each(objectsQuery, objects(have)); err != nil {
		return err
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(have)), maps.Keys(want))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if have[name] == want[name] || strings.HasPrefix(name, "table sqlite_stat") { // ANALYZE makes these
			continue
		}
		what := fmt.Sprintf("the %s is not the one that heed made", name)
		if want[name] == "" {
			what = fmt.Sprintf("heed made no %s", name)
		}
		if have[name] == "" {
			what = fmt.Sprintf("the %s is missing", name)
		}
		if sum := digest(sha256.Sum256([]byte(have[name]))); slices.Contains(earlierViews[name], sum.String()) {
			continue
		}
		if strings.HasPrefix(name, "view ") {
			v.views = &Damage{What: what, Means: "The rows are as they were written, and heed's own commands do not read views; ordinary tools read in it what was never recorded. A heed that writes to the record makes its views anew."}
			continue
		}
		return &Damage{What: what, Means: "The layout of the file was changed by something else than heed, and ordinary tools may read in it what was never recorded."}
	}
	return nil
}

// earlierViews are the views that heed made before, and that have changed since, by their
// SHA-256.
var earlierViews = map[string][]string{
	"view decisions": {"2052a7923b4438eadcce53869220b97c64dce976a1f8c0f7ab9443e1354ef2ce", "21211e3640d81d5d91c13fce87aca8fbe233b5d72f32975c4869b758e4cc0329", "5438ad40ed2236894eee5a9b95407bc6008753bc8ce4b463b4b4c283c2da17c4", "57b06b3b40e5a979d6692dc7a05d35f25b7560d8bc662b10fdcf428571021885"},
	"view refusals":  {"e3775198250d71ee57f63eb3f6a6f4d99093348271e117f877bb586d67e32586"},
	"view hosts":     {"86184cbb1480c2c4ba2133993f869a8fc5fc7ea42f36161a2f7886807ad847bd"},
	"view standing":  {"903d23af98093bdb4d4fe3773af1cc40728624289f49e9a487520654ead34abd"},
}

// objectsQuery selects the name and the statement of each object. SQLite also
// executes a statement that is stored as a blob, which heed never writes.
const objectsQuery = "SELECT type || ' ' || name, iif(typeof(sql) = 'text', sql, '') FROM sqlite_schema"

// objects returns a func that adds rows of objectsQuery to in.
func objects(in map[string]string) func(*fields) {
	return func(f *fields) { in[f.text()] = normalizeSQL(f.text()) }
}

// expected is Schema as SQLite has it: its objects, and the types of the columns of its tables.
type expected struct {
	objects map[string]string
	types   [len(tables)][]string
}

// expectedSchema returns what is expected of a file.
var expectedSchema = sync.OnceValues(func() (*expected, error) {
	c, err := connect(":memory:", "memory")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Exec(schema + views); err != nil {
		return nil, err
	}
	want := &expected{objects: map[string]string{}}
	err = c.each(objectsQuery, objects(want.objects))
	for t := range want.types {
		err = errors.Join(err, c.each("SELECT type FROM pragma_table_info('"+table(t).String()+"') ORDER BY cid", func(f *fields) { want.types[t] = append(want.types[t], f.text()) }))
	}
	return want, err
})

var (
	comments = memo.Expression(`--[^\n]*`)
	spaces   = memo.Expression(`\s+`)
)

// normalizeSQL returns a statement without comments, which may differ between
// versions, and with single spaces.
func normalizeSQL(text string) string {
	return strings.TrimSpace(spaces().ReplaceAllString(comments().ReplaceAllString(text, ""), " "))
}

// pages runs SQLite's check of the pages of the file.
func (v *verifier) pages() error {
	return v.each("PRAGMA quick_check(1)", func(f *fields) {
		if found := f.text(); found != "ok" {
			f.fail(&Damage{What: "SQLite finds it inconsistent: " + found,
				Means: "All rows are as they were written, but ordinary tools may not find all of them. heed audit backup makes a sound copy."})
		}
	})
}
