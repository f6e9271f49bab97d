package store

import (
	"embed"
	"fmt"
	"strings"

	"heed/internal/audit"
	"heed/internal/reason"
)

//go:embed tables
var tableQueries embed.FS

// Table returns the rows of one of the tables for papers (record, requests,
// rules, coverage, policies, hours, outcomes or purposes) about the decisions that filter
// selects, with the head of the chain at a commit, and the query, which returns the
// same table in any SQLite.
func (r *Reader) Table(name string, filter *Filter, commit int64) (rows *Rows, query string, err error) {
	text, err := tableQueries.ReadFile("tables/" + name + ".sql")
	if err != nil {
		return nil, "", err
	}
	query = strings.NewReplacer("{{chosen}}", filter.Condition(), "{{counted}}", filter.Counted(), "{{head}}", fmt.Sprintf("n = %d", commit)).Replace(reason.InSQL(string(text)))
	rows, err = r.viewRows(query)
	if r.begin != "" { // decisions are left out, in the views of the query too
		query = r.begin + tempViews + query
	}
	return rows, query, err
}

// Counted is a number of requests that are not recorded one by one.
type Counted struct {
	ID     int64
	Count  int64
	Exempt bool       // of exempt clients; else they could not be recorded
	Gap    *audit.Gap // in which they were refused; nil: they were not
}

// Counted calls row with every number of requests in the window of filter.
func (r *Reader) Counted(filter *Filter, row func(*Counted)) error {
	return r.each("SELECT id, count, why IS NULL, why FROM exempt WHERE "+filter.Counted(), func(f *fields) error {
		n := &Counted{ID: f.integer(), Count: f.integer(), Exempt: f.flag()}
		if g, ok := audit.ParseGap(f.text(), n.Count); ok {
			n.Gap = &g
		}
		row(n)
		return nil
	})
}
