package report

import (
	_ "embed" // conduct.sql
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"heed/internal/audit/store"
	"heed/internal/base/safetext"
	"heed/internal/judge/reason"
)

//go:embed conduct.sql
var conductQuery string

type rollup struct{ name, by, of string }

// rollups are the queries behind the lists of a report, by their names in JSON: what the numbers
// of the table request are added up by, and of which of its rows.
var rollups = []rollup{
	{"total", "'all'", "request c"},
	{"agents", "agent", "request c"},
	{"agents, clients", "agent, address", "request c"},
	{"sites", "site", "request c"},
	{"sites, agents", "site, agent", "request c"},
	{"reasons", "judged, verdict, reason", "request c"},
	{"refusals, not_judged, exceptions, and the rows of --csv", `agent, site, judged, verdict, reason, "group", rule, line, exception`, "request c"},
	{"unreachable", "site, policy", "request c WHERE policy IN ('unreachable', 'stale')"},
	{"use, purposes", "purpose", `(SELECT c.*, value AS purpose FROM request c, json_each(coalesce(purposes, '["` + notStated + `"]'))
    WHERE judged = 'path' AND under_policy AND (verdict = 'allow' OR reason IN ('signal', 'licence')) AND (purposes IS NOT NULL OR signals IS NOT NULL)) c`},
	{"use, site_answers", "site, site_answer", "request c WHERE site_answer IS NOT NULL"},
}

// agents are the agents of Query.By, as expressions on the table asker.
var agents = map[string]string{
	ByAgent:   string(store.ByAgent),
	ByAddress: "coalesce(nullif(a.client, ''), '(no address)')",
	ByUser:    "coalesce(nullif(a.user, ''), '(no user)')",
}

// sums are the columns of Counts.
var sums = reason.InSQL(`count(DISTINCT agent) AS agents, count(DISTINCT site) AS sites,
    count(*) AS requests,
    sum(judged <> 'no' AND verdict = 'allow') AS allowed,
    sum(judged <> 'no' AND verdict = 'refuse') AS refused,
    sum(judged <> 'no' AND verdict = 'would-refuse') AS would_refuse,
    sum(judged = 'no') AS not_judged,
    sum(judged = 'host') AS by_host,
    sum(coalesce(from_site = 1 AND status IN (401, 403, 429, 451, 503), 0)) AS site_refused,
    sum(status IS NULL) AS unknown,
    coalesce(sum(bytes_out), 0) AS bytes,
    coalesce(sum(bytes_in), 0) AS bytes_in,
    sum(waited >= 10000) AS waited,
    sum(iif(waited >= 10000, waited, 0)) / 1000000.0 AS waited_s,
    sum(iif(waited >= 10000, turn, 0)) / 1000000.0 AS turns_s,
    max(iif(waited >= 10000, waited, 0)) / 1000000.0 AS waited_longest_s,
    ` + stampSQL("min(time)") + ` AS first,
    ` + stampSQL("max(time)") + ` AS last,
    {{classes}}`)

// stampSQL returns an expression for a time as microStamp writes it.
func stampSQL(micros string) string {
	return fmt.Sprintf("strftime('%%Y-%%m-%%dT%%H:%%M:%%S', %s / 1000000, 'unixepoch') || printf('.%%06dZ', %[1]s %% 1000000)", micros)
}

// WriteSQL writes the query behind each list of a report of records, for SQLite's shell.
func WriteSQL(out io.Writer, r *Report, records []*store.Record) error {
	file := "-readonly " + safetext.Visible(r.Records[0].Name)
	if len(r.Records) > 1 {
		file = "''" // they are attached
	}
	lists := rollups
	if len(r.Periods) > 0 {
		period := fmt.Sprintf("(%[1]d + (time - %[1]d) / %[2]d * %[2]d)", r.Periods[0].From.UnixMicro(), int64(math.Round(r.PeriodSeconds*1e6)))
		lists = append(slices.Clip(lists), rollup{"periods", `"from"`, "(SELECT c.*, " + stampSQL(period) + ` AS "from" FROM request c) c`})
	}
	var b strings.Builder
	fmt.Fprintf(&b, sqlHead, file, store.Script(records, &r.Query.Filter, agents[r.By]))
	for _, list := range lists {
		fmt.Fprintf(&b, "\n-- %s\nSELECT %s,\n    %s\nFROM %s\nGROUP BY %[2]s\nORDER BY requests DESC, %[2]s;\n", list.name, list.by, sums, list.of)
	}
	b.WriteString("\n-- conduct\n" + conductQuery)
	_, err := io.WriteString(out, b.String())
	return err
}

// sqlHead begins the output of WriteSQL; with the end of a command and the tables.
const sqlHead = `-- The queries behind the numbers of heed audit report, for SQLite's shell: sqlite3 %s
-- Each is named as its list in --json. No query has what heed reads from texts: use.refusals and the
-- categories of use.purposes from the statements in "signals", and from the robots.txt a delay that
-- a decision does not note.

%s
-- exempt, unrecorded, gaps, robots_asked_as_clients, clock_went_back
SELECT what, sum(count) AS requests FROM (SELECT DISTINCT record, id, what, count FROM uncounted) GROUP BY what ORDER BY what;
`
