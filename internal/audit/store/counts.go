package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/base/memo"
	"heed/internal/judge/reason"
)

// countPeriod is the length of the periods in the table counts, in microseconds, and second
// the unit of their column last.
const (
	countPeriod = int64(15 * time.Minute / time.Microsecond)
	second      = int64(time.Second / time.Microsecond)
)

// counted is the first layout with the table counts.
const counted layout = 3

// countsOf returns a query for the rows of counts that the decisions of a condition make,
// with their requests multiplied by a factor. Decisions that are revised make none, as in
// the view standing.
func countsOf(factor int, condition string) string {
	return reason.InSQL(fmt.Sprintf("SELECT time / %d, asker, coalesce(site, 0), coalesce(late, ground), {{failed}}, %d * count(*), max(time) %% %[1]d / %[4]d"+
		" FROM entry LEFT JOIN outcome ON entry = seq WHERE %[3]s AND NOT EXISTS (SELECT 1 FROM entry AS later WHERE later.revises = entry.id) GROUP BY 1, 2, 3, 4, 5", countPeriod, factor, condition, second))
}

// addCounts is a statement that adds rows to counts.
const addCounts = "INSERT INTO counts %s ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, last = max(last, excluded.last)"

// count adds what the decisions of a condition make to counts; with the factor -1 it
// subtracts that.
func (c *conn) count(factor int, condition string) error {
	_, err := c.Exec(fmt.Sprintf(addCounts, countsOf(factor, condition)))
	return err
}

// tally is what the rows of a commit change in counts.
type tally struct {
	changed []int64                // entry.seq of those that failed, have a late verdict or are revised, old and new
	added   map[countKey]*countSum // all other new ones: to count them here costs a fraction of a query
}

// countKey identifies a row of counts of requests that have not failed.
type countKey struct{ period, asker, site, ground int64 }

type countSum struct{ requests, last int64 }

// tallyOf returns the tally of the rows of a commit that are not in b yet.
func tallyOf(b *database, all *[len(tables)][]row) (*tally, error) {
	t, revised := &tally{added: map[countKey]*countSum{}}, map[string]bool{}
	if b.layout < counted {
		return t, nil
	}
	var v []value
	for _, row := range all[outcomeTable] {
		v = row.values(v, 10)
		if late := v[9].number; late != 0 || v[3].number == 0 && reason.FailedStatus(int(v[2].number)) {
			t.changed = append(t.changed, row.id)
		}
	}
	entries := all[entryTable]
	for _, row := range entries {
		v = row.values(v, 18)
		if t.add(v, 1); v[17].octets != nil {
			revised[string(v[17].octets)] = true
		}
	}
	if len(revised) > 0 {
		if err := t.find(b, revised, entries); err != nil {
			return nil, err
		}
	}
	slices.Sort(t.changed)
	t.changed = slices.Compact(t.changed)
	for _, id := range t.changed {
		if at := id - b.head.last[entryTable] - 1; at >= 0 && at < int64(len(entries)) { // it is new
			t.add(entries[at].values(v, 18), -1)
		}
	}
	return t, nil
}

// add adds n requests with the values of an entry.
func (t *tally) add(v []value, n int64) {
	c := memo.At(t.added, countKey{v[2].number / countPeriod, v[4].number, v[6].number, v[7].number})
	c.requests, c.last = c.requests+n, max(c.last, v[2].number%countPeriod/second)
}

// values returns the first n values of the row, in the memory of v.
func (r row) values(v []value, n int) []value {
	v = v[:0]
	for rest := r.octets[1:]; len(v) < n; {
		next, size := cutValue(rest)
		v, rest = append(v, next), rest[size:]
	}
	return v
}

// find adds the decisions with the ids to t.changed: of the new rows, and of the record.
// It looks for the latter from the time in the first id on, and for those that it does not
// find then in all of the record, since clocks are set.
func (t *tally) find(b *database, ids map[string]bool, rows []row) error {
	var v []value
	for _, row := range rows {
		if v = row.values(v, 2); ids[string(v[1].octets)] {
			t.changed = append(t.changed, row.id)
			delete(ids, string(v[1].octets))
		}
	}
	first, list := time.UnixMicro(b.head.time), []string{}
	for id := range ids {
		list = append(list, fmt.Sprintf("x'%x'", id))
		if at, ok := audit.TimeOf([]byte(id)); ok && at.Before(first) {
			first = at
		}
	}
	from, err := b.SeqAt(first)
	for _, from := range []int64{from, 0} {
		if err == nil && len(ids) > 0 {
			err = b.each(fmt.Sprintf("SELECT seq, id FROM entry WHERE seq >= %d AND id IN (%s)", from, strings.Join(list, ", ")), func(f *fields) {
				t.changed = append(t.changed, f.integer())
				delete(ids, string(f.octets()))
			})
		}
	}
	return err
}

// condition selects the decisions in changed.
func (t *tally) condition() string {
	return "seq IN (" + joined(t.changed) + ")"
}

// joined returns numbers with commas between them.
func joined(all []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
}

// apply adds t to the counts of b, which has its rows now.
func (t *tally) apply(b *database) (err error) {
	if len(t.changed) > 0 {
		err = b.count(1, t.condition())
	}
	for k, n := range t.added {
		if err == nil && n.requests > 0 {
			err = k.add(b, n)
		}
	}
	return err
}

// add adds n to the row of counts.
func (k *countKey) add(b *database, n *countSum) error {
	if b.counting == nil {
		prepared, err := b.Prepare(fmt.Sprintf(addCounts, "VALUES (?, ?, ?, ?, 0, ?, ?)"))
		if err != nil {
			return err
		}
		b.counting = prepared.(execStmt)
	}
	var named [6]driver.NamedValue
	for i, v := range []int64{k.period, k.asker, k.site, k.ground, n.requests, n.last} {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	_, err := b.counting.ExecContext(b.Context, named[:])
	return err
}

// recount counts all decisions of the record at path again, and returns a *Damage when counts has
// other numbers. A
// decision that a later one replaces, or that failed after it was counted, has left its row and
// its time there: a row has a decision that was counted in it once, and a last time that is not
// after theirs. That does not hold in a period of which decisions were removed.
func recount(ctx context.Context, path string) error {
	c, err := view(path)
	if err != nil {
		return err
	}
	defer c.Close()
	if c.layout < counted {
		return nil
	}
	c.Within(ctx)
	if _, err := c.Exec("BEGIN"); err != nil {
		return err
	}
	s, err := c.stub()
	if err != nil {
		return err
	}
	query := reason.InSQL(fmt.Sprintf(`WITH d AS NOT MATERIALIZED (SELECT time / %d AS period, asker, coalesce(site, 0) AS site, ground AS earlier, coalesce(late, ground) AS ground,
{{failed}} AS failed, time %% %[1]d / %[2]d AS at, id NOT IN (SELECT revises FROM entry NOT INDEXED WHERE revises IS NOT NULL) AS stands FROM entry LEFT JOIN outcome ON entry = seq)
SELECT period FROM (SELECT *, 0 AS least, -1 AS most FROM counts
UNION ALL SELECT period, asker, site, ground, failed, -sum(stands), 0, max(stands * at), max(at) FROM d GROUP BY 1, 2, 3, 4, 5
UNION ALL SELECT period, asker, site, earlier, 0, 0, 0, 0, at FROM d WHERE failed OR earlier <> ground)
GROUP BY period, asker, site, ground, failed HAVING sum(requests) <> 0 OR max(last) < max(least) OR max(last) > 899 OR max(last) > max(most) AND period > %d LIMIT 1`, countPeriod, second, micro(s.Removed.To)/countPeriod))
	return c.each(query, func(f *fields) {
		f.fail(&Damage{Table: "counts", What: "the requests from " + moment(f.integer()*countPeriod).Format(time.RFC3339) + " on are not as many as it says",
			Means: "All decisions are as they were written. The dashboard shows numbers that were changed by something else than heed."})
	})
}
