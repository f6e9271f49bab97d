package cache

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"heed/rules"
)

// recordVersion stands in every record. A heed that reads another one asks the
// site again.
const recordVersion = 2

// record is an entry without the text of its policy, in the form that is kept:
// how the site's answers stood when it was saved.
type record struct {
	Version int           `json:"v"`
	Profile rules.Profile `json:"profile,omitzero"` // that the answers were judged by

	Policy   source  `json:"policy"`
	SetAside *source `json:"aside,omitzero"`

	MadeAt       time.Time     `json:"made"`
	AskAt        time.Time     `json:"ask"`
	WaitAt       time.Time     `json:"wait"`
	Denied       bool          `json:"denied,omitzero"`
	Varies       bool          `json:"varies,omitzero"`
	Failures     int           `json:"failures,omitzero"`
	FailingSince time.Time     `json:"failing,omitzero"`
	Lifetime     time.Duration `json:"lifetime,omitzero"`
	Grace        time.Duration `json:"grace,omitzero"`
	NoStore      bool          `json:"nostore,omitzero"`
	TagURL       string        `json:"url,omitzero"`
	ETag         string        `json:"etag,omitzero"`
	LastModified string        `json:"modified,omitzero"`
}

// source is a rules.Source but for the origin, which the key of a record says.
type source struct {
	State        rules.State `json:"state"`
	Status       int         `json:"status,omitzero"`
	FetchedAt    time.Time   `json:"fetched,omitzero"`
	FreshUntil   time.Time   `json:"fresh,omitzero"`
	RetryAt      time.Time   `json:"retry,omitzero"`
	Stale        bool        `json:"stale,omitzero"`
	Err          string      `json:"error,omitzero"`
	Told         string      `json:"told,omitzero"` // of Err, what may be told
	NoConnection bool        `json:"unconnected,omitzero"`
	RetriedAs    string      `json:"as,omitzero"`
	Note         string      `json:"note,omitzero"`
	// Answer is the site's, when it brought no file: one with a file is kept
	// beside the record.
	Answer *rules.Snapshot `json:"answer,omitzero"`
}

// encodeRecord returns what readRecord makes e of again, together with the
// Snapshot of the file that e has.
func encodeRecord(e *entry, profile rules.Profile) []byte {
	r := record{
		Version: recordVersion, Profile: profile, Policy: *sourceOf(e.policy),
		MadeAt: e.madeAt, AskAt: e.askAt, WaitAt: e.waitAt, Denied: e.denied, Varies: e.varies,
		Failures: e.failures, FailingSince: e.failingSince, Lifetime: e.lifetime, Grace: e.grace,
		NoStore: e.noStore, TagURL: e.tags.url, ETag: e.tags.etag, LastModified: e.tags.lastModified,
	}
	if e.setAside != nil {
		r.SetAside = sourceOf(e.setAside)
	}
	text, err := json.Marshal(&r)
	if err != nil {
		panic("plain values cannot be marshalled: " + err.Error())
	}
	return text
}

func sourceOf(p *rules.Policy) *source {
	src := p.Source()
	s := &source{
		State: src.State, Status: src.Status, FetchedAt: src.FetchedAt, FreshUntil: src.FreshUntil,
		RetryAt: src.RetryAt, Stale: src.Stale, NoConnection: src.NoConnection,
		RetriedAs: src.RetriedAs, Note: src.Note,
	}
	if a := src.Snapshot; a != nil && a.Zlib == nil {
		s.Answer = a
	}
	if src.Err != nil {
		s.Err, s.Told = src.Err.Error(), wordsToTell(src.Err)
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
	e := &entry{
		policy: r.Policy.policy(o, profile, of, body),
		madeAt: r.MadeAt, askAt: r.AskAt, waitAt: r.WaitAt, denied: r.Denied, varies: r.Varies,
		failures: r.Failures, failingSince: r.FailingSince, lifetime: r.Lifetime, grace: r.Grace,
		noStore: r.NoStore, tags: validators{url: r.TagURL, etag: r.ETag, lastModified: r.LastModified},
	}
	if r.SetAside != nil {
		e.setAside = r.SetAside.policy(o, profile, answer, body)
	}
	return e
}

func (s *source) policy(o rules.Origin, profile rules.Profile, answer *rules.Snapshot, body []byte) *rules.Policy {
	src := rules.Source{
		Origin: o, State: s.State, Status: s.Status, FetchedAt: s.FetchedAt, FreshUntil: s.FreshUntil,
		RetryAt: s.RetryAt, Stale: s.Stale, NoConnection: s.NoConnection,
		RetriedAs: s.RetriedAs, Note: s.Note, Snapshot: cmp.Or(s.Answer, answer),
	}
	if s.Err != "" {
		src.Err = &retold{s.Err, s.Told} // its text alone: what lay under it was of the last run
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
