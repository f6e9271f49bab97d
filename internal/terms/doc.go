// Package terms holds what an operator settled beforehand: which client is
// known by which name and judged as whom, in which mode, and which exceptions
// were agreed with which site. It decides nothing about a robots.txt; it says
// under which terms the proxy asks.
//
// A [Book] is what one configuration says, together with what was added while
// heed runs (a [Break], an exception granted over the control socket). It is
// immutable: a reload makes another Book. The clock is a parameter, since
// exceptions and breaks end by themselves.
//
// It imports rules only and no package from outside.
package terms
