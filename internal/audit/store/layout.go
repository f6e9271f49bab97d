package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// about reads what the file says it is.
func (v *verifier) about() (pairs [][2]string, err error) {
	err = v.query("SELECT key, value FROM about ORDER BY key", func(values []driver.Value) error {
		key, isText := values[0].(string)
		value, isToo := values[1].(string)
		if !isText || !isToo {
			return &Damage{Table: "about", What: isStrange, Means: "The file was changed by something else than heed."}
		}
		pairs = append(pairs, [2]string{key, value})
		switch key {
		case "store":
			v.proof.Store, v.proof.Head.Store = value, value
		case "created":
			v.proof.Created = value
		}
		return nil
	})
	return pairs, err
}

// layout holds the tables against the schema. Whatever else could change what
// ordinary tools read (a trigger, an index that is not true) is damage; views
// are no part of the record, but a false one is worth a word.
func (v *verifier) layout() error {
	want, err := written()
	if err != nil {
		return err
	}
	have := map[string]string{}
	if err := v.query("SELECT type, name, sql FROM sqlite_schema ORDER BY rowid", objects(have)); err != nil {
		return err
	}
	for _, name := range allNames(have, want) {
		if have[name] == want[name] || strings.HasPrefix(name, "table sqlite_stat") { // ANALYZE makes these
			continue
		}
		what := fmt.Sprintf("the %s is not the one that heed made", name)
		if want[name] == "" {
			what = fmt.Sprintf("heed made no %s", name)
		}
		if have[name] == "" {
			what = fmt.Sprintf("the %s is missing", name)
		}
		if isView(name) {
			v.proof.Remarks = append(v.proof.Remarks, what+": what it shows is not what this heed would show")
			continue
		}
		return &Damage{What: what, Means: "The layout of the file was changed by something else than heed, and ordinary tools may read in it what was never recorded."}
	}
	return nil
}

func isView(name string) bool { return strings.HasPrefix(name, "view ") }

// allNames returns the names of both, sorted.
func allNames(a, b map[string]string) []string {
	var all []string
	for _, m := range []map[string]string{a, b} {
		for name := range m {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// objects gathers the rows of sqlite_schema by type and name.
func objects(in map[string]string) func([]driver.Value) error {
	return func(values []driver.Value) error {
		sql, _ := values[2].(string)
		in[fmt.Sprintf("%s %s", values[0], values[1])] = bareSQL(sql)
		return nil
	}
}

// written returns what the schema and the views make.
func written() (map[string]string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // another connection would be another database
	if _, err := db.Exec(schema + views); err != nil {
		return nil, err
	}
	want := map[string]string{}
	return want, read(context.Background(), db, func(r reader) error {
		return r.query("SELECT type, name, sql FROM sqlite_schema", objects(want))
	})
}

var (
	comments = regexp.MustCompile(`--[^\n]*`)
	spaces   = regexp.MustCompile(`\s+`)
)

// bareSQL is a statement without comments: they may differ between versions.
func bareSQL(text string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(comments.ReplaceAllString(text, ""), " "))
}

// pages has SQLite hold the pages of the file against each other.
func (v *verifier) pages() error {
	return v.query("PRAGMA quick_check(1)", func(values []driver.Value) error {
		if values[0] == "ok" {
			return nil
		}
		return errors.Join(&Damage{What: fmt.Sprintf("SQLite finds it inconsistent: %v", values[0]),
			Means: "All rows are as they were written, but ordinary tools may not find all of them. heed audit backup makes a sound copy."})
	})
}
