package study

import (
	"fmt"
	"time"
)

// rowColumn is a column of requests.csv: what is written of a request. Addresses are hashed and
// secrets in URLs replaced unless the study keeps them.
type rowColumn struct {
	Name, Type, About string // Type: TEXT, INTEGER or REAL

	value func(*Study, *event) any
}

// rowColumns returns the columns of requests.csv in their order.
func rowColumns() []rowColumn {
	return []rowColumn{
		{"n", "INTEGER", "Number of the request in the order of time; equal times keep the order of the files.", func(s *Study, e *event) any { return s.total.requests }},
		{"time", "TEXT", "Time in UTC (RFC 3339).", func(s *Study, e *event) any { return moment(e.at) }},
		{"us", "INTEGER", "Time in microseconds since 1970.", func(s *Study, e *event) any { return e.at }},
		{"site", "TEXT", siteToken[0].About, func(s *Study, e *event) any { return e.site.name }},
		{"token", "TEXT", siteToken[1].About, func(s *Study, e *event) any { return e.robot.token }},
		{"category", "TEXT", "Category of the agent; empty: its User-Agent names no robot.", func(s *Study, e *event) any { return e.robot.category }},
		{"known", "INTEGER", "1: the token is in the built-in list.", func(s *Study, e *event) any { return flag(e.robot.known) }},
		{"address", "TEXT", "Address of the client, as a keyed hash unless --addresses full.", func(s *Study, e *event) any { return e.place.hidden }},
		{"network", "TEXT", "Its network, likewise.", func(s *Study, e *event) any { return s.netName[e.actor.network] }},
		{"user_agent", "TEXT", "User-Agent as logged.", func(s *Study, e *event) any { return s.redacted(e.who.text) }},
		{"method", "TEXT", "Method.", func(s *Study, e *event) any { return e.Method }},
		{"target", "TEXT", "Path and query as sent, secrets replaced; empty: CONNECT, *, and no target.", func(s *Study, e *event) any { return s.redacted(e.target) }},
		{"robots", "INTEGER", "1: the target is /robots.txt.", func(s *Study, e *event) any { return flag(e.robots) }},
		{"asset", "INTEGER", "1: a style sheet, script, image or font.", func(s *Study, e *event) any { return flag(asset(pathOf(e.target))) }},
		{"status", "INTEGER", "Status of the answer; 0: not logged.", func(s *Study, e *event) any { return int64(e.Status) }},
		{"bytes", "INTEGER", "Octets of the answer, as logged.", func(s *Study, e *event) any { return e.Bytes }},
		{"referrer", "TEXT", "Referrer, secrets replaced.", func(s *Study, e *event) any { return s.redacted(e.Referrer) }},
		{"class", "TEXT", "How the request counts in the table of obedience.", func(s *Study, e *event) any { return e.verdict.class.String() }},
		{"version", "INTEGER", "Version of robots.txt in force; 0: none is known.", func(s *Study, e *event) any { return int64(e.verdict.version) }},
		{"age_s", "REAL", "Time since that version came into force; -1: not known.", func(s *Study, e *event) any { return ageCell(e.verdict.age) }},
		{"rule_line", "INTEGER", "Line of the rule that decided; 0: none.", func(s *Study, e *event) any { return int64(e.verdict.line) }},
		{"delay_s", "REAL", "Delay that the version asks of this agent; 0: none.", func(s *Study, e *event) any { return e.verdict.delay.Seconds() }},
		{"allowed", "INTEGER", "1: the version in force allows it; 0: it does not; -1: not judged.", func(s *Study, e *event) any { return flagIf(e.verdict.judged, e.verdict.allowed) }},
		{"next_allowed", "INTEGER", "The same by the version that follows; -1: there is none.", func(s *Study, e *event) any { return flagIf(e.verdict.hasNext, e.verdict.nextAllowed) }},
		{"next_delay_s", "REAL", "Delay that the version that follows asks for; 0: none.", func(s *Study, e *event) any { return e.verdict.nextDelay.Seconds() }},
		{"session", "INTEGER", "Number of the session of this agent, site and network.", func(s *Study, e *event) any { return int64(e.actor.sessionNumber) }},
		{"out_of_order", "INTEGER", "1: the time of the line is before that of a line before it.", func(s *Study, e *event) any { return flag(e.OutOfOrder) }},
		{"source", "TEXT", "File.", func(s *Study, e *event) any { return e.Source }},
		{"source_line", "INTEGER", "Line in the file.", func(s *Study, e *event) any { return e.Line }},
	}
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// flagIf returns 1 or 0; -1 of what is not known.
func flagIf(is, b bool) int64 {
	if !is {
		return -1
	}
	return flag(b)
}

// ageCell returns a time in seconds; -1 of what is not known.
func ageCell(d time.Duration) float64 {
	if d < 0 {
		return -1
	}
	return float64(d/time.Microsecond) / 1e6
}

func (s *Study) redacted(text string) string {
	text, _ = s.Privacy.Redact(text)
	return text
}

// write passes a request on as a row.
func (s *Study) write(e *event) error {
	s.row = s.row[:0]
	for i := range s.columns {
		s.row = append(s.row, s.columns[i].value(s, e))
	}
	if err := s.Rows(s.row...); err != nil {
		return fmt.Errorf("the requests cannot be written: %w", err)
	}
	return nil
}
