package store

import (
	"embed"
	"fmt"
	"strings"

	"heed/internal/reason"
)

//go:embed tables
var tableQueries embed.FS

// Table returns the rows of one of the tables for papers (record, requests,
// rules, coverage, policies, hours or outcomes) about the decisions that filter
// selects, with the head of the chain at a commit, and the query, which returns the
// same table in any SQLite.
func (r *Reader) Table(name string, filter *Filter, commit int64) (rows *Rows, query string, err error) {
	text, err := tableQueries.ReadFile("tables/" + name + ".sql")
	if err != nil {
		return nil, "", err
	}
	query = strings.NewReplacer("{{chosen}}", filter.condition(), "{{counted}}", filter.counted(), "{{head}}", fmt.Sprintf("n = %d", commit)).Replace(reason.InSQL(string(text)))
	rows, err = r.viewRows(query)
	if r.begin != "" { // decisions are left out, in the views of the query too
		query = r.begin + tempViews + query
	}
	return rows, query, err
}
