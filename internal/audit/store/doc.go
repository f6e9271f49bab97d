// Package store keeps the record of decisions in one SQLite file, audit.db,
// that ordinary tools read while heed runs.
//
// A decision is written twice. Before it takes effect, its rows are written to
// the tail (wal/), a log of two append-only files beside audit.db (".tail" and ".tail2"
// after its name) that are used in turn. Many decisions share one write. Within a
// second one writer adds the rows of the tail to audit.db, in one transaction with
// a row in "commits" that has the root of a Merkle tree over all rows (tree.go). After a
// kill at any moment, the next process that opens the record for writing adds the
// missing rows; an incomplete block at the end of the tail belongs to decisions
// that never took effect. Rows that audit.db has on the disk are dropped from the
// tail. SQLite does not notice when its own files are cut or removed: intact.go looks
// before decisions are accepted, and before the tail drops rows. A Writer has more than
// 30 methods, since the tail, the adding of its rows and the pruning share one lock and
// the same files.
//
// A row has one encoding (row.go), which the tail contains and the hash covers:
// the number of the table, then each column as a tag and its value.
//
// Readers (Record, Reader, Filter) read a snapshot of the record as typed rows; no
// other package contains SQL. Each query is a method of Reader or of conn, on which a
// Reader is built: these methods are in the files of their subjects.
//
// Why there is a log in front of SQLite, and why pruning has steps: measured with
// 16 writers on two busy cores (medians of three runs of 5 s), a decision with
// its outcome costs 16 us of CPU and 39 us of time here. SQLite alone, one
// transaction for all waiting writers (journal_mode=WAL, synchronous=NORMAL),
// costs 54 us and 105 us without names, the chain or its verification. The longest
// wait was 0.20 to 0.27 s here, and 0.09 to 0.11 s with SQLite alone. Neither lost
// an acknowledged decision in 20 rounds of kill -9 (645,948 and 149,819 of them).
// One DELETE of 11,000 to 30,000 entries with incremental vacuum takes 0.13 to
// 0.34 s, in which SQLite alone records nothing; here requests wait only for the
// log.
package store
