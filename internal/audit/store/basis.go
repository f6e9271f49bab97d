package store

import (
	"net/http"
	"weak"

	"heed/internal/audit"
	"heed/rules"
)

// basis returns the id of the basis of d, e's decision or its late one.
func (s *encoder) basis(rows *[]byte, e *audit.Entry, d *rules.Decision, settled string) int64 {
	policy, configuration := s.policy(rows, e.Policy), s.configuration(rows, e)
	detail, _ := s.o.Privacy.Redact(bounded(e.DetailWith(s.o.Privacy.User)))
	if detail == "" {
		detail = bounded(e.PaceNote)
	}
	variant, _ := s.o.Privacy.Redact(d.Variant)
	b := appendText(s.scratch[:0], e.Judged.String())
	b = appendText(appendText(b, d.Verdict.String()), string(d.Reason))
	b = appendSome(appendSome(b, d.Token), d.Group)
	b = appendPositive(appendSome(b, d.Rule), int64(d.Line))
	b = appendInteger(appendSome(b, variant), int64(e.Unseen))
	b = appendSome(appendSome(b, settled), detail)
	b = appendPositive(appendPositive(b, policy), configuration)
	b = appendSome(appendInteger(b, rules.Engine), e.Signals)
	s.scratch = b
	return s.id(rows, groundTable, b)
}

// configuration returns the id of e's settings; 0 for none.
func (s *encoder) configuration(rows *[]byte, e *audit.Entry) int64 {
	if e.Config == "" {
		return 0
	}
	s.scratch = append(s.scratch[:0], e.Config...)
	return s.idBy(s.scratch, rows, configurationTable, func(row []byte) []byte { return appendText(appendText(row, e.Config), e.Settings) })
}

// policy returns the id of p; 0 for nil.
func (s *encoder) policy(rows *[]byte, p *rules.Policy) int64 {
	if p == nil {
		return 0
	}
	key := weak.Make(p)
	if id, ok := s.policies.ids[key]; ok {
		return id
	}
	source := p.Source()
	o := source.Origin
	site, snapshot := s.site(rows, o.Scheme, o.Host, o.Port), s.snapshot(rows, source.Snapshot)
	b := appendPositive(appendInteger(s.scratch[:0], site), snapshot)
	b = appendText(appendText(b, p.Profile().String()), states[source.State])
	b = appendTime(appendInteger(b, int64(source.Status)), source.FetchedAt)
	b = appendFlag(appendTime(b, source.FreshUntil), source.Stale)
	b = appendFlag(appendFlag(b, source.NoConnection), source.Own)
	if source.Err == nil {
		b = appendNull(b)
	} else {
		text, _ := s.o.Privacy.Redact(bounded(source.Err.Error()))
		b = appendText(b, text)
	}
	b = appendSome(b, bounded(source.Note))
	s.scratch = b
	id := s.id(rows, policyTable, b)
	s.policies.put(key, id, 0)
	return id
}

// snapshot returns the id of a; 0 for nil.
func (s *encoder) snapshot(rows *[]byte, a *rules.Snapshot) int64 {
	if a == nil {
		return 0
	}
	site, body := s.site(rows, a.Origin.Scheme, a.Origin.Host, a.Origin.Port), s.body(rows, a)
	b := appendTime(appendInteger(s.scratch[:0], site), a.FetchedAt)
	b = appendText(appendSome(b, bounded(a.AskedAs)), jsonText(append([]string{}, a.Chain...)))
	header := a.Header
	if header == nil {
		header = http.Header{}
	}
	b = appendText(appendInteger(b, int64(a.Status)), jsonText(header))
	b = appendPositive(b, body)
	s.scratch = b
	return s.id(rows, snapshotTable, b)
}

// body returns the id of a's body; 0 when it was not a file.
func (s *encoder) body(rows *[]byte, a *rules.Snapshot) int64 {
	if a.Zlib == nil {
		return 0
	}
	return s.idBy(a.SHA256[:], rows, bodyTable, func(row []byte) []byte {
		return appendBlob(appendInteger(appendBlob(row, a.SHA256[:]), int64(a.Size)), a.Zlib)
	})
}

// late returns the id of the basis of e's late verdict.
func (s *encoder) late(rows *[]byte, e *audit.Entry, o *audit.Outcome) int64 {
	then := *e
	then.Policy, then.Judged, then.Unseen, then.Detail = o.LatePolicy, audit.ByPath, 0, ""
	if audit.IsTunnel(e.Method, e.Target) {
		then.Judged = audit.ByHost
	}
	return s.basis(rows, &then, o.Late, o.LateSettled)
}
