package study

import (
	"fmt"
	"time"
)

// Row is a request as it is written to requests.csv: addresses hashed and
// secrets in URLs replaced unless the study keeps them.
type Row struct {
	N          int64 // from 1, in the order of time
	Time       int64 // microseconds since 1970
	Site       string
	Token      string
	Category   string
	Known      bool // in the built-in list
	Address    string
	Network    string
	UserAgent  string
	Method     string
	Target     string
	Robots     bool // the target is /robots.txt
	Asset      bool // a file that pages load
	Status     int64
	Bytes      int64
	Referrer   string
	Class      string // as in the table of obedience
	Version    int64  // of robots.txt; 0: none is known
	Age        float64
	Line       int64 // of the rule that decided; 0: none
	Delay      float64
	Allowed    int64 // by the version in force: 1 or 0; -1: not judged
	Next       int64 // by the version after it: 1 or 0; -1: there is none
	NextDelay  float64
	Session    int64 // number of the session of this agent and network
	OutOfOrder bool
	Source     string
	SourceLine int64
}

// RowColumn is a column of requests.csv.
type RowColumn struct {
	Name, Type, About string // Type: TEXT, INTEGER or REAL

	value func(*Row) any
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// RowColumns returns the columns of requests.csv in their order.
func RowColumns() []RowColumn {
	return []RowColumn{
		{"n", "INTEGER", "Number of the request in the order of time; equal times keep the order of the files.", func(r *Row) any { return r.N }},
		{"time", "TEXT", "Time in UTC (RFC 3339).", func(r *Row) any { return moment(r.Time) }},
		{"us", "INTEGER", "Time in microseconds since 1970.", func(r *Row) any { return r.Time }},
		{"site", "TEXT", siteToken[0].About, func(r *Row) any { return r.Site }},
		{"token", "TEXT", siteToken[1].About, func(r *Row) any { return r.Token }},
		{"category", "TEXT", "Category of the agent; empty: its User-Agent names no robot.", func(r *Row) any { return r.Category }},
		{"known", "INTEGER", "1: the token is in the built-in list.", func(r *Row) any { return flag(r.Known) }},
		{"address", "TEXT", "Address of the client, as a keyed hash unless --addresses full.", func(r *Row) any { return r.Address }},
		{"network", "TEXT", "Its network, likewise.", func(r *Row) any { return r.Network }},
		{"user_agent", "TEXT", "User-Agent as logged.", func(r *Row) any { return r.UserAgent }},
		{"method", "TEXT", "Method.", func(r *Row) any { return r.Method }},
		{"target", "TEXT", "Path and query as sent, secrets replaced; empty: CONNECT, *, and no target.", func(r *Row) any { return r.Target }},
		{"robots", "INTEGER", "1: the target is /robots.txt.", func(r *Row) any { return flag(r.Robots) }},
		{"asset", "INTEGER", "1: a style sheet, script, image or font.", func(r *Row) any { return flag(r.Asset) }},
		{"status", "INTEGER", "Status of the answer; 0: not logged.", func(r *Row) any { return r.Status }},
		{"bytes", "INTEGER", "Octets of the answer, as logged.", func(r *Row) any { return r.Bytes }},
		{"referrer", "TEXT", "Referrer, secrets replaced.", func(r *Row) any { return r.Referrer }},
		{"class", "TEXT", "How the request counts in the table of obedience.", func(r *Row) any { return r.Class }},
		{"version", "INTEGER", "Version of robots.txt in force; 0: none is known.", func(r *Row) any { return r.Version }},
		{"age_s", "REAL", "Time since that version came into force; -1: not known.", func(r *Row) any { return r.Age }},
		{"rule_line", "INTEGER", "Line of the rule that decided; 0: none.", func(r *Row) any { return r.Line }},
		{"delay_s", "REAL", "Delay that the version asks of this agent; 0: none.", func(r *Row) any { return r.Delay }},
		{"allowed", "INTEGER", "1: the version in force allows it; 0: it does not; -1: not judged.", func(r *Row) any { return r.Allowed }},
		{"next_allowed", "INTEGER", "The same by the version that follows; -1: there is none.", func(r *Row) any { return r.Next }},
		{"next_delay_s", "REAL", "Delay that the version that follows asks for; 0: none.", func(r *Row) any { return r.NextDelay }},
		{"session", "INTEGER", "Number of the session of this agent, site and network.", func(r *Row) any { return r.Session }},
		{"out_of_order", "INTEGER", "1: the time of the line is before that of a line before it.", func(r *Row) any { return flag(r.OutOfOrder) }},
		{"source", "TEXT", "File.", func(r *Row) any { return r.Source }},
		{"source_line", "INTEGER", "Line in the file.", func(r *Row) any { return r.SourceLine }},
	}
}

// write passes a request on as a row.
func (s *Study) write(e *event) error {
	r, v := &s.row, &e.verdict
	*r = Row{
		N: s.total.requests, Time: e.at, Site: e.site.name, Token: e.robot.token, Category: e.robot.category, Known: e.robot.known,
		Address: e.place.hidden, Network: s.netName[e.actor.network], Method: e.Method, Robots: e.robots, Asset: asset(pathOf(e.target)), Status: int64(e.Status), Bytes: e.Bytes,
		Class: v.class.String(), Version: int64(v.version), Age: -1, Line: int64(v.line), Delay: v.delay.Seconds(), Allowed: -1, Next: -1, NextDelay: v.nextDelay.Seconds(),
		Session: int64(e.actor.sessionNumber), OutOfOrder: e.OutOfOrder, Source: e.Source, SourceLine: e.Line,
	}
	if v.age >= 0 {
		r.Age = float64(v.age/time.Microsecond) / 1e6
	}
	if v.judged {
		r.Allowed = flag(v.allowed)
	}
	if v.hasNext {
		r.Next = flag(v.nextAllowed)
	}
	r.Target, _ = s.Privacy.Redact(e.target)
	r.Referrer, _ = s.Privacy.Redact(e.Referrer)
	r.UserAgent, _ = s.Privacy.Redact(e.who.text)
	if err := s.Rows(r); err != nil {
		return fmt.Errorf("the requests cannot be written: %w", err)
	}
	return nil
}

// Value returns the value of the column in a row: a string, an int64 or a float64.
func (c RowColumn) Value(r *Row) any { return c.value(r) }
