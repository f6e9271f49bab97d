// Package rules says what a site's robots.txt means: it parses the file, finds
// the group that governs an agent, and judges targets. It is pure: no I/O, no
// clock, no logger; parsing never fails.
//
// Outside package: golang.org/x/net/idna, for host names that are not ASCII.
package rules
