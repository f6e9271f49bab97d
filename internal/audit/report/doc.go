// Package report summarizes records of decisions: reports by agent and by site, the
// behaviour of clients, tables for a paper, and exports of every decision.
//
// It only reads records. Texts from clients and sites are unchanged in its data, and
// escaped in text and HTML.
//
// Outside package: github.com/rogpeppe/go-internal/diff, for the differences between
// two files.
package report
