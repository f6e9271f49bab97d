// Package audit keeps the record of decisions: the Entry, the recorders that
// take it, and the counts people read.
//
// Outside package: github.com/google/uuid, for decision ids (UUIDv7).
package audit
