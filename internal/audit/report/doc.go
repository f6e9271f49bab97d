// Package report tells people what a record of decisions comes to: reports by
// agent and by site, what clients did of their own accord, tables for a paper,
// and every decision for other programs.
//
// It reads records and changes nothing. Texts that clients and sites chose
// stand in its data as they came; what is written as text or HTML is escaped.
//
// Outside package: github.com/rogpeppe/go-internal/diff, for what changed
// between two files.
package report
