package store

import (
	"fmt"
	"strings"
	"time"

	"heed/internal/audit/store/filter"
	"heed/internal/reason"
)

// Filter, Search and Address select decisions.
type (
	Filter  = filter.Filter
	Search  = filter.Search
	Address = filter.Address
)

// Latest calls row with the last decisions that s selects, at most limit, the last one
// first, until row returns an error. With Oldest these are the first ones, the first one
// first.
func (r *Reader) Latest(s *Search, limit int, row func(*Entry) error) error {
	order := "DESC"
	if s.Oldest {
		order = "ASC"
	}
	return r.entries(s.Condition()+fmt.Sprintf(" ORDER BY seq %s LIMIT %d", order, limit), row)
}

// Range returns the first and the last entry.seq of the decisions. Last is less than first
// when there are none.
func (r *Reader) Range() (first, last int64, err error) {
	err = r.each("SELECT coalesce((SELECT seq FROM entry ORDER BY seq LIMIT 1), 1), coalesce((SELECT seq FROM entry ORDER BY seq DESC LIMIT 1), 0)", func(f *fields) error {
		first, last = f.integer(), f.integer()
		return nil
	})
	return first, last, err
}

// clockSlack is how much earlier than its predecessor a decision may be: clocks are set,
// and decisions of one moment are recorded in any order.
const clockSlack = time.Minute

// SeqAt returns an entry.seq before the decisions from t on, found by bisection: a record
// has no index of times. It is at most clockSlack of decisions too early; the
// decisions before it are later than t only where the clock was set back by more than that.
func (r *Reader) SeqAt(t time.Time) (int64, error) {
	from, to, err := r.Range()
	if err != nil {
		return 0, err
	}
	at := t.Add(-clockSlack).UnixMicro()
	for to++; from < to; {
		middle := from + (to-from)/2
		next, late := to, true
		err := r.each(fmt.Sprintf("SELECT seq, time >= %d FROM entry WHERE seq >= %d ORDER BY seq LIMIT 1", at, middle), func(f *fields) error {
			next, late = f.integer(), f.flag()
			return nil
		})
		switch {
		case err != nil:
			return 0, err
		case late:
			to = middle
		default:
			from = next + 1
		}
	}
	return from, nil
}

// Total is a number of requests that have the same client, site, last verdict and period.
type Total struct {
	Client, Site, Basis int64 // ids, as in Entry; Client and Site are 0 with a period
	Period              int64 // its beginning in microseconds since 1970; 0: without periods
	Failed              bool  // heed answered with an error (reason.FailedStatus)
	Requests            int64
	First, Last         int64 // microseconds since 1970
}

// Revised returns the ids of the decisions that those from seq first to last replace.
func (r *Reader) Revised(first, last int64) (ids [][]byte, err error) {
	err = r.each(fmt.Sprintf("SELECT revises FROM entry WHERE seq BETWEEN %d AND %d AND revises IS NOT NULL", first, last), func(f *fields) error {
		ids = append(ids, f.octets())
		return nil
	})
	return ids, err
}

// Totals calls row with the numbers of requests that filter selects: by client, site and
// basis, or when period is not zero, by period and basis. Only the window and First and
// Last of the filter apply. The decisions in revised are left out, since later ones replace
// them; with nil, all such decisions are looked for.
func (r *Reader) Totals(filter *Filter, period time.Duration, revised [][]byte, row func(*Total)) error {
	by := "asker, coalesce(site, 0), 0"
	if period > 0 {
		by = fmt.Sprintf("0, 0, time - time %% %d", period.Microseconds())
	}
	without := fmt.Sprintf("SELECT revises FROM main.entry WHERE revises IS NOT NULL AND seq >= %d", filter.First)
	if revised != nil {
		ids := make([]string, len(revised))
		for i, id := range revised {
			ids[i] = fmt.Sprintf("x'%x'", id)
		}
		without = strings.Join(ids, ", ")
	}
	where := (&Filter{From: filter.From, To: filter.To, First: filter.First, Last: filter.Last}).Condition()
	query := "SELECT " + by + ", coalesce(late, ground), " + reason.InSQL("{{failed}}") +
		", count(*), min(time), max(time) FROM entry LEFT JOIN outcome ON entry = seq WHERE " + where + " AND id NOT IN (" + without + ") GROUP BY 1, 2, 3, 4, 5"
	return r.each(query, func(f *fields) error {
		t := Total{Client: f.integer(), Site: f.integer(), Period: f.integer(), Basis: f.integer(), Failed: f.flag()}
		t.Requests, t.First, t.Last = f.integer(), f.integer(), f.integer()
		row(&t)
		return nil
	})
}
