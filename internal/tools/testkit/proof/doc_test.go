// Package proof attacks the record of decisions from outside, with the real
// heed as a child process: it is killed under load, its disk is filled, its
// files are taken away. Afterwards the record, what clients were answered and
// what sites were asked must say the same.
//
// It is killed ten times, and a hundred times with
//
//	HEED_TEST_FULL=1 go test -count=1 -v -run Kill ./internal/tools/testkit/proof
package proof
