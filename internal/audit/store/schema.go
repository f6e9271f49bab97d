package store

import (
	_ "embed" // schema.sql, views.sql
)

// Schema is the number of the layout of audit.db, in its PRAGMA user_version.
const Schema = 1

//go:embed schema.sql
var schema string

//go:embed views.sql
var views string

// Table numbers a table of the record, in the order in which a commit covers
// them: what a row refers to comes before it.
type Table uint8

// The tables of the record. The numbers are part of the tail and of the chain:
// they never change.
const (
	Run Table = 1 + iota
	Configuration
	Asker
	Site
	Body
	Snapshot
	Policy
	Ground
	Entry
	Outcome
	Exempt
)
