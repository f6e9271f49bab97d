package rules

// FindingKind is what is odd about a place in a robots.txt.
type FindingKind string

// The kinds of findings.
const (
	LongFile       FindingKind = "long-file"        // longer than MaxBytes: the rest is ignored
	UTF16          FindingKind = "utf-16"           // decoded
	ByteOrderMark  FindingKind = "byte-order-mark"  // ignored
	PartialMark    FindingKind = "partial-mark"     // a broken byte order mark: ignored
	HTMLPage       FindingKind = "html-page"        // no rule, and looks like HTML: no robots.txt
	ManyWildcards  FindingKind = "many-wildcards"   // more than MaxWildcards: not judged by
	LongLine       FindingKind = "long-line"        // a line is longer than MaxLine: the rest is ignored
	NulOctet       FindingKind = "nul"              // a NUL ends the line
	NoField        FindingKind = "no-field"         // not "field: value"
	MisspeltField  FindingKind = "misspelt-field"   // understood all the same
	MissingColon   FindingKind = "missing-colon"    // understood all the same
	UnknownLine    FindingKind = "unknown-field"    // ignored
	JoinedLines    FindingKind = "joined-lines"     // a field within a line: read as a line of its own
	OrphanRule     FindingKind = "orphan-rule"      // before any user-agent line: ignored
	PathList       FindingKind = "path-list"        // several paths on a line
	ForeignURL     FindingKind = "foreign-url"      // the URL of another site: ignored
	AbsoluteURL    FindingKind = "absolute-url"     // read as its path
	NoSlash        FindingKind = "no-slash"         // read as if it began with "/"
	BlankInPath    FindingKind = "blank-in-path"    // read as "%20"
	ControlOctet   FindingKind = "control-octet"    // read as its escape
	InnerDollar    FindingKind = "inner-dollar"     // stands for itself
	BadEscape      FindingKind = "bad-escape"       // "%" stands for itself
	NoName         FindingKind = "no-name"          // the group is nobody's
	NamesNobody    FindingKind = "names-nobody"     // matches no robot
	WholeUserAgent FindingKind = "whole-user-agent" // reduced to the robots it names
	NameList       FindingKind = "name-list"        // several names, split at commas
	NameOfWords    FindingKind = "name-of-words"    // one name of several words
	NameVersion    FindingKind = "name-version"     // the version is ignored
	NameStar       FindingKind = "name-star"        // the star is ignored
	StarAndText    FindingKind = "star-and-text"    // read as "*"
)
