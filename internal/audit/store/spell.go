package store

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"weak"

	"heed/internal/audit"
	"heed/rules"
)

// maxText bounds each text of a row that a client or a site chose, but for what
// a request asks for, in octets. A text that is cut ends in "...".
const maxText = 4096

// speller spells what is recorded, with rows for the names that have none yet.
type speller struct {
	names
	o   *Options
	run int64 // the id of this run
}

func bounded(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "..."
	}
	return s
}

func micro(t time.Time) int64 { return t.UnixMicro() }

// appendTime spells a time; NULL for none.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return appendNull(b)
	}
	return appendInteger(b, micro(t))
}

// appendPositive spells a number; NULL for none.
func appendPositive(b []byte, n int64) []byte {
	if n <= 0 {
		return appendNull(b)
	}
	return appendInteger(b, n)
}

// runRow adds the row of this run.
func (s *speller) runRow(rows []byte, now time.Time) []byte {
	s.run = s.next(Run)
	rows = appendInteger(append(rows, byte(Run)), s.run)
	rows = appendInteger(rows, micro(now))
	rows = appendInteger(appendText(rows, s.o.Heed), rules.Engine)
	if s.o.Command == nil {
		rows = appendNull(rows)
	} else {
		rows = appendText(rows, jsonText(s.o.Command))
	}
	return appendSome(rows, bounded(s.o.Note))
}

// jsonText is v as JSON. v is made of texts.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("texts cannot be marshalled: " + err.Error())
	}
	return string(text)
}

// entry adds the row of e under a new number, and before it what it refers to.
func (s *speller) entry(rows []byte, e *audit.Entry) (_ []byte, seq int64) {
	client, port := s.o.Privacy.Client(e.Client)
	asker := s.asker(&rows, e, client)
	site := s.siteOf(&rows, e)
	ground := s.ground(&rows, e, &e.Decision, e.Settled)
	target, raw, page := e.Target, e.Raw, bounded(e.Page)
	var t, r, p bool
	target, t = s.o.Privacy.Redact(target)
	raw, r = s.o.Privacy.Redact(raw)
	page, p = s.o.Privacy.Redact(page)
	_, v := s.o.Privacy.Redact(e.Decision.Variant)

	seq = s.next(Entry)
	rows = appendInteger(append(rows, byte(Entry)), seq)
	rows = appendBlob(rows, e.ID[:])
	rows = appendInteger(appendInteger(rows, micro(e.Time)), s.run)
	rows = appendPositive(appendInteger(rows, asker), int64(port))
	rows = appendInteger(appendPositive(rows, site), ground)
	rows = appendBlob(appendText(rows, bounded(e.Method)), target)
	if raw == "" {
		rows = appendNull(rows)
	} else {
		rows = appendBlob(rows, raw)
	}
	rows = appendFlag(rows, t || r || p || v)
	rows = appendAge(rows, e)
	rows = appendPositive(rows, e.DelayAsked.Microseconds())
	rows = appendPositive(rows, e.Outcome.Waited.Microseconds())
	rows = appendSome(appendSome(rows, bounded(e.Part)), page)
	if e.Revises == nil {
		return appendNull(rows), seq
	}
	return appendBlob(rows, e.Revises.ID[:]), seq
}

// appendAge spells how old e's policy was, where the times do not say it.
func appendAge(rows []byte, e *audit.Entry) []byte {
	if e.Policy == nil || e.PolicyAge <= 0 {
		return appendNull(rows)
	}
	said := max(0, e.Time.Sub(e.Policy.Source().FetchedAt))
	if d := e.PolicyAge - said; -time.Second < d && d < time.Second {
		return appendNull(rows)
	}
	return appendInteger(rows, e.PolicyAge.Milliseconds())
}

// asker returns the number of who asked. It is looked up by what the row is made
// of, so that a known one costs no JSON.
func (s *speller) asker(rows *[]byte, e *audit.Entry, client string) int64 {
	user, declared := bounded(s.o.Privacy.User(e.User)), e.Agent != nil && e.Agent.Declared
	b := appendText(appendText(s.scratch[:0], client), user)
	b = appendText(appendText(b, e.ClientName), e.Mode)
	b = appendFlag(appendSome(b, bounded(e.UserAgent)), declared)
	b = appendText(appendText(b, bounded(e.Sent)), bounded(e.SentFrom))
	if e.Agent != nil {
		for i := range e.Agent.Tokens {
			b = appendText(b, e.Agent.Tokens[i].Name)
		}
	}
	s.scratch = b
	if id, ok := s.known[Asker].young[string(b)]; ok { // without an allocation
		return id
	}
	key := string(b)
	if id, ok := s.known[Asker].get(key); ok {
		return id
	}
	id := s.next(Asker)
	*rows = appendText(appendInteger(append(*rows, byte(Asker)), id), client)
	*rows = appendSome(appendSome(*rows, user), e.ClientName)
	*rows = appendSome(appendText(*rows, e.Mode), bounded(e.UserAgent))
	*rows = appendFlag(appendText(*rows, tokensOf(e.Agent)), declared)
	*rows = appendSome(appendSome(*rows, bounded(e.Sent)), bounded(e.SentFrom))
	s.known[Asker].put(key, id, len(key))
	return id
}

// tokensOf returns the product tokens as a JSON array. Of more than fit into
// maxText the last element is "...".
func tokensOf(a *rules.Agent) string {
	names := []string{}
	if a == nil {
		return jsonText(names)
	}
	size := 0
	for i := range a.Tokens {
		name := a.Tokens[i].Name
		if size += len(name) + len(`"",`); size > maxText {
			names = append(names, "...")
			break
		}
		names = append(names, name)
	}
	return jsonText(names)
}

// siteOf returns the number of the site asked for; 0 when none was learnt.
func (s *speller) siteOf(rows *[]byte, e *audit.Entry) int64 {
	if e.Host == "" {
		return 0
	}
	host, port := e.Host, uint16(80)
	if e.Scheme == "https" {
		port = 443
	}
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if n, err := strconv.ParseUint(host[i+1:], 10, 16); err == nil {
			host, port = host[:i], uint16(n)
		}
	}
	return s.site(rows, e.Scheme, strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), port)
}

func (s *speller) site(rows *[]byte, scheme, host string, port uint16) int64 {
	b := appendText(appendText(s.scratch[:0], scheme), host)
	b = appendInteger(b, int64(port))
	s.scratch = b
	return s.id(rows, Site, b)
}

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

// outcome adds the row of how the exchange of entry seq ended. The commit is
// filled in when audit.db is completed.
func (s *speller) outcome(rows []byte, seq int64, e *audit.Entry, o *audit.Outcome) []byte {
	var late int64
	if o.Late != nil {
		late = s.late(&rows, e, o)
	}
	rows = appendInteger(appendInteger(append(rows, byte(Outcome)), seq), 0)
	rows = appendFlag(appendInteger(rows, int64(o.Status)), o.FromSite)
	rows = appendInteger(appendInteger(rows, o.BytesIn), o.BytesOut)
	rows = appendFlag(appendInteger(rows, o.Duration.Microseconds()), o.Truncated)
	text, _ := s.o.Privacy.Redact(bounded(o.Err))
	return appendPositive(appendSome(rows, text), late)
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

// exempt adds a row of requests of which only the number is kept.
func (s *speller) exempt(rows []byte, now time.Time, count int64, why string) []byte {
	rows = appendInteger(append(rows, byte(Exempt)), s.next(Exempt))
	return appendSome(appendInteger(appendInteger(rows, micro(now)), count), bounded(why))
}
