// Package rules says what a site's robots.txt means: it parses the file, finds
// the groups that govern an agent, and judges targets. It is pure: no I/O, no
// clock, no logger. Parsing never fails, and no file and no target makes it
// slow.
//
// # The road to a Decision
//
// New parses a file once into a [Policy], which is immutable and safe for
// concurrent use. [Identify] finds the names a User-Agent string goes by;
// [Declare] takes them from an operator who knows better. [Policy.Decide] holds
// a target, the path and query exactly as they are sent, against the rules of
// the groups that govern the agent. [Policy.Explain] tells the same at length.
//
// It goes by RFC 9309. Where that leaves room:
//
//   - Targets and rules are compared in one canonical form (§2.2.2): escapes of
//     unreserved octets are decoded, all other octets but the "/" of the path,
//     the first "?", "&" and "=" count as escaped. So "/~a" is "/%7Ea" and
//     "/a:b" is "/a%3Ab", and "/a/b" is not "/a%2Fb".
//   - The rule of most octets in that form decides, operators included; among
//     equals Allow does.
//   - A target that servers may read in several ways (dot segments, doubled
//     slashes, escaped slashes, backslashes) is refused when any reading is,
//     and the Decision names it.
//   - An agent of several names is governed by the groups of each, all of which
//     must allow. A name added to a User-Agent string therefore loosens nothing.
//   - Names are compared whole and without case, digits and all; a version is
//     left out. URLs, mail addresses and words that say what a client is
//     compatible with are no names.
//   - Lines that most parsers give up on are read as they are meant where that
//     is plain: misspelt fields, forgotten colons and slashes, lines and lists
//     run together. [Lint] tells of every one, what it means and what to write.
//
// A [Profile] reads files otherwise: more strictly, as Google's published parser
// does, or as the consensus of 1994 had it.
//
// # Cost
//
// A Decision takes time by the length of the target, not by the number of
// rules, and allocates nothing once the policy has met the agent. A Policy takes
// about as much memory as the file, and less than twice as much; lists of
// different paths or names of a few letters take up to seven times as much. To
// that comes what it remembers of agents, at most [MaxRemembered].
//
// Outside package: golang.org/x/net/idna, for host names that are not ASCII.
package rules
