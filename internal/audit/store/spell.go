package store

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/rules"
)

// maxText bounds each text of a row that a client or a site chose, but for what
// a request asks for, in octets. A text that is cut ends in "...".
const maxText = 4096

// speller spells what is recorded, with rows for the names that have none yet.
type speller struct {
	names
	o     *Options
	run   int64     // the id of this run
	begun time.Time // when it began
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
func (s *speller) runRow(rows []byte) []byte {
	s.run = s.next(Run)
	rows = appendInteger(append(rows, byte(Run)), s.run)
	rows = appendInteger(rows, micro(s.begun))
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

// exempt adds a row of requests of which only the number is kept.
func (s *speller) exempt(rows []byte, now time.Time, count int64, why string) []byte {
	rows = appendInteger(append(rows, byte(Exempt)), s.next(Exempt))
	return appendSome(appendInteger(appendInteger(rows, micro(now)), count), bounded(why))
}
