// Package rules decides what a site's robots.txt allows: it parses the file,
// finds the groups that govern an agent, and judges targets. It is pure: no I/O,
// no clock, no logger. Parsing never fails, and the cost of a file and of a
// target is bounded.
//
// # Overview
//
// New parses a file once into a [Policy], which is immutable and safe for
// concurrent use. [Identify] finds the product tokens in a User-Agent string;
// [Declare] takes them from the operator. [Policy.Decide] compares a
// [Target], the path and query exactly as they are sent, with the rules of the groups that
// govern the agent. [Policy.Explain] reports each step of that, and package
// lint what is wrong with a file.
//
// The reading follows RFC 9309. Where that leaves room:
//
//   - Targets and rules are compared in one canonical form (§2.2.2): escapes of
//     unreserved octets are decoded, all other octets but the "/" of the path,
//     the first "?", "&" and "=" count as escaped. So "/~a" is "/%7Ea" and
//     "/a:b" is "/a%3Ab", and "/a/b" is not "/a%2Fb".
//   - The rule of most octets in that form decides, its wildcards included; among
//     equals Allow does.
//   - A target that servers may read in several ways (dot segments, doubled
//     slashes, escaped slashes, backslashes, parameters of dot segments) is refused when
//     any reading is, and the Decision contains the name of that reading.
//   - An agent of several names is governed by the groups of each, all of which
//     must allow. A name added to a User-Agent string never adds permissions.
//   - Names are compared whole and without case, digits included; a version is
//     left out. URLs, mail addresses and words that state what a client is
//     compatible with are no names.
//   - Lines that most parsers reject are read as intended where the intention is
//     plain: misspelt fields, missing colons and slashes, joined lines and lists.
//     Package lint reports each of them, its meaning and the correct form.
//
// A [Profile] reads files in another way: more strictly, as Google's published
// parser does, or by the consensus of 1994.
//
// # Reading order
//
// Each step uses only the ones before it:
//
//   - text: text.go decodes the octets and splits them into lines;
//   - lines: parse.go splits a line into field and value and reads user-agent
//     lines, parsepath.go reads rules, into a file (file.go);
//   - fields: fields.go for the lines that do not touch access,
//     ratehint.go for those about speed;
//   - names, or the client: agent.go takes the product tokens from a User-Agent
//     string (names.go has the words), groups.go finds their groups in the file;
//   - patterns, or the target (target.go): octets.go has the form that is compared,
//     readings.go, parameters.go and readings_sent.go the readings of a target, match.go
//     packs a rule and says what a match is, and index.go finds the rule that decides;
//   - decide: decide.go, with the engine that a Policy asks (policy.go), and the result, a
//     Decision;
//   - explain: explain.go. Package lint watches the parser (watch.go) for what people read
//     about a file.
//
// # Cost
//
// A Decision takes time by the length of the target and, a nanosecond each, the number of
// rules with wildcards: only those whose rarest three octets are in the target are compared
// with it. A budget bounds what is
// compared with one Target, in all of its readings, to about 20 ms; more is
// refused as too complex. A Decision allocates nothing once the
// policy has met the agent. A Policy takes less than twice the memory of the
// file; lists of different paths or names of a few letters take up to seven
// times as much; one of a large file can be made smaller ([Policy.Compact], compact.go). To that comes what it remembers of agents, at most
// [MaxRemembered].
//
// Outside package: golang.org/x/net/idna, for host names that are not ASCII.
package rules
