package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// evidenceForm is the name of the form of a proof. The form is documented in `heed help proofs`.
const evidenceForm = "heed proof 1"

// Evidence is a proof of decisions: rows of a record, with the hashes that lead from each to a
// signed checkpoint.
type Evidence struct {
	Form       string         `json:"form"`
	Checkpoint string         `json:"checkpoint"` // a signed note (C2SP)
	Key        string         `json:"key"`        // that signed it, as `heed audit key` prints it
	Commits    []ProvedCommit `json:"commits"`
	Rows       []ProvedRow    `json:"rows"`
	Hashes     Base64         `json:"hashes"` // one after another; paths refer to them by their indexes
}

// ProvedCommit is a commit with rows of a proof.
type ProvedCommit struct {
	N      int64 `json:"n"`      // its leaf in the tree of the record
	Leaves int64 `json:"leaves"` // in its own tree
	Root   int   `json:"root"`
	Path   []int `json:"path"`
}

// ProvedRow is a row of a proof. Values are the columns of its table in their order; those that
// are private are null, and Hidden is the hash of them, unless Private has them.
type ProvedRow struct {
	Table   string          `json:"table"`
	Commit  int             `json:"commit"` // the index of its commit
	Place   int64           `json:"place"`
	Salt    Base64          `json:"salt"`
	Values  json.RawMessage `json:"values"`
	Hidden  *Base64         `json:"hidden,omitempty"`
	Private *PrivateValues  `json:"private,omitempty"`
	Path    []int           `json:"path"`
}

// PrivateValues are those of a row that Hidden is the hash of.
type PrivateValues struct {
	Salt   Base64          `json:"salt"`
	Values json.RawMessage `json:"values"`
}

// Base64 is octets that are standard base64 in JSON, in its one spelling.
type Base64 []byte

// MarshalText implements encoding.TextMarshaler.
func (b Base64) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Base64) UnmarshalText(text []byte) (err error) {
	*b, err = base64.StdEncoding.Strict().DecodeString(string(text))
	if err == nil && base64.StdEncoding.EncodeToString(*b) != string(text) {
		err = errors.New("this is not the one spelling in base64")
	}
	return err
}

// Decisions returns the number of decisions of the proof.
func (e *Evidence) Decisions() (n int) {
	for i := range e.Rows {
		if e.Rows[i].Table == entryTable.String() {
			n++
		}
	}
	return n
}

// Text returns the proof as JSON, with one row or commit a line.
func (e *Evidence) Text() []byte {
	text := plainJSON(e)
	for _, begin := range []string{`{"n":`, `{"table":`} { // within a text each quotation mark has a \ before it
		text = bytes.ReplaceAll(text, []byte(begin), []byte("\n"+begin))
	}
	return append(text, '\n')
}

// plainJSON returns v, which can be encoded, as JSON that keeps <, > and & as they are.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// proved returns the proof of a row whose leaf was hashed last.
func (l *leaves) proved(row []byte, commit int, place int64, path []int, all bool) ProvedRow {
	t := table(row[0])
	shown, hidden, some := hide(nil, bytes.Clone(l.salt[saltSize/2:]), row, private[t])
	p := ProvedRow{Table: t.String(), Commit: commit, Place: place, Salt: bytes.Clone(l.salt[:saltSize/2]), Values: valuesJSON(tables[t].columns, shown[1:]), Path: path}
	switch {
	case some && all:
		p.Private = &PrivateValues{Salt: hidden[:saltSize/2], Values: valuesJSON(privateColumns(t), hidden[saltSize/2:])}
	case some:
		sum := sha256.Sum256(hidden)
		h := Base64(sum[:])
		p.Hidden = &h
	}
	return p
}

// privateColumns returns the names of the private columns of t.
func privateColumns(t table) (names []string) {
	for i, name := range tables[t].columns {
		if private[t]>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

// valuesJSON returns encoded values as a JSON object, in the order of the columns, without those
// that are NULL: a byte string as {"octets": TEXT} when it is printable ASCII, else as {"base64":
// TEXT}, and a text that is not UTF-8 as {"text": BASE64}.
func valuesJSON(columns []string, values []byte) json.RawMessage {
	b := []byte{'{'}
	for _, name := range columns {
		v, size := cutValue(values)
		values = values[size:]
		if v.tag == tagNull {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%q:", name)
		var out any
		switch {
		case v.tag == tagInteger:
			out = v.number
		case v.tag == tagText && utf8.Valid(v.octets):
			out = string(v.octets)
		case v.tag == tagText:
			out = map[string]Base64{"text": v.octets}
		case v.tag == tagBlob && printable(v.octets):
			out = map[string]string{"octets": string(v.octets)}
		case v.tag == tagBlob:
			out = map[string]Base64{"base64": v.octets}
		}
		b = append(b, plainJSON(out)...)
	}
	return append(b, '}')
}

// printable reports whether b is printable ASCII.
func printable(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c < ' ' || c > '~' })
}

// parseValues encodes the values of a JSON object that valuesJSON returns.
func parseValues(b []byte, columns []string, text json.RawMessage) ([]byte, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	for _, name := range columns {
		v, ok := values[name]
		if delete(values, name); !ok {
			b = appendNull(b)
			continue
		}
		var err error
		if b, err = parseValue(b, v); err != nil {
			return nil, fmt.Errorf("the value %s cannot be read: %w", name, err)
		}
	}
	for name := range values {
		return nil, fmt.Errorf("it has a value %q, which is none of the table's", name)
	}
	return b, nil
}

func parseValue(b []byte, text json.RawMessage) ([]byte, error) {
	switch text[0] {
	case '"':
		var s string
		err := json.Unmarshal(text, &s)
		return appendText(b, s), err
	case '{':
		var v struct {
			Octets *string
			Base64 *Base64
			Text   *Base64
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err := d.Decode(&v)
		switch {
		case err != nil:
			return nil, err
		case v.Octets != nil:
			return appendBlob(b, *v.Octets), nil
		case v.Base64 != nil:
			return appendBlob(b, []byte(*v.Base64)), nil
		case v.Text != nil:
			return appendText(b, string(*v.Text)), nil
		}
		return nil, errors.New("it is none of the forms of a value")
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(text) {
		return nil, fmt.Errorf("%s is no whole number", text)
	}
	return appendInteger(b, n), nil
}

// Checked is what a proof proves.
type Checked struct {
	Head      Head
	KeyKnown  bool // the signature is by the key that was given
	Decisions []*CheckedDecision
	rows      map[place]checkedRow
}

// CheckedDecision is a decision in a proof, with the rows that it rests on.
type CheckedDecision struct {
	Commit  int64 // that covers it
	Entry   map[string]any
	Outcome map[string]any // nil: the proof has none
	Site    map[string]any // nil: no host was learnt
	Ground  map[string]any
	Late    map[string]any // the ground of the late verdict; nil: there is none
	Policy  map[string]any // nil: none was asked for
	Answer  map[string]any // the row of snapshot; nil: there is none
	Body    map[string]any // the row of body; nil: there is none
	Client  map[string]any // the row of asker; nil: it is left out
}

// checkedRow is a row whose path was checked: its values by column, with the private ones that
// the proof has.
type checkedRow struct {
	commit int64
	values map[string]any
}

// ErrNoProof is the error of CheckProof for what is no proof at all; other errors are of a proof
// that is wrong.
var ErrNoProof = errors.New("this is no proof of heed's")

// MaxProof bounds the octets of a proof that is read.
const MaxProof = 256 << 20

// CheckProof checks a proof: every path, the signature, and that no row is missing on which
// another rests. key, as `heed audit key` prints it, must have signed it; empty: any key may.
func CheckProof(text []byte, key string) (*Checked, error) {
	e := &Evidence{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if !bytes.Contains(text[:min(len(text), 100)], []byte(`{"form":"`+evidenceForm)) && (json.Unmarshal(text, &struct{ Form *string }{&e.Form}) != nil || e.Form != evidenceForm) {
		return nil, ErrNoProof
	}
	if err := d.Decode(e); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if e.Form != evidenceForm {
		return nil, ErrNoProof
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows its end")
	}
	c := &Checked{KeyKnown: key != "", rows: map[place]checkedRow{}}
	if key != "" && key != e.Key {
		return nil, errors.New("it is signed by another key than the one that was given")
	}
	head, err := OpenCheckpoint(e.Checkpoint, e.Key)
	if err != nil {
		return nil, err
	}
	c.Head = *head
	if err := e.check(c); err != nil {
		return nil, err
	}
	return c, c.connect()
}

// check checks the paths of all rows, and that the proof has nothing else.
func (e *Evidence) check(c *Checked) error {
	if len(e.Hashes)%tlog.HashSize != 0 {
		return errors.New("its hashes are cut off")
	}
	used := make([]bool, len(e.Hashes)/tlog.HashSize)
	hash := func(i int) (h tlog.Hash, err error) {
		if i < 0 || i >= len(used) {
			return h, errors.New("a path refers to a hash that the proof does not have")
		}
		used[i] = true
		return tlog.Hash(e.Hashes[i*tlog.HashSize:][:tlog.HashSize]), nil
	}
	hashes := func(path []int) (all []tlog.Hash, err error) {
		for _, i := range path {
			h, err := hash(i)
			if err != nil {
				return nil, err
			}
			all = append(all, h)
		}
		return all, nil
	}
	var whole digest
	_ = whole.UnmarshalText([]byte(c.Head.Hash)) // OpenCheckpoint has made it
	roots := make([]tlog.Hash, len(e.Commits))
	for i, at := range e.Commits {
		root, err := hash(at.Root)
		path, err2 := hashes(at.Path)
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		if at.N < 1 || at.N > c.Head.Commit || tlog.CheckRecord(path, c.Head.Commit+1, tlog.Hash(whole), at.N, leafOf(root, at.Leaves)) != nil {
			return fmt.Errorf("commit %d is not in the record that the checkpoint is of", at.N)
		}
		roots[i] = root
	}
	covers := make([]bool, len(e.Commits))
	if err := e.checkRows(c, roots, covers, hashes); err != nil {
		return err
	}
	if slices.Contains(used, false) || slices.Contains(covers, false) {
		return errors.New("it has hashes or commits that prove nothing")
	}
	return nil
}

// checkRows checks the paths of all rows to the roots of their commits.
func (e *Evidence) checkRows(c *Checked, roots []tlog.Hash, covers []bool, hashes func([]int) ([]tlog.Hash, error)) error {
	for _, row := range e.Rows {
		if row.Commit < 0 || row.Commit >= len(e.Commits) {
			return errors.New("a row is in a commit that the proof does not have")
		}
		covers[row.Commit] = true
		at := e.Commits[row.Commit]
		leaf, name, checked, err := row.leaf(at.N)
		if err != nil {
			return err
		}
		path, err := hashes(row.Path)
		if err != nil {
			return err
		}
		if row.Place < 1 || row.Place >= at.Leaves || tlog.CheckRecord(path, at.Leaves, roots[row.Commit], row.Place, leaf) != nil {
			return fmt.Errorf("%s %d is not as commit %d has it", name.table, name.id, at.N)
		}
		if _, twice := c.rows[name]; twice {
			return fmt.Errorf("it has %s %d twice", name.table, name.id)
		}
		c.rows[name] = checked
	}
	return nil
}

// leaf returns the hash of the leaf of a row of commit n, and what the row is.
func (p *ProvedRow) leaf(n int64) (h tlog.Hash, name place, checked checkedRow, err error) {
	for t := runTable; t <= outcomeTable && name.table == commits; t++ {
		if t.String() == p.Table {
			name.table = t
		}
	}
	if name.table == commits {
		return h, name, checked, fmt.Errorf("it has a row of a table that heed has not: %q", p.Table)
	}
	t, wrong := name.table, func(err error) (tlog.Hash, place, checkedRow, error) {
		return h, name, checked, fmt.Errorf("a row of %s cannot be read: %w", name.table, err)
	}
	shown, err := parseValues([]byte{byte(t)}, tables[t].columns, p.Values)
	if err != nil {
		return wrong(err)
	}
	checked = checkedRow{n, valueMap(tables[t].columns, shown[1:])}
	name.id, _ = checked.values[tables[t].columns[0]].(int64)
	if _, hidden, _ := hide(nil, nil, shown, private[t]); len(hidden) != len(privateColumns(t)) {
		return wrong(errors.New("a private value is among the others"))
	}
	leaf := append(append([]byte{0}, p.Salt...), shown...)
	switch {
	case len(p.Salt) != saltSize/2 || p.Hidden != nil && (p.Private != nil || len(*p.Hidden) != sha256.Size):
		return wrong(errors.New("a salt or a hash has another size"))
	case p.Hidden != nil:
		leaf = append(leaf, *p.Hidden...)
	case p.Private != nil:
		hidden, err := parseValues(bytes.Clone(p.Private.Salt), privateColumns(t), p.Private.Values)
		if err != nil || len(p.Private.Salt) != saltSize/2 {
			return wrong(errors.Join(errors.New("its private values are not whole"), err))
		}
		sum := sha256.Sum256(hidden)
		leaf = append(leaf, sum[:]...)
		for name, v := range valueMap(privateColumns(t), hidden[saltSize/2:]) {
			checked.values[name] = v
		}
	}
	return sha256.Sum256(leaf), name, checked, nil
}

// valueMap returns encoded values by their columns: nil, int64, string or []byte.
func valueMap(columns []string, values []byte) map[string]any {
	all := map[string]any{}
	for _, name := range columns {
		v, size := cutValue(values)
		values = values[size:]
		switch v.tag {
		case tagInteger:
			all[name] = v.number
		case tagText:
			all[name] = string(v.octets)
		case tagBlob:
			all[name] = bytes.Clone(v.octets)
		default:
			all[name] = nil
		}
	}
	return all
}

// connect sets the decisions, and returns an error when a row is missing on which one rests, or
// when a row belongs to none.
func (c *Checked) connect() error {
	used := map[place]bool{}
	var missing error
	row := func(t table, id any) map[string]any {
		n, _ := id.(int64)
		found, ok := c.rows[place{t, n}]
		if !ok && n != 0 {
			missing = errors.Join(missing, fmt.Errorf("%s %d is missing, on which a decision rests", t, n))
		}
		used[place{t, n}] = true
		return found.values
	}
	policy := func(ground map[string]any, d *CheckedDecision) {
		p := row(policyTable, ground["policy"])
		if p == nil {
			return
		}
		answer := row(snapshotTable, p["snapshot"])
		row(siteTable, p["site"])
		if d.Policy, d.Answer = p, answer; answer != nil {
			d.Body = row(bodyTable, answer["body"])
			row(siteTable, answer["site"])
		}
	}
	for at, r := range c.rows {
		if at.table != entryTable {
			continue
		}
		d := &CheckedDecision{Commit: r.commit, Entry: row(entryTable, at.id), Site: row(siteTable, r.values["site"]), Ground: row(groundTable, r.values["ground"])}
		if d.Ground == nil {
			return errors.Join(missing, errors.New("a decision has no ground"))
		}
		if outcome, ok := c.rows[place{outcomeTable, at.id}]; ok {
			d.Outcome = row(outcomeTable, at.id)
			if d.Late = row(groundTable, outcome.values["late"]); d.Late != nil {
				policy(d.Late, d)
			}
		}
		policy(d.Ground, d)
		if client := (place{askerTable, r.values["asker"].(int64)}); c.rows[client].values != nil {
			d.Client = row(askerTable, client.id)
		}
		c.Decisions = append(c.Decisions, d)
	}
	if missing == nil && (len(used) < len(c.rows) || len(c.Decisions) == 0) {
		missing = errors.New("it has rows that belong to no decision")
	}
	slices.SortFunc(c.Decisions, func(a, b *CheckedDecision) int { return int(a.Entry["seq"].(int64) - b.Entry["seq"].(int64)) })
	return missing
}

// Checkpoint returns the text of the checkpoint of a head, as it is signed (C2SP tlog-checkpoint):
// its origin, the size of the tree and its root.
func (h *Head) Checkpoint() string {
	var root digest
	_ = root.UnmarshalText([]byte(h.Hash)) // a Head has one
	return fmt.Sprintf("%s%s\n%d\n%s\n", originPrefix, h.Store, h.Commit+1, base64.StdEncoding.EncodeToString(root[:]))
}

// originPrefix begins the origin of a checkpoint, before the id of the record.
const originPrefix = "heed-record/"

// parseCheckpoint returns the head of a checkpoint's text.
func parseCheckpoint(text string) (*Head, error) {
	lines := strings.Split(text, "\n")
	wrong := errors.New("it has no checkpoint of a record: its origin, the size of its tree and its root")
	if len(lines) < 4 || !strings.HasPrefix(lines[0], originPrefix) {
		return nil, wrong
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	root := Base64{}
	if err != nil || size < 1 || root.UnmarshalText([]byte(lines[2])) != nil || len(root) != sha256.Size {
		return nil, wrong
	}
	h := &Head{Store: lines[0][len(originPrefix):], Commit: size - 1, Hash: hex.EncodeToString(root)}
	if h.Checkpoint() != text {
		return nil, wrong
	}
	return h, nil
}

// OpenCheckpoint returns the head of a signed checkpoint. key, as `heed audit key` prints it, must
// have signed it.
func OpenCheckpoint(text, key string) (*Head, error) {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return nil, fmt.Errorf("the key that it names is none: %w", err)
	}
	signed, err := note.Open([]byte(text), note.VerifierList(verifier))
	if err != nil {
		return nil, fmt.Errorf("its checkpoint is not signed by the key: %w", err)
	}
	var again Base64
	if len(signed.Sigs) != 1 || len(signed.UnverifiedSigs) > 0 || again.UnmarshalText([]byte(signed.Sigs[0].Base64)) != nil {
		return nil, errors.New("its checkpoint has another signature than the one of the key")
	}
	return parseCheckpoint(signed.Text)
}
