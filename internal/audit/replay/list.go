package replay

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"heed/rules"
)

// Filter says which decisions are meant. The zero Filter means all.
type Filter struct {
	From, To time.Time // from From on, and before To; zero: no limit
	// Client names who asked: an address as the record has it, the name of a
	// [[client]], a proxy user or a product token. Empty: everybody.
	Client string
	// Host is a host, or "*.example.org" for all below it. Empty: all.
	Host    string
	Verdict string // allow, refuse or would-refuse; empty: all

	id     []byte // of one decision; nil: any
	url    *place // nil: any
	newest bool   // the last one alone
}

// place is the address that was asked for.
type place struct {
	rules.Origin
	target string
}

// Decision is a decision as it was recorded.
type Decision struct {
	Seq        int64     `json:"seq"`
	ID         string    `json:"id"`
	Time       time.Time `json:"time"`
	Client     string    `json:"client"`
	Port       int       `json:"client_port,omitempty"`
	User       string    `json:"user,omitempty"`
	ClientName string    `json:"client_name,omitempty"`
	Mode       string    `json:"mode"`
	UserAgent  string    `json:"user_agent,omitempty"`
	Tokens     []string  `json:"tokens"`
	Declared   bool      `json:"declared,omitempty"`
	Sent       string    `json:"sent_user_agent,omitempty"`
	Method     string    `json:"method"`
	URL        string    `json:"url"`
	Redacted   bool      `json:"redacted,omitempty"`
	Judged     string    `json:"judged"`
	Verdict
	Detail  string  `json:"detail,omitempty"`
	Delay   float64 `json:"delay_s,omitempty"`  // that the site or the settings ask for
	Waited  float64 `json:"waited_s,omitempty"` // for a turn
	Config  string  `json:"config,omitempty"`
	Heed    string  `json:"heed"`
	Engine  int     `json:"engine"`
	Revises string  `json:"revises,omitempty"` // the decision that this one takes back
	// Outcome is how the exchange ended; nil when that is not recorded: it has not
	// ended, or heed was killed before it did.
	Outcome *Outcome `json:"outcome,omitempty"`

	entryRow
}

// Outcome is how an exchange ended.
type Outcome struct {
	Status    int     `json:"status"` // 0: none was sent
	FromSite  bool    `json:"from_site"`
	BytesIn   int64   `json:"bytes_in"`
	BytesOut  int64   `json:"bytes_out"`
	Duration  float64 `json:"duration_s"`
	Truncated bool    `json:"truncated,omitempty"`
	Error     string  `json:"error,omitempty"`
}

const decisionQuery = `SELECT e.seq, e.id, e.time, a.client, e.port, a.user, a.client_name, a.mode, a.user_agent, a.tokens, a.declared, a.sent,
e.method, s.scheme, s.host, s.port, e.target, e.redacted, g.judged, g.verdict, g.reason, g.token, g.group_name, g.rule, g.line, g.variant,
g.unseen, g.settled, g.detail, e.asked, e.waited, c.hash, r.heed, g.engine, e.revises, e.asker, e.site, e.ground, e.part,
o.status, o.from_site, o.bytes_in, o.bytes_out, o.duration, o.truncated, o.error, o.late
FROM entry e JOIN asker a ON a.id = e.asker JOIN ground g ON g.id = e.ground JOIN run r ON r.id = e.run
LEFT JOIN site s ON s.id = e.site LEFT JOIN configuration c ON c.id = g.configuration LEFT JOIN outcome o ON o.entry = e.seq
WHERE `

// where returns f as the condition of a query, and its values.
func (f *Filter) where() (text string, values []any) {
	all := []string{"1"}
	add := func(condition string, v ...any) { all, values = append(all, condition), append(values, v...) }
	if !f.From.IsZero() {
		add("e.time >= ?", f.From.UnixMicro())
	}
	if !f.To.IsZero() {
		add("e.time < ?", f.To.UnixMicro())
	}
	if f.Client != "" {
		add(`e.asker IN (SELECT id FROM asker WHERE ? IN (client, user, client_name)
OR EXISTS (SELECT 1 FROM json_each(tokens) WHERE value = ?))`, f.Client, strings.ToLower(f.Client))
	}
	if below, ok := strings.CutPrefix(f.Host, "*"); ok {
		add("e.site IN (SELECT id FROM site WHERE substr(host, -length(?)) = ?)", below, below)
	} else if f.Host != "" {
		add("e.site IN (SELECT id FROM site WHERE host = ?)", f.Host)
	}
	if f.Verdict != "" {
		add("e.ground IN (SELECT id FROM ground WHERE verdict = ?)", f.Verdict)
	}
	if f.id != nil {
		add("e.id = ?", f.id)
	}
	if u := f.url; u != nil {
		add("e.site IN (SELECT id FROM site WHERE scheme = ? AND host = ? AND port = ?)", u.Scheme, u.Host, u.Port)
		if u.target == "/" {
			add("e.target IN (?, ?)", []byte("/"), []byte("")) // and a tunnel to the host
		} else {
			add("e.target = ?", []byte(u.target))
		}
	}
	text = strings.Join(all, " AND ")
	if f.newest {
		return text + " ORDER BY e.seq DESC LIMIT 1", values
	}
	return text + " ORDER BY e.seq", values
}

// List calls each with the decisions of a record, in their order, until it
// returns an error.
func List(ctx context.Context, db *sql.DB, f Filter, each func(*Decision) error) error {
	text, values := f.where()
	rows, err := db.QueryContext(ctx, decisionQuery+text, values...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		d, err := scanDecision(rows)
		if err == nil {
			err = each(d)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// decisionRow is what decisionQuery finds, as far as it may be NULL.
type decisionRow struct {
	port, sitePort, line, asked, waited, site                 sql.NullInt64
	user, name, agent, sent, scheme, host, token, group, rule sql.NullString
	variant, settled, detail, hash, part, failed              sql.NullString
	status, fromSite, bytesIn, bytesOut, duration, truncated  sql.NullInt64
	tokens                                                    string
	revises                                                   []byte
}

func scanDecision(rows *sql.Rows) (*Decision, error) {
	d, r := &Decision{}, decisionRow{}
	err := rows.Scan(&d.seq, &d.id, &d.time, &d.Client, &r.port, &r.user, &r.name, &d.Mode, &r.agent, &r.tokens, &d.Declared, &r.sent,
		&d.Method, &r.scheme, &r.host, &r.sitePort, &d.target, &d.Redacted, &d.Judged, &d.Verdict.Verdict, &d.Reason, &r.token, &r.group, &r.rule, &r.line, &r.variant,
		&d.Unseen, &r.settled, &r.detail, &r.asked, &r.waited, &r.hash, &d.Heed, &d.Engine, &r.revises, &d.asker, &r.site, &d.entry.ground, &r.part,
		&r.status, &r.fromSite, &r.bytesIn, &r.bytesOut, &r.duration, &r.truncated, &r.failed, &d.late)
	if err != nil {
		return nil, err
	}
	d.Seq, d.ID, d.Time, d.Port = d.seq, uuidText(d.id), time.UnixMicro(d.time).UTC(), int(r.port.Int64)
	d.User, d.ClientName, d.UserAgent, d.Sent = r.user.String, r.name.String, r.agent.String, r.sent.String
	d.Token, d.Group, d.Rule, d.Line, d.Variant = r.token.String, r.group.String, r.rule.String, int(r.line.Int64), r.variant.String
	d.Settled, d.Detail, d.Config = r.settled.String, r.detail.String, r.hash.String
	d.Delay, d.Waited = seconds(r.asked.Int64), seconds(r.waited.Int64)
	d.method, d.part, d.redacted, d.site = d.Method, r.part.String, d.Redacted, r.site.Int64
	if r.host.Valid {
		d.URL = rules.Origin{Scheme: r.scheme.String, Host: r.host.String, Port: uint16(r.sitePort.Int64)}.String() + d.target
	}
	if r.revises != nil {
		d.Revises = uuidText(r.revises)
	}
	if r.status.Valid {
		d.Outcome = &Outcome{
			Status: int(r.status.Int64), FromSite: r.fromSite.Int64 != 0, BytesIn: r.bytesIn.Int64, BytesOut: r.bytesOut.Int64,
			Duration: seconds(r.duration.Int64), Truncated: r.truncated.Int64 != 0, Error: r.failed.String,
		}
	}
	return d, json.Unmarshal([]byte(r.tokens), &d.Tokens)
}

func seconds(microseconds int64) float64 { return float64(microseconds) / 1e6 }

// ErrNone says that there is no such decision in a record.
var ErrNone = errors.New("no such decision is in the record")
