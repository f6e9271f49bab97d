package store

import (
	"net/http"
	"weak"

	"heed/internal/audit"
	"heed/rules"
)

// ground returns the number of why e was decided as d.
func (s *speller) ground(rows *[]byte, e *audit.Entry, d *rules.Decision, settled string) int64 {
	policy, configuration := s.policy(rows, e.Policy), s.configuration(rows, e)
	detail, _ := s.o.Privacy.Redact(bounded(e.Detail))
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
	b = appendInteger(b, rules.Engine)
	s.scratch = b
	return s.id(rows, Ground, b)
}

// configuration returns the number of the settings that were in force; 0 for none.
func (s *speller) configuration(rows *[]byte, e *audit.Entry) int64 {
	if e.Config == "" {
		return 0
	}
	if id, ok := s.known[Configuration].get(e.Config); ok {
		return id
	}
	id := s.next(Configuration)
	*rows = appendText(appendInteger(append(*rows, byte(Configuration)), id), e.Config)
	*rows = appendText(*rows, e.Settings)
	s.known[Configuration].put(e.Config, id, len(e.Config))
	return id
}

// policy returns the number of what was judged by; 0 for none.
func (s *speller) policy(rows *[]byte, p *rules.Policy) int64 {
	if p == nil {
		return 0
	}
	key := weak.Make(p)
	if id, ok := s.policies.get(key); ok {
		return id
	}
	source := p.Source()
	o := source.Origin
	site, snapshot := s.site(rows, o.Scheme, o.Host, o.Port), s.snapshot(rows, source.Snapshot)
	b := appendPositive(appendInteger(s.scratch[:0], site), snapshot)
	b = appendText(appendText(b, p.Profile().String()), stateName(source.State))
	b = appendTime(appendInteger(b, int64(source.Status)), source.FetchedAt)
	b = appendFlag(appendTime(b, source.FreshUntil), source.Stale)
	b = appendFlag(appendFlag(b, source.NoConnection), source.Own)
	if source.Err == nil {
		b = appendNull(b)
	} else {
		b = appendText(b, bounded(source.Err.Error()))
	}
	b = appendSome(b, bounded(source.Note))
	s.scratch = b
	id := s.id(rows, Policy, b)
	s.policies.put(key, id, 0)
	return id
}

// snapshot returns the number of an answer; 0 for none.
func (s *speller) snapshot(rows *[]byte, a *rules.Snapshot) int64 {
	if a == nil {
		return 0
	}
	site, body := s.site(rows, a.Origin.Scheme, a.Origin.Host, a.Origin.Port), s.body(rows, a)
	b := appendTime(appendInteger(s.scratch[:0], site), a.FetchedAt)
	b = appendText(appendSome(b, bounded(a.AskedAs)), jsonText(append([]string{}, a.Chain...)))
	b = appendText(appendInteger(b, int64(a.Status)), headersOf(a))
	b = appendPositive(b, body)
	s.scratch = b
	return s.id(rows, Snapshot, b)
}

// headersOf returns the fields as a JSON object.
func headersOf(a *rules.Snapshot) string {
	if a.Header == nil {
		return "{}"
	}
	return jsonText(a.Header)
}

// stateName is how the record names a state.
func stateName(s rules.State) string {
	switch s {
	case rules.Available:
		return "available"
	case rules.Unavailable:
		return "unavailable"
	default:
		return "unreachable"
	}
}

// body returns the number of the bytes of an answer; 0 when it was no file.
func (s *speller) body(rows *[]byte, a *rules.Snapshot) int64 {
	if a.Zlib == nil {
		return 0
	}
	if id, ok := s.known[Body].get(string(a.SHA256[:])); ok {
		return id
	}
	id := s.next(Body)
	*rows = appendBlob(appendInteger(append(*rows, byte(Body)), id), a.SHA256[:])
	*rows = appendBlob(appendInteger(*rows, int64(a.Size)), a.Zlib)
	s.known[Body].put(string(a.SHA256[:]), id, len(a.SHA256))
	return id
}

// late returns the number of why the verdict was given that followed e.
func (s *speller) late(rows *[]byte, e *audit.Entry, o *audit.Outcome) int64 {
	then := *e
	then.Policy, then.Judged, then.Unseen, then.Detail = o.LatePolicy, audit.ByPath, 0, ""
	if e.Method == http.MethodConnect {
		then.Judged = audit.ByHost
	}
	return s.ground(rows, &then, o.Late, o.LateSettled)
}
