package store

import (
	"fmt"
	"strings"
	"time"

	"heed/internal/reason"
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

// clockSlack is how much earlier than its predecessor a decision may be: clocks are set,
// and decisions of one moment are recorded in any order.
const clockSlack = time.Minute

// SeqAt returns an entry.seq before the decisions from t on, found by bisection: a record
// has no index of times. It is at most clockSlack of decisions too early; the
// decisions before it are later than t only where the clock was set back by more than that.
func (c *conn) SeqAt(t time.Time) (int64, error) {
	from, to, err := c.Range()
	if err != nil {
		return 0, err
	}
	at := t.Add(-clockSlack).UnixMicro()
	for to++; from < to; {
		middle := from + (to-from)/2
		next, when := to, at
		if err := c.row(fmt.Sprintf("SELECT seq, time FROM entry WHERE seq >= %d ORDER BY seq LIMIT 1", middle), &next, &when); err != nil {
			return 0, err
		}
		if when >= at {
			to = middle
		} else {
			from = next + 1
		}
	}
	return from, nil
}

// Total is a number of requests of the same client, site, verdict, reason and rule, or of
// the same period, verdict and reason.
type Total struct {
	Client, Site int64   // ids, as in Entry; 0 with a period
	Period       int64   // its beginning in microseconds since 1970; else 0
	Verdict      Verdict // the last one, without group and token
	Failed       bool    // heed answered with an error (reason.FailedStatus)
	Requests     int64   // 0: all have got another verdict
	Last         int64   // microseconds since 1970, of whole seconds
}

// Totals calls row with the requests since a time, by client and site, from at most about
// most rows of counts. It returns the beginning of the first period counted, and whether
// that is the one of the time.
func (r *Reader) Totals(from time.Time, most int, row func(*Total)) (since time.Time, all bool, err error) {
	first := micro(from) / countPeriod
	at, err := r.integer(fmt.Sprintf("SELECT period FROM counts WHERE period >= %d ORDER BY period DESC LIMIT 1 OFFSET %d", first, most))
	if err == nil {
		err = r.totals("asker, site, 0, verdict, reason, rule, line", fmt.Sprintf("period >= %d", max(first, at)), row)
	}
	return moment(max(first, at) * countPeriod), at <= first, err
}

// TotalsBefore calls row with the requests since a time that were recorded before the last
// heed began to write to the record, by period. Their clients have lower ids than those of
// its first decision.
func (r *Reader) TotalsBefore(from time.Time, row func(*Total)) error {
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
	return r.totals("0, 0, period, verdict, reason, NULL, NULL", fmt.Sprintf("period >= %d AND asker < %d", micro(from)/countPeriod, client), row)
}

// totals calls row with the rows of counts of a condition, added up by columns.
func (r *Reader) totals(columns, condition string, row func(*Total)) error {
	return r.each("SELECT "+columns+", failed, sum(requests), max(period * 900 + last) * 1000000 FROM counts JOIN ground ON id = ground WHERE "+condition+" GROUP BY 1, 2, 3, 4, 5, 6, 7, 8", func(f *fields) {
		t := Total{Client: f.integer(), Site: f.integer(), Period: f.integer() * countPeriod}
		t.Verdict = Verdict{Verdict: f.text(), Reason: f.text(), Rule: f.text(), Line: int(f.integer())}
		t.Failed, t.Requests, t.Last = f.flag(), f.integer(), f.integer()
		row(&t)
	})
}
