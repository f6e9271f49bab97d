package store

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
	"weak"

	"heed/internal/audit"
	"heed/rules"
)

// encoder encodes rows, and before each the rows that it refers to and that are not
// recorded yet.
type encoder struct {
	names
	o     *Options
	run   int64     // the id of this run
	begun time.Time // when it began
	part  time.Time // when the last row of a run was appended
}

func micro(t time.Time) int64 { return t.UnixMicro() }

// appendTime appends a time; NULL for the zero time.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return appendNull(b)
	}
	return appendInteger(b, micro(t))
}

// appendPositive appends a number; NULL unless it is positive.
func appendPositive(b []byte, n int64) []byte {
	if n <= 0 {
		return appendNull(b)
	}
	return appendInteger(b, n)
}

// runRow appends a row for this run, and begins a new part of the record.
func (s *encoder) runRow(rows []byte) []byte {
	s.run, s.part = s.next(runTable), s.o.Now()
	rows = appendInteger(append(rows, byte(runTable)), s.run)
	rows = appendInteger(rows, micro(s.begun))
	rows = appendInteger(appendText(rows, s.o.Heed), rules.Engine)
	if s.o.Command == nil {
		rows = appendNull(rows)
	} else {
		rows = appendText(rows, jsonText(s.o.Command))
	}
	return appendSome(rows, audit.Bounded(s.o.Note))
}

// jsonText returns v, which is made of texts, as JSON.
func jsonText(v any) string {
	text, _ := json.Marshal(v) // texts can always be marshalled
	return string(text)
}

// entry appends the row of e under a new id, after the rows that it refers to.
func (s *encoder) entry(rows []byte, e *audit.Entry) (_ []byte, seq int64) {
	client, port := s.o.Privacy.Client(e.Client)
	clientID := s.client(&rows, e, client)
	site := s.siteOf(&rows, e)
	basis := s.basis(&rows, e, &e.Decision, e.Settled)
	target, t := s.o.Privacy.Redact(e.Target)
	raw, r := s.o.Privacy.Redact(e.Raw)
	page, p := s.o.Privacy.Redact(audit.Bounded(e.Page))
	_, v := s.o.Privacy.Redact(e.Decision.Variant)

	seq = s.next(entryTable)
	rows = appendInteger(append(rows, byte(entryTable)), seq)
	rows = appendBlob(rows, e.ID[:])
	rows = appendInteger(appendInteger(rows, micro(e.Time)), s.run)
	rows = appendPositive(appendInteger(rows, clientID), int64(port))
	rows = appendInteger(appendPositive(rows, site), basis)
	rows = appendBlob(appendText(rows, audit.Bounded(e.Method)), target)
	if raw == "" {
		rows = appendNull(rows)
	} else {
		rows = appendBlob(rows, raw)
	}
	rows = appendFlag(rows, t || r || p || v)
	rows = appendAge(rows, e)
	rows = appendPositive(rows, e.DelayAsked.Microseconds())
	rows = appendPositive(rows, e.Outcome.Waited.Microseconds())
	rows = appendSome(appendSome(rows, audit.Bounded(e.Part)), page)
	if e.Revises == nil {
		rows = appendNull(rows)
	} else {
		rows = appendBlob(rows, e.Revises[:])
	}
	return appendPositive(rows, e.TurnWaited.Microseconds()), seq
}

// appendAge appends the age of e's policy; NULL when it is the difference between
// the times of the entry and the policy.
func appendAge(rows []byte, e *audit.Entry) []byte {
	if e.Policy == nil || e.PolicyAge <= 0 {
		return appendNull(rows)
	}
	implied := max(0, e.Time.Sub(e.Policy.Source().FetchedAt))
	if d := e.PolicyAge - implied; -time.Second < d && d < time.Second {
		return appendNull(rows)
	}
	return appendInteger(rows, e.PolicyAge.Milliseconds())
}

// client returns the id of e's client at address. The key is made of the values of
// the row, so that a known client is found without encoding JSON.
func (s *encoder) client(rows *[]byte, e *audit.Entry, address string) int64 {
	user, declared := audit.Bounded(s.o.Privacy.User(e.User)), e.Agent != nil && e.Agent.Role == rules.Declared
	b := appendText(appendText(s.scratch[:0], address), user)
	b = appendText(appendText(b, e.ClientName), e.Mode)
	b = appendFlag(appendSome(b, audit.Bounded(e.UserAgent)), declared)
	b = appendText(appendText(b, audit.Bounded(e.Sent)), audit.Bounded(e.SentFrom))
	b = appendText(appendText(b, e.SignedKey), e.SignedBy)
	for _, token := range e.AlsoObey {
		b = appendBlob(b, token)
	}
	b = appendNull(b)
	for _, purpose := range e.Purposes {
		b = appendBlob(b, purpose)
	}
	if e.Agent != nil {
		for i := range e.Agent.Tokens {
			b = appendText(b, e.Agent.Tokens[i].Name)
		}
	}
	s.scratch = b
	return s.idBy(b, rows, askerTable, func(row []byte) []byte {
		row = appendSome(appendSome(appendText(row, address), user), e.ClientName)
		row = appendSome(appendText(row, e.Mode), audit.Bounded(e.UserAgent))
		row = appendFlag(appendText(row, tokensOf(e.Agent)), declared)
		row = appendSome(appendSome(row, audit.Bounded(e.Sent)), audit.Bounded(e.SentFrom))
		row = appendSome(appendSome(appendList(row, e.Purposes), e.SignedKey), e.SignedBy)
		return appendList(row, e.AlsoObey)
	})
}

// appendList appends texts as a JSON array; NULL when there are none.
func appendList(b []byte, texts []string) []byte {
	if len(texts) == 0 {
		return appendNull(b)
	}
	return appendText(b, jsonText(texts))
}

// tokensOf returns the product tokens as a JSON array. When they exceed
// audit.MaxText, the last element is audit.CutMark.
func tokensOf(a *rules.Agent) string {
	names := []string{}
	if a == nil {
		return jsonText(names)
	}
	size := 0
	for i := range a.Tokens {
		name := a.Tokens[i].Name
		if size += len(name) + len(`"",`); size > audit.MaxText {
			names = append(names, audit.CutMark)
			break
		}
		names = append(names, name)
	}
	return jsonText(names)
}

// siteOf returns the id of the site requested; 0 when it is not known.
func (s *encoder) siteOf(rows *[]byte, e *audit.Entry) int64 {
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

func (s *encoder) site(rows *[]byte, scheme, host string, port uint16) int64 {
	b := appendText(appendText(s.scratch[:0], scheme), host)
	b = appendInteger(b, int64(port))
	s.scratch = b
	return s.id(rows, siteTable, b)
}

// outcome appends the outcome of entry seq. Its commit is set when it is added to
// audit.db.
func (s *encoder) outcome(rows []byte, seq int64, e *audit.Entry, o *audit.Outcome) []byte {
	var late int64
	if o.Late != nil {
		late = s.late(&rows, e, o)
	}
	rows = appendInteger(appendInteger(append(rows, byte(outcomeTable)), seq), 0)
	if rows = appendInteger(rows, int64(o.Status)); o.Elsewhere {
		rows = appendNull(rows)
	} else {
		rows = appendFlag(rows, o.FromSite)
	}
	rows = appendInteger(appendInteger(rows, o.BytesIn), o.BytesOut)
	rows = appendFlag(appendInteger(rows, o.Duration.Microseconds()), o.Truncated)
	text, _ := s.o.Privacy.Redact(audit.Bounded(o.Err))
	rows = appendPositive(appendSome(rows, text), late)
	rows = appendPositive(rows, int64(o.SiteStatus))
	return appendSome(appendSome(rows, o.SiteAnswer), o.Signals)
}

// exempt appends a row with a number of requests that are not recorded one by one.
func (s *encoder) exempt(rows []byte, now time.Time, count int64, why string) []byte {
	rows = appendInteger(append(rows, byte(exemptTable)), s.next(exemptTable))
	return appendSome(appendInteger(appendInteger(rows, micro(now)), count), audit.Bounded(why))
}

// event appends the row of e, after that of its site.
func (s *encoder) event(rows []byte, e *audit.Event) []byte {
	var site int64
	if o := e.Site; o.Host != "" {
		site = s.site(&rows, o.Scheme, o.Host, o.Port)
	}
	rows = appendInteger(append(rows, byte(eventTable)), s.next(eventTable))
	rows = appendPositive(appendText(appendInteger(rows, micro(e.Time)), string(e.Kind)), site)
	rows = appendInteger(appendSome(rows, audit.Bounded(e.Name)), e.Count)
	detail, _ := s.o.Privacy.Redact(audit.Bounded(e.Detail))
	return appendSome(appendPositive(rows, int64(e.Status)), detail)
}

// Bounds of the cache of recorded names. A name that was evicted gets another row.
const (
	maxNames      = 1 << 16 // of one table
	maxNameOctets = 8 << 20
)

// names allocates the ids of rows, and caches those of recorded names by a key, in
// most tables the encoded row after its id. It is not safe for concurrent use.
type names struct {
	last     [len(tables)]int64 // the last id allocated, by table
	known    [lastTable]idCache[string]
	policies idCache[weak.Pointer[rules.Policy]] // weak: policies can be collected
	scratch  []byte
}

// idCache is a cache of ids of bounded size. A full one is emptied, which is cheaper than an
// order of use.
type idCache[K comparable] struct {
	ids    map[K]int64
	octets int // of the keys
}

// put caches the id of key, which uses octets of memory.
func (h *idCache[K]) put(key K, id int64, octets int) {
	if h.ids == nil || len(h.ids) >= maxNames || h.octets > maxNameOctets {
		h.ids, h.octets = map[K]int64{}, 0
	}
	h.ids[key] = id
	h.octets += octets
}

// clear removes all names from the cache.
func (n *names) clear() { *n = names{last: n.last, scratch: n.scratch[:0]} }

// rollback sets the last ids allocated, and removes the names with later ids, whose
// rows were not written.
func (n *names) rollback(last [len(tables)]int64) {
	for t := range n.known {
		if n.last[t] > last[t] {
			n.known[t].rollback(last[t])
		}
	}
	if n.last[policyTable] > last[policyTable] {
		n.policies.rollback(last[policyTable])
	}
	n.last = last
}

func (h *idCache[K]) rollback(last int64) {
	maps.DeleteFunc(h.ids, func(_ K, id int64) bool { return id > last })
}

// next allocates an id.
func (n *names) next(t table) int64 {
	n.last[t]++
	return n.last[t]
}

// id returns the id of the row of t that is encoded as row after its id. A new row
// is appended to rows.
func (n *names) id(rows *[]byte, t table, row []byte) int64 {
	return n.idBy(row, rows, t, func(b []byte) []byte { return append(b, row...) })
}

// idBy returns the id of the row of t with a key. A new row is appended to rows;
// columns appends those after its id.
func (n *names) idBy(key []byte, rows *[]byte, t table, columns func([]byte) []byte) int64 {
	h := &n.known[t]
	if id, ok := h.ids[string(key)]; ok { // without an allocation
		return id
	}
	text, id := string(key), n.next(t) // columns may use the memory of key
	*rows = columns(appendInteger(append(*rows, byte(t)), id))
	h.put(text, id, len(text))
	return id
}

// basis returns the id of the basis of d, e's decision or its late one.
func (s *encoder) basis(rows *[]byte, e *audit.Entry, d *rules.Decision, settled string) int64 {
	policy, configuration := s.policy(rows, e), s.configuration(rows, e)
	detail, _ := s.o.Privacy.Redact(audit.Bounded(e.DetailWith(s.o.Privacy.User)))
	variant, _ := s.o.Privacy.Redact(d.Variant)
	b := appendText(s.scratch[:0], e.Judged.String())
	b = appendText(appendText(b, d.Verdict.String()), string(d.Reason))
	b = appendSome(appendSome(b, d.Token), d.Group)
	b = appendPositive(appendSome(b, d.Rule), int64(d.Line))
	b = appendInteger(appendSome(b, variant), int64(e.Unseen))
	b = appendSome(appendSome(b, settled), cmp.Or(detail, audit.Bounded(e.PaceNote)))
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

// policy returns the id of e's policy; 0 for nil.
func (s *encoder) policy(rows *[]byte, e *audit.Entry) int64 {
	p := e.Policy
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
	b = appendText(appendText(b, p.Profile().String()), rules.StateNames[source.State])
	b = appendTime(appendInteger(b, int64(source.Status)), source.FetchedAt)
	b = appendFlag(appendTime(b, source.FreshUntil), source.Stale)
	b = appendFlag(appendFlag(b, source.NoConnection), source.Own)
	failed := ""
	if source.Err != nil {
		failed, _ = s.o.Privacy.Redact(audit.Bounded(source.Err.Error()))
	}
	b = appendSome(appendSome(b, failed), audit.Bounded(source.Note))
	s.scratch = b
	id := s.id(rows, policyTable, b)
	s.policies.put(key, id, 0)
	s.askedAs(rows, e, &source)
	return id
}

// askedAs appends the event that heed asked for the policy of e under the client's name, if it
// did since the part began. A policy that was asked for earlier has an event in an earlier
// part, or concerns another record.
func (s *encoder) askedAs(rows *[]byte, e *audit.Entry, p *rules.Source) {
	if p.RetriedAs == "" || p.FetchedAt.Before(s.part) && !p.FetchedAt.IsZero() {
		return
	}
	asked := audit.Event{Time: p.FetchedAt, Kind: audit.RulesAsked, Site: p.Origin, Name: p.RetriedAs, Count: 1, Status: p.Status}
	if p.FetchedAt.IsZero() { // there was no answer
		asked.Time = e.Time
	}
	if p.Snapshot != nil {
		asked.Count = int64(max(1, len(p.Snapshot.Chain)))
	}
	*rows = s.event(*rows, &asked)
}

// snapshot returns the id of a; 0 for nil.
func (s *encoder) snapshot(rows *[]byte, a *rules.Snapshot) int64 {
	if a == nil {
		return 0
	}
	site, body := s.site(rows, a.Origin.Scheme, a.Origin.Host, a.Origin.Port), s.body(rows, a)
	b := appendTime(appendInteger(s.scratch[:0], site), a.FetchedAt)
	b = appendText(appendSome(b, audit.Bounded(a.AskedAs)), jsonText(append([]string{}, a.Chain...)))
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
