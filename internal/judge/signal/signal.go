// Package signal reads what a site states about the use of its pages, and judges a page
// by it for a purpose. It is pure: it fetches nothing and has no clock.
//
// # Overview
//
// Statements come from robots.txt (Content-Signal, Content-Usage, License), from
// /.well-known/tdmrep.json, from licence documents, from the header fields of an answer
// (X-Robots-Tag, Robots-Tag, Content-Usage, Content-Signal, tdm-reservation, Link) and from
// the head of an HTML page. [Judge] collects those that concern an agent and a page and
// makes one [Verdict] of them: for each [Category] allow, disallow or unknown, with the
// statements that led to it. [Verdict.Refuses] compares it with the purposes of a client. A Verdict
// is stored as JSON and can be asked again for another purpose.
//
// The same Judge serves both moments: before a request is sent there are no Header and no
// Page, afterwards there are.
//
//   - purpose.go has the purposes and the categories, statement.go what is known of one
//     statement;
//   - robots.go, tdmrep.go, licences.go, fields.go and terms.go read the statements of one
//     source each; the folder licence reads RSL documents, the folder page reads HTML;
//     slips.go and loose.go have the slips that are read all the same, sentence.go puts one into words;
//   - judge.go makes the verdict, verdict.go has what it answers, with the Robots-Verdict
//     field;
//   - siteanswer.go classifies the refusals that sites send; lint.go finds statements that
//     are lost; the folder fetch gets the documents that statements rest on.
//
// # Precedence
//
// Statements of one protocol are resolved by the rule of that protocol, protocols among
// each other so that any disallow wins, else any allow, else unknown (AIPREF vocabulary
// §5.1):
//
//   - Content-Usage in robots.txt: the longest path, as for Allow and Disallow; of equal
//     paths, and among robots.txt, header and page, any disallow wins.
//   - Content-Signal: the lines of the groups that govern the agent; without any, those
//     of the whole file. The policy that defines it (contentsignals.org) has it in robots.txt
//     alone; sites send it as a field and as META too, and agents obey it there. Any disallow
//     wins.
//   - TDMRep: the file, then the header, then the page; each overrides the one before,
//     also permissively.
//   - RSL: every licence that is declared binds. The words of its first version are mapped to
//     those of 1.0.
//   - META robots, X-Robots-Tag and Robots-Tag: all restrictions together. Under the profile rep1994
//     as in 1997: ALL wins over the terms of that time, and of two that contradict each
//     other the permissive one, which that text leaves to the robot.
//
// Where these documents are silent: a License or a Content-Usage is scoped as
// Content-Signal is. Labels of older drafts of Content-Usage count, a specific one before
// a collective one (all, bots, tdm). What is not written as it is specified is read as
// slips.go has it. A statement that cannot be read is unknown and is kept with its fault.
package signal
