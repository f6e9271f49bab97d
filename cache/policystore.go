package cache

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"heed/rules"
)

// PolicyStore keeps cached policies across restarts. Keys and values, a record and a
// snapshot, are opaque bytes. Its methods are called from many goroutines, and never for a
// request that memory can answer.
type PolicyStore interface {
	// Load returns what was saved last under key; ok is false when there is
	// nothing. The caller owns both slices. It is called while clients wait.
	Load(key string) (record, snapshot []byte, ok bool)
	// Save keeps both under key, in place of what was there. It does not wait for
	// a disk or a network, owns both slices from now on, and reports whether Load
	// can be expected to find them.
	Save(key string, record, snapshot []byte) bool
	// Drop forgets key. When it ends in a newline, all keys that are alike up to
	// their last newline are forgotten with it. It does not wait for a disk or a
	// network either, and reports whether Load will not find them any more.
	Drop(key string) bool
}

// load returns what is kept for o under as, and puts it into p; nil when
// nothing is.
func (c *Cache) load(p *originSlot, o rules.Origin, as string) (e *entry) {
	if c.disk == nil {
		return nil
	}
	key := storeKey(o, as)
	defer func() {
		if recover() != nil { // a hostile file must not end heed at every start
			c.disk.Drop(key)
			e = nil
		}
	}()
	text, snapshot, ok := c.disk.Load(key)
	if !ok {
		return nil
	}
	e, err := readRecord(o, c.profile, text, snapshot)
	if err != nil {
		c.disk.Drop(key)
		return nil
	}
	p.set(as, e)
	p.persisted.Store(true)
	p.reused.Store(true) // it was asked for before
	return e
}

// save keeps e, which a led to, for o under as. What came of our own side of
// the network is not kept: the next start may find another one. Neither is what
// the site forbids to store (RFC 9111 §5.2.2.5).
func (c *Cache) save(p *originSlot, o rules.Origin, as string, a *answer, e *entry) {
	if c.disk == nil {
		return
	}
	key, kept := storeKey(o, as), false
	switch {
	case e.NoStore:
		c.disk.Drop(key)
	case e.Failures > 0 && a.noConnection:
	default:
		kept = c.disk.Save(key, encodeRecord(e, c.profile), encodeSnapshot(e.snapshot()))
	}
	p.persisted.Store(kept)
}

// storeKey returns the key in a PolicyStore of the entry of o under as. as has no
// newline in it: a User-Agent cannot have one. So dropping what is kept for all
// clients drops what is kept for some of them.
func storeKey(o rules.Origin, as string) string {
	return string(append(append(appendKey(nil, o), '\n'), as...))
}

// answered returns the Snapshot of a, received at now; nil when there was no
// answer of the site. It holds the file when file is set.
func (a *answer) answered(now time.Time, file bool) *rules.Snapshot {
	if a.status == 0 {
		return nil
	}
	s := &rules.Snapshot{
		Origin: a.origin, AskedAs: a.as, Chain: a.hops, Status: a.status,
		FetchedAt: now, SHA256: rules.DigestOf(nil),
	}
	if file {
		s.Pack(a.body)
	}
	for _, name := range snapshotFields {
		if values := a.header.Values(name); len(values) > 0 {
			if s.Header == nil {
				s.Header = map[string][]string{}
			}
			s.Header[name] = bounded(values)
		}
	}
	return s
}

// snapshotFields are the fields of an answer that say what it is and for how
// long it holds.
var snapshotFields = []string{
	"Age", "Cache-Control", "Content-Encoding", "Content-Language", "Content-Type", "Date", "Etag",
	"Expires", "Last-Modified", "Retry-After", "Server", "Vary",
}

// maxFieldKept is how much of one field a Snapshot has, in bytes.
const maxFieldKept = 1024

// bounded returns copies of values as far as they fit: a value may be a piece of
// a whole header.
func bounded(values []string) []string {
	var kept []string
	room := maxFieldKept
	for _, v := range values {
		if room -= len(v); room < 0 {
			break
		}
		kept = append(kept, strings.Clone(v))
	}
	return kept
}

// recordVersion is part of every record. A heed that reads another one asks the
// site again.
const recordVersion = 2

// record is an entry without the text of its policies, in the form that is kept:
// the state of the site's answers when it was saved.
type record struct {
	Version  int           `json:"v"`
	Profile  rules.Profile `json:"profile,omitzero"` // that the answers were judged by
	Policy   source        `json:"policy"`
	SetAside *source       `json:"aside,omitzero"`
	history
}

// source is a rules.Source but for the origin, which the key of a record says.
type source struct {
	rules.Source
	ErrorText  string `json:"error,omitzero"`
	PublicText string `json:"told,omitzero"` // of the error, for clients
	// Answer is the site's, when it brought no file: one with a file is kept
	// beside the record.
	Answer *rules.Snapshot `json:"answer,omitzero"`
}

// encodeRecord returns what readRecord makes e of again, together with the
// Snapshot of the file that e has.
func encodeRecord(e *entry, profile rules.Profile) []byte {
	r := record{Version: recordVersion, Profile: profile, Policy: *sourceOf(e.policy), history: e.history}
	if e.lastGood != nil {
		r.SetAside = sourceOf(e.lastGood)
	}
	text, err := json.Marshal(&r)
	if err != nil {
		panic("plain values cannot be marshalled: " + err.Error())
	}
	return text
}

func sourceOf(p *rules.Policy) *source {
	s := &source{Source: p.Source()}
	if a := s.Snapshot; a != nil && a.Zlib == nil {
		s.Answer = a
	}
	if s.Err != nil {
		s.ErrorText, s.PublicText = s.Err.Error(), publicText(s.Err)
	}
	return s
}

// readRecord makes the entry of what is kept. The file is read again, as one
// reads it today and under this profile: what another one made of an answer that
// profiles take differently is due, so that the site is asked again. It fails
// for what another version left, and for a file that is not the one that was
// saved.
func readRecord(o rules.Origin, profile rules.Profile, text, snapshot []byte) (*entry, error) {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("a record of version %d", r.Version)
	}
	if r.Profile != profile && r.dependsOnProfile() {
		r.AskAt, r.WaitAt = r.MadeAt, r.MadeAt
	}
	answer, body, err := readAnswer(o, snapshot)
	if err != nil && (r.Policy.State == rules.Available || r.SetAside != nil) {
		return nil, err
	}
	return r.entry(o, profile, answer, body), nil
}

// readAnswer reads what is kept of an answer of o, and its body.
func readAnswer(o rules.Origin, snapshot []byte) (*rules.Snapshot, []byte, error) {
	s, err := decodeSnapshot(snapshot)
	if err != nil {
		return nil, nil, err
	}
	if s.Origin != o || s.Zlib == nil && s.SHA256 != rules.DigestOf(nil) {
		return nil, nil, errors.New("the file is not the one that was saved")
	}
	body, err := s.Body()
	if err != nil {
		return nil, nil, err
	}
	return s, body, nil
}

// dependsOnProfile reports whether profiles may differ about the answer itself,
// not only about the rules in it: a denial, a failure, and a file that one of
// them found no rules in.
func (r *record) dependsOnProfile() bool {
	return r.Denied || r.Failures > 0 || r.Policy.State != rules.Available && r.Policy.Status < 400
}

func (r *record) entry(o rules.Origin, profile rules.Profile, answer *rules.Snapshot, body []byte) *entry {
	of := answer
	if r.Failures > 0 && r.Policy.State != rules.Available {
		of = nil // what is kept beside the record is the file before
	}
	e := &entry{policy: r.Policy.policy(o, profile, of, body), history: r.history}
	if r.SetAside != nil {
		e.lastGood = r.SetAside.policy(o, profile, answer, body)
	}
	return e
}

func (s *source) policy(o rules.Origin, profile rules.Profile, answer *rules.Snapshot, body []byte) *rules.Policy {
	src := s.Source
	src.Origin, src.Snapshot = o, cmp.Or(s.Answer, answer)
	if s.ErrorText != "" {
		src.Err = &publicError{text: s.ErrorText, public: s.PublicText} // what lay under it was of the last run
	}
	return rules.NewAs(profile, src, body)
}

// encodeSnapshot writes s as a line of JSON, and the compressed body behind it;
// nil for nil.
func encodeSnapshot(s *rules.Snapshot) []byte {
	if s == nil {
		return nil
	}
	head, err := json.Marshal(s)
	if err != nil {
		panic("plain values cannot be marshalled: " + err.Error())
	}
	all := make([]byte, 0, len(head)+1+len(s.Zlib))
	all = append(all, head...)
	all = append(all, '\n')
	return append(all, s.Zlib...)
}

// decodeSnapshot reads what encodeSnapshot wrote.
func decodeSnapshot(b []byte) (*rules.Snapshot, error) {
	head, body, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return nil, errors.New("a snapshot without its body")
	}
	s := &rules.Snapshot{}
	if err := json.Unmarshal(head, s); err != nil {
		return nil, err
	}
	if len(body) > 0 {
		s.Zlib = bytes.Clone(body) // b may hold much else
	}
	return s, nil
}
