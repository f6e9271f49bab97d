package store

import (
	"strconv"
	"strings"

	"heed/internal/audit"
)

// Counted is a number of requests that are not recorded one by one.
type Counted struct {
	ID     int64
	Count  int64
	Exempt bool       // of exempt clients; else they could not be recorded
	Gap    *audit.Gap // in which they were refused; nil: they were not
}

// Counted calls row with every number of requests in the window of filter.
func (r *Reader) Counted(filter *Filter, row func(*Counted)) error {
	return r.each("SELECT id, count, why IS NULL, why FROM exempt WHERE "+filter.counted(), func(f *fields) error {
		n := &Counted{ID: f.integer(), Count: f.integer(), Exempt: f.flag()}
		if g, ok := audit.ParseGap(f.text(), n.Count); ok {
			n.Gap = &g
		}
		row(n)
		return nil
	})
}

// counted returns the condition on the table exempt. The time of a gap is its end, and its
// beginning is in the text (audit.Gap): it is in the window when a part of it is.
func (f *Filter) counted() string {
	where := append((&Filter{From: f.From}).window(), "TRUE")
	if !f.To.IsZero() {
		where = append(where, "coalesce(1000000 * strftime('%s', substr(why, 14, 27)), time) < "+strconv.FormatInt(f.To.UnixMicro(), 10))
	}
	return strings.Join(where, " AND ")
}
