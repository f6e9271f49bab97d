package cache

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/rules"
)

// PolicyStore keeps cached policies across restarts. Keys and values, a record and a
// snapshot, are opaque octets. Its methods are called from many goroutines, and never for a
// request that memory can answer.
type PolicyStore interface {
	// Load returns what was last saved under key; ok is false when there is nothing. The caller
	// owns both slices. Clients wait for it.
	Load(key string) (record, snapshot []byte, ok bool)
	// Save stores both under key, in place of earlier values. It does not wait for a disk or a
	// network, owns both slices from now on, and reports whether Load can be expected to return
	// them.
	Save(key string, record, snapshot []byte) bool
	// Drop deletes key. When key ends in a newline, Drop deletes all keys that begin with it.
	// It does not wait for a disk or a network, and reports whether Load can be expected to
	// return nothing.
	Drop(key string) bool
}

// load reads the entry of o under as from the store, and puts it into p; nil when there is
// none.
func (c *Cache) load(p *originSlot, o rules.Origin, as string) (e *entry) {
	if c.config.Store == nil {
		return nil
	}
	key := storeKey(o, as)
	defer func() {
		if recover() != nil { // a hostile file could end heed at every start
			c.config.Store.Drop(key)
			e = nil
		}
	}()
	text, snapshot, ok := c.config.Store.Load(key)
	if !ok {
		return nil
	}
	e, err := readRecord(o, c.config.Profile, text, snapshot)
	if err != nil {
		c.config.Store.Drop(key)
		return nil
	}
	p.set(as, e)
	p.persisted.Store(true)
	p.reused.Store(true) // it was used before the restart
	return e
}

// save stores e, made from a, for o under as. Failures on heed's own side of the network are
// not stored, because the next start may use another network, nor are answers that the site
// forbids to store (RFC 9111 §5.2.2.5).
func (c *Cache) save(p *originSlot, o rules.Origin, as string, a *answer, e *entry) {
	if c.config.Store == nil {
		return
	}
	key, kept := storeKey(o, as), false
	switch {
	case e.NoStore:
		c.config.Store.Drop(key)
	case e.Failures > 0 && a.noConnection:
	default:
		kept = c.config.Store.Save(key, encodeRecord(e, c.config.Profile), encodeSnapshot(e.snapshot()))
	}
	p.persisted.Store(kept)
}

// storeKey returns the key in a PolicyStore of the entry of o under as. as contains no
// newline, since a User-Agent cannot. So Drop of the key for all clients deletes those for
// single clients too.
func storeKey(o rules.Origin, as string) string {
	return string(append(append(appendKey(nil, o), '\n'), as...))
}

// answered returns the Snapshot of a, received at now; nil when there was no answer of the
// site. It contains the file when file is set.
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
			memo.Set(&s.Header, name, bounded(values))
		}
	}
	return s
}

// snapshotFields are the header fields about the content and the lifetime of an answer.
var snapshotFields = []string{
	"Age", "Cache-Control", "Content-Encoding", "Content-Language", "Content-Type", "Date", "Etag",
	"Expires", "Last-Modified", "Retry-After", "Server", "Vary",
}

// maxFieldKept is the maximum of octets of one field in a Snapshot.
const maxFieldKept = 1024

// bounded returns copies of the values within maxFieldKept: a value may refer to the memory of
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

// recordVersion is part of every record. A record of another version is ignored, so that the
// site is requested again.
const recordVersion = 2

// record is the stored form of an entry, without the text of its policies.
type record struct {
	Version  int           `json:"v"`
	Profile  rules.Profile `json:"profile,omitzero"` // under which the answers were judged
	Policy   source        `json:"policy"`
	SetAside *source       `json:"aside,omitzero"`
	history
}

// source is a rules.Source without the origin, which is in the key of the record.
type source struct {
	rules.Source
	ErrorText  string `json:"error,omitzero"`
	PublicText string `json:"told,omitzero"` // of the error, for clients
	// Answer is the answer of the site without a file: one with a file is stored beside the
	// record.
	Answer *rules.Snapshot `json:"answer,omitzero"`
}

// encodeRecord returns the record of e. readRecord restores e from it and the Snapshot of its
// file.
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
		s.ErrorText, s.PublicText = s.Err.Error(), safetext.Public(s.Err)
	}
	return s
}

// readRecord restores an entry. The file is parsed again, under the given profile. Where
// profiles judge the answer itself differently, the entry is expired, so that the site is
// requested again. readRecord fails for records of another version, and when the file is not
// the one that was saved.
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

// readAnswer decodes the stored answer of o, and its body.
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

// dependsOnProfile reports whether profiles may differ about the answer itself, not only about
// its rules: for a denial, a failure, and a file without rules under one of them.
func (r *record) dependsOnProfile() bool {
	return r.Denied || r.Failures > 0 || r.Policy.State != rules.Available && r.Policy.Status < 400
}

func (r *record) entry(o rules.Origin, profile rules.Profile, answer *rules.Snapshot, body []byte) *entry {
	of := answer
	if r.Failures > 0 && r.Policy.State != rules.Available {
		of = nil // the snapshot beside the record is of an earlier file
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
		src.Err = &publicError{text: s.ErrorText, public: s.PublicText} // the wrapped error is gone with the last run
	}
	return rules.NewAs(profile, src, body)
}

// encodeSnapshot returns s as a line of JSON, followed by the compressed body; nil for nil.
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

// decodeSnapshot reverses encodeSnapshot.
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
		s.Zlib = bytes.Clone(body) // b may be part of a larger slice
	}
	return s, nil
}
