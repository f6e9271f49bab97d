// Package store keeps the record of decisions in one SQLite file, audit.db,
// that ordinary tools read while heed runs.
//
// A decision is written twice. First, before anything of it takes effect, to
// the tail: two append-only files beside audit.db (its name and ".tail", and
// ".tail2"), written in turn, which have the rows that audit.db is to get. Many
// decisions share one write. Within a second one writer completes audit.db from the tail, in one
// transaction with one row in "commits" that carries a hash over its rows and
// its predecessor's. After a kill at any moment the next to open the file for
// writing completes audit.db from what the tail has and audit.db has not;
// what was cut off in the tail belongs to a decision that never took effect. What
// audit.db has on the disk is dropped from the tail.
//
// A row has one spelling in octets (row.go), which the tail holds and the hash
// is over: number of the table, then each column as a tag and its value.
//
// Outside package: modernc.org/sqlite, an SQLite that needs no C compiler.
package store
