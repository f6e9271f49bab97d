package replay

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"heed/rules"
)

// policy is a row of the record made into a Policy again.
type policy struct {
	*rules.Policy
	body  []byte // of the file; nil: there was none to read
	state rules.State
	err   error // why its file cannot be read again
}

// states are the names of states in the record.
var states = map[string]rules.State{"available": rules.Available, "unavailable": rules.Unavailable, "unreachable": rules.Unreachable}

// policy returns the policy of that number.
func (l *library) policy(ctx context.Context, r reader, id int64) (*policy, error) {
	l.mu.RLock()
	p := l.policies[id]
	l.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	p, err := l.readPolicy(ctx, r, id)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes += p.Size() + len(p.body); l.bytes > maxPolicyBytes {
		clear(l.policies)
		l.bytes = p.Size() + len(p.body)
	}
	l.policies[id] = p
	return p, nil
}

const policyQuery = `SELECT p.site, p.profile, p.state, p.status, p.time, p.fresh_until, p.stale, p.no_connection, p.own, p.error, p.note, p.snapshot,
n.time, n.asked_as, n.chain, n.status, n.headers, b.sha256, b.size, b.zlib
FROM policy p LEFT JOIN snapshot n ON n.id = p.snapshot LEFT JOIN body b ON b.id = n.body WHERE p.id = ?`

// policyRow is what policyQuery finds.
type policyRow struct {
	site                     int64
	profile, state           string
	status                   int
	time, fresh, snapshot    sql.NullInt64
	stale, noConnection, own bool
	err, note                sql.NullString
	taken, answer, size      sql.NullInt64
	askedAs, chain, headers  sql.NullString
	sum, zlib                []byte
}

func (l *library) readPolicy(ctx context.Context, r reader, id int64) (*policy, error) {
	var p policyRow
	err := r.QueryRowContext(ctx, policyQuery, id).Scan(&p.site, &p.profile, &p.state, &p.status, &p.time, &p.fresh, &p.stale, &p.noConnection,
		&p.own, &p.err, &p.note, &p.snapshot, &p.taken, &p.askedAs, &p.chain, &p.answer, &p.headers, &p.sum, &p.size, &p.zlib)
	if err != nil {
		return nil, missing("policy", id, err)
	}
	origin, err := l.site(ctx, r, p.site)
	if err != nil {
		return nil, err
	}
	source := p.source(origin)
	made := &policy{state: source.State}
	profile, ok := rules.ParseProfile(p.profile)
	switch {
	case !ok:
		made.err = fmt.Errorf("its robots.txt was read under the profile %q, which this heed does not know", p.profile)
	case source.Snapshot != nil:
		made.body, made.err = source.Snapshot.Body()
	}
	switch {
	case made.err != nil:
	case made.body != nil:
		// A file that was read decides about the state, too.
		source.State = rules.Available
	case source.State == rules.Available:
		made.err = errors.New("the record does not have the bytes of its robots.txt")
	}
	made.Policy = l.parse(profile, source, made.body)
	return made, nil
}

// source returns how the policy was obtained.
func (p *policyRow) source(o rules.Origin) rules.Source {
	s := rules.Source{
		Origin: o, State: states[p.state], Status: p.status, FetchedAt: at(p.time), FreshUntil: at(p.fresh),
		Stale: p.stale, NoConnection: p.noConnection, Own: p.own, Note: p.note.String, RetriedAs: p.askedAs.String,
	}
	if p.err.Valid {
		s.Err = errors.New(p.err.String)
	}
	if p.snapshot.Valid {
		n := &rules.Snapshot{
			Origin: o, AskedAs: p.askedAs.String, Status: int(p.answer.Int64), FetchedAt: at(p.taken),
			SHA256: rules.DigestOf(nil), Size: int(p.size.Int64), Zlib: p.zlib,
		}
		copy(n.SHA256[:], p.sum)
		_ = json.Unmarshal([]byte(p.chain.String), &n.Chain) // what cannot be read is not told; verify finds it
		_ = json.Unmarshal([]byte(p.headers.String), &n.Header)
		s.Snapshot = n
	}
	return s
}

// at returns a time of the record; zero for none.
func at(t sql.NullInt64) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return time.UnixMicro(t.Int64).UTC()
}

// under returns p as it would have been under another profile: read again where
// there is a file, and what answers without a file mean there.
func (p *policy) under(profile rules.Profile) *rules.Policy {
	s := p.Source()
	denied := s.Snapshot != nil && (s.Snapshot.Status == http.StatusUnauthorized || s.Snapshot.Status == http.StatusForbidden)
	switch {
	case p.body != nil && s.Stale && profile == rules.Strict:
		s.State = rules.Unreachable // no old copy stands in
	case p.body != nil:
		s.State = rules.Available
	case denied && profile == rules.Strict:
		s.State = rules.Unreachable
	case denied:
		s.State = rules.Unavailable
	}
	return rules.NewAs(profile, s, p.body)
}
