package store

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/rules"
)

// Search is a Filter with what needs the outcome of an exchange, too. The zero Search selects all.
type Search struct {
	Filter
	Text   string       // a part of the URL or, in any case, of the User-Agent; empty: all
	Reason string       // of the decision; empty: all
	Class  reason.Class // with ByClass
	// ByClass selects the decisions that are counted as Class, by their last verdict.
	ByClass bool
}

// Condition returns s as an SQL condition on entry and outcome, joined.
func (s *Search) Condition() string {
	all := []string{s.Filter.Condition()}
	if s.Reason != "" {
		all = append(all, fmt.Sprintf("ground IN (SELECT id FROM ground WHERE reason = %s)", literal(s.Reason)))
	}
	if s.ByClass {
		of := func(failed string) string {
			class := strings.ReplaceAll(reason.InSQL("{{class}}"), "c.failed", failed)
			return fmt.Sprintf("coalesce(late, ground) IN (SELECT g.id FROM ground g WHERE %s = %s)", class, literal(s.Class.String()))
		}
		all = append(all, fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", reason.InSQL("{{failed}}"), of("1"), of("0")))
	}
	if s.Text != "" {
		all = append(all, s.text())
	}
	return strings.Join(all, " AND ")
}

// text returns the condition that Text makes.
func (s *Search) text() string {
	text := literal(s.Text)
	found := []string{
		fmt.Sprintf("instr(target, x'%x') > 0", s.Text),
		fmt.Sprintf("site IN (SELECT id FROM site WHERE instr(host, lower(%s)) > 0)", text),
		fmt.Sprintf("asker IN (SELECT id FROM asker WHERE instr(lower(user_agent), lower(%s)) > 0)", text),
	}
	return "(" + strings.Join(found, " OR ") + ")"
}

// Latest calls row with the last decisions that s selects, at most limit, the last one
// first, until row returns an error.
func (r *Reader) Latest(s *Search, limit int, row func(*Entry) error) error {
	return r.entries(s.Condition()+fmt.Sprintf(" ORDER BY seq DESC LIMIT %d", limit), row)
}

// TimeFrom returns the time of the first decision from an entry.seq on.
func (r *Reader) TimeFrom(seq int64) (t time.Time, err error) {
	err = r.row(fmt.Sprintf("SELECT time FROM entry WHERE seq >= %d ORDER BY seq LIMIT 1", seq), &t)
	return t, err
}

// Range returns the first and the last entry.seq of the decisions. Last is less than first
// when there are none.
func (c *conn) Range() (first, last int64, err error) {
	err = c.row("SELECT coalesce((SELECT seq FROM entry ORDER BY seq LIMIT 1), 1), coalesce((SELECT seq FROM entry ORDER BY seq DESC LIMIT 1), 0)", &first, &last)
	return first, last, err
}

// clockSlack is how much later than the commit that covers it a decision may be: the clock may
// be set back between the two.
const clockSlack = time.Minute

// SeqAt returns an entry.seq before all decisions from t on, at most clockSlack of decisions and
// those of one commit too early. It is found by bisection of the commits: none has an earlier
// time than the one before it, whatever becomes of the clock.
func (c *conn) SeqAt(t time.Time) (seq int64, err error) {
	var from, to, when int64
	err = c.row("SELECT coalesce((SELECT min(n) FROM commits), 1), coalesce((SELECT max(n) FROM commits), 0)", &from, &to) // one alone takes no scan
	for to++; from < to && err == nil; {
		middle := from + (to-from)/2
		if err = c.row(fmt.Sprintf("SELECT time FROM commits WHERE n = %d", middle), &when); when < t.Add(-clockSlack).UnixMicro() {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if err == nil {
		seq, err = c.integer(fmt.Sprintf("SELECT 1 + coalesce((SELECT entry FROM commits WHERE n < %d ORDER BY n DESC LIMIT 1), (SELECT seq - 1 FROM entry ORDER BY seq LIMIT 1), 0)", from))
	}
	return seq, err
}

// RecordedWithin is how much later than its time a decision may have been recorded, to be found
// without reading the whole record.
const RecordedWithin = 5 * time.Minute

// NearFirst returns the filters to search with, one after another until a decision is found: when
// f selects a single id of version 7, first the part of the record in which it is expected by
// the time in that id, since a record has no index of ids; then f.
func (c *conn) NearFirst(f *Filter) ([]*Filter, error) {
	at, ok := audit.TimeOf(f.IDs[0])
	if !ok || !bytes.Equal(f.IDs[0], f.IDs[1]) {
		return []*Filter{f}, nil
	}
	near := *f
	var err error
	if near.First, err = c.SeqAt(at); err == nil {
		near.Last, err = c.SeqAt(at.Add(RecordedWithin))
	}
	return []*Filter{&near, f}, err
}

// since returns a condition on the table entry that leaves out decisions before f.From without a
// look at their times.
func (r *Reader) since(f *Filter) string {
	if seq, err := r.SeqAt(f.From); err == nil && !f.From.IsZero() {
		return fmt.Sprintf("seq >= %d", seq)
	}
	return "TRUE"
}

// Recent counts the requests since a time, from at most about most rows of counts, for Ranked.
// It returns the beginning of the first period counted, whether that is the one of the time, and
// the number of requests.
func (r *Reader) Recent(from time.Time, most int) (since time.Time, all bool, requests int64, err error) {
	first := micro(from) / countPeriod
	at, err := r.integer(fmt.Sprintf("SELECT period FROM counts WHERE period >= %d ORDER BY period DESC LIMIT 1 OFFSET %d", first, most))
	if err == nil {
		_, err = r.Exec(fmt.Sprintf("DROP TABLE IF EXISTS temp.recent; CREATE TEMP TABLE recent AS "+recentCounts, max(first, at)))
	}
	if err == nil {
		requests, err = r.integer("SELECT coalesce(sum(requests), 0) FROM recent")
	}
	return moment(max(first, at) * countPeriod), at <= first, requests, err
}

// recentCounts is a query for the requests since a period, each row with all of its client.
var recentCounts = reason.InSQL(`SELECT c.*, {{class}} AS class
FROM (SELECT asker, site, ground, failed, sum(requests) AS requests, max(period * 900 + last) AS last, sum(sum(requests)) OVER (PARTITION BY asker) AS of_client
    FROM counts WHERE period >= %d GROUP BY asker, site, ground, failed) c JOIN ground g ON g.id = c.ground`)

// Ranking is what requests have in common in a list, as columns of SQL.
type Ranking string

// The rankings. A client is one by its name, that of its user, or its address, in one mode and
// judged under the same names; ByRule has what refused, and rules that allowed.
const (
	BySite   Ranking = "s.scheme, s.host, s.port" // each run has its own rows of sites
	ByAgent  Ranking = "coalesce(nullif(a.client_name, 'run'), (SELECT group_concat(value, ', ') FROM json_each(a.tokens)), '(no name)')"
	ByRule   Ranking = "s.scheme, s.host, s.port, g.reason, g.rule, g.line, c.class"
	ByClient Ranking = "coalesce(nullif(a.client_name, 'run'), a.user, a.client), a.mode, iif(nullif(a.client_name, 'run') IS NULL, a.tokens, NULL)"
)

// Ranked is requests that have in common what its Ranking says, and of other columns those of one.
type Ranked struct {
	Site    rules.Origin // zero: no host was learnt
	Agent   string
	Reason  string
	Rule    string // empty: none decided
	Line    int
	Client  int64     // with the most requests
	Others  int64     // addresses with User-Agents of its clients, beside its own
	Last    time.Time // of whole seconds
	All     int       // how long the list is without its bound
	Classes reason.Counts
}

// Ranked calls row with the requests that Recent counted, those with the most first, at most most.
func (r *Reader) Ranked(by Ranking, most int, row func(*Ranked)) error {
	query := strings.NewReplacer("{{by}}", string(by), "{{agent}}", string(ByAgent)).Replace(`SELECT s.scheme, s.host, s.port, {{agent}}, g.reason, g.rule, g.line,
    4294967295 - max(of_client * 4294967296 + 4294967295 - c.asker) % 4294967296, count(DISTINCT a.client || ' ' || coalesce(a.user_agent, '')) - 1, 1000000 * max(c.last), count(*) OVER (), ` + classColumns + `
FROM recent c JOIN asker a ON a.id = c.asker JOIN ground g ON g.id = c.ground LEFT JOIN site s ON s.id = c.site
WHERE of_client > 0 GROUP BY {{by}} HAVING sum(c.requests) > 0 ORDER BY sum(c.requests) DESC, {{by}}`)
	if by == ByRule {
		query = strings.Replace(query, "WHERE", "WHERE (g.rule IS NOT NULL OR c.class <> 'allowed') AND", 1)
	}
	return r.each(query+fmt.Sprint(" LIMIT ", most), func(f *fields) {
		row(&Ranked{f.origin(), f.text(), f.text(), f.text(), int(f.integer()), f.integer(), f.integer(), f.time(), int(f.integer()), f.classes()})
	})
}

// classColumns are the requests of each class, of rows with the columns requests and class.
var classColumns = func() string {
	var all []string
	for _, c := range reason.Classes() {
		all = append(all, fmt.Sprintf("sum(iif(c.class = '%s', c.requests, 0))", c))
	}
	return strings.Join(all, ", ")
}()

// classes returns the values of classColumns as the numbers of each class.
func (f *fields) classes() (n reason.Counts) {
	for _, c := range reason.Classes() {
		n[c] = f.integer()
	}
	return n
}

// CountsBefore calls row with the requests since a time that were recorded before the last
// heed began to write to the record, by the beginning of their period in microseconds since 1970.
// Their clients have lower ids than those of its first decision.
func (r *Reader) CountsBefore(from time.Time, row func(period int64, classes reason.Counts)) error {
	var run, began, client int64
	err := r.row("SELECT id, time FROM run WHERE time = (SELECT time FROM run ORDER BY id DESC LIMIT 1) ORDER BY id LIMIT 1", &run, &began)
	if err != nil {
		return err
	}
	seq, err := r.SeqAt(moment(began))
	if err == nil {
		client, err = r.integer(fmt.Sprintf("SELECT coalesce((SELECT asker FROM entry WHERE seq >= %d AND run >= %d ORDER BY seq LIMIT 1), %d)", seq, run, end))
	}
	if err != nil {
		return err
	}
	query := reason.InSQL("SELECT period, " + classColumns + " FROM (SELECT c.*, {{class}} AS class FROM counts c JOIN ground g ON g.id = c.ground WHERE period >= %d AND asker < %d) c GROUP BY 1")
	return r.each(fmt.Sprintf(query, micro(from)/countPeriod, client), func(f *fields) { row(f.integer()*countPeriod, f.classes()) })
}
