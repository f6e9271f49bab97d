package rules

// FindingKind is what is odd about a place in a robots.txt. The list is closed
// and its identifiers are stable.
type FindingKind string

// The kinds of findings about a file as a whole.
const (
	LongFile      FindingKind = "long-file"        // longer than MaxBytes: the rest is ignored
	OverMinimum   FindingKind = "over-500-kib"     // longer than RFC 9309 §2.5 asks robots to read
	UTF16         FindingKind = "utf-16"           // decoded
	ByteOrderMark FindingKind = "byte-order-mark"  // ignored
	PartialMark   FindingKind = "partial-mark"     // a broken byte order mark: ignored
	HTMLPage      FindingKind = "html-page"        // no rule, and looks like HTML: no robots.txt
	BinaryFile    FindingKind = "binary-file"      // no rule, and no text: nothing else is told of it
	NoGroup       FindingKind = "no-group"         // nothing in it speaks to a robot
	ManyWildcards FindingKind = "many-wildcards"   // more than MaxWildcards: not judged by
	MoreFindings  FindingKind = "further-findings" // there are more than MaxFindings
)

// The kinds of findings about a line.
const (
	LongLine        FindingKind = "long-line"        // longer than MaxLine: the rest is ignored
	NulOctet        FindingKind = "nul"              // a NUL ends the line
	NotUTF8         FindingKind = "not-utf-8"        // octets that are no UTF-8: kept, escaped
	NoField         FindingKind = "no-field"         // not "field: value": ignored
	MisspeltField   FindingKind = "misspelt-field"   // understood all the same
	LikelyMisspelt  FindingKind = "likely-misspelt"  // nearly a field of RFC 9309: ignored
	HiddenCharacter FindingKind = "hidden-character" // what cannot be seen stands before a field or a path
	MissingColon    FindingKind = "missing-colon"    // understood all the same
	UnknownLine     FindingKind = "unknown-field"    // ignored
	JoinedLines     FindingKind = "joined-lines"     // a field within a line: read as a line of its own
)

// The kinds of findings about a rule.
const (
	OrphanRule   FindingKind = "orphan-rule"    // before any user-agent line: ignored
	EmptyAllow   FindingKind = "empty-allow"    // says nothing
	PathList     FindingKind = "path-list"      // several paths on a line: a rule each
	CommaInPath  FindingKind = "comma-in-paths" // a comma between paths is part of one
	ForeignURL   FindingKind = "foreign-url"    // the URL of another site: ignored
	AbsoluteURL  FindingKind = "absolute-url"   // read as its path
	NoSlash      FindingKind = "no-slash"       // read as if it began with "/"
	BlankInPath  FindingKind = "blank-in-path"  // read as "%20"
	HashInPath   FindingKind = "hash-in-path"   // begins a comment
	ControlOctet FindingKind = "control-octet"  // read as its escape
	InnerDollar  FindingKind = "inner-dollar"   // stands for itself
	BadEscape    FindingKind = "bad-escape"     // "%" stands for itself
	DotSegment   FindingKind = "dot-segment"    // clients send no such path
	TrailingStar FindingKind = "trailing-star"  // adds length and nothing else
	RuleForFile  FindingKind = "robots-txt"     // /robots.txt is always allowed
	RepeatedRule FindingKind = "repeated-rule"  // the group has it already
	OpposedRules FindingKind = "opposed-rules"  // the group says the opposite, too
)

// The kinds of findings about a user-agent line or a group.
const (
	NoName         FindingKind = "no-name"             // the group is nobody's
	NamesNobody    FindingKind = "names-nobody"        // matches no robot
	WholeUserAgent FindingKind = "whole-user-agent"    // reduced to the robots it names
	NameList       FindingKind = "name-list"           // several names, split at commas
	NameOfWords    FindingKind = "name-of-words"       // one name of several words
	NameVersion    FindingKind = "name-version"        // the version is ignored
	NameStar       FindingKind = "name-star"           // the star is ignored
	NameCharacter  FindingKind = "name-character"      // beyond RFC 9309: kept
	NameCut        FindingKind = "name-cut"            // under google: the name ends before it
	StarAndText    FindingKind = "star-and-text"       // read as "*"
	SharedGroup    FindingKind = "shared-group"        // what stands before this line ends no group
	BlankInGroup   FindingKind = "blank-in-group"      // means nothing since RFC 9309
	RepeatedGroup  FindingKind = "repeated-group"      // joined to the one before
	EmptyGroup     FindingKind = "group-without-rules" // allows everything
)

// The kinds of findings about other fields.
const (
	BadValue    FindingKind = "bad-value"    // cannot be understood: ignored
	OrphanField FindingKind = "orphan-field" // before any user-agent line: for all
	NoEffect    FindingKind = "no-effect"    // never was a standard, and is ignored
	OldField    FindingKind = "old-field"    // nobody reads it any more
)

// Severity says how much a finding matters.
type Severity uint8

// The severities. The zero value is the least.
const (
	Note       Severity = iota // works as it was meant
	Misleading                 // other robots, or a reader, may understand it otherwise
	Lost                       // what was written is not in force
)

// String returns the severity's stable name: note, misleading or lost.
func (s Severity) String() string {
	switch s {
	case Misleading:
		return "misleading"
	case Lost:
		return "lost"
	default:
		return "note"
	}
}

// Severity returns how much findings of this kind matter; Note for no kind.
func (k FindingKind) Severity() Severity { return advices[k].severity }

// Means says in a sentence what a finding of this kind is and what becomes of
// it; empty for no kind.
func (k FindingKind) Means() string { return advices[k].means }

// Instead says in a sentence what to write instead; empty for no kind.
func (k FindingKind) Instead() string { return advices[k].instead }

type advice struct {
	severity       Severity
	means, instead string
}

var advices = map[FindingKind]advice{
	LongFile: {Lost, "The file is longer than 4 MiB; what follows is not read.",
		"Shorten it; many robots read 500 KiB only."},
	OverMinimum: {Misleading, "The file is longer than 500 KiB; many robots read no further.",
		"Shorten it, or put what matters first."},
	UTF16: {Misleading, "The file is in UTF-16; many robots read UTF-8 only.",
		"Save it as UTF-8."},
	ByteOrderMark: {Note, "The file begins with a byte order mark; some robots take it for a part of the first line.",
		"Save it as UTF-8 without a mark."},
	PartialMark: {Misleading, "The file begins with a broken byte order mark; some robots take it for a part of the first line.",
		"Remove what stands before the first line."},
	HTMLPage: {Lost, "This is a page of HTML without a rule, no robots.txt; everything is allowed.",
		"Serve a text file of rules, or answer 404 when there is none."},
	BinaryFile: {Lost, "This is no text but a picture, a program, a compressed file or the like, without a rule; everything is allowed.",
		"Serve a text file of rules, and name its compression in Content-Encoding if there is one; or answer 404 when there is none."},
	NoGroup: {Note, "No line speaks to a robot; everything is allowed.",
		"Begin with a User-agent line and write rules below it."},
	ManyWildcards: {Lost, "The rules have more than 1,048,576 wildcards; they are not judged by, and everything is refused.",
		"Write fewer * or fewer rules."},
	MoreFindings: {Note, "There is more to find than is told here.",
		"Cure what is told, and look again."},

	LongLine: {Lost, "The line is too long; its end is not read.",
		"Write several lines."},
	NulOctet: {Lost, "A NUL character ends the line; what follows it is not read.",
		"Remove it."},
	NotUTF8: {Misleading, "The line is not UTF-8; its octets are compared as they are, other robots may replace them.",
		"Save the file as UTF-8, or write the escapes, such as %C3%A9."},
	NoField: {Lost, "This is neither a rule nor a comment; the line is ignored.",
		"Write it as \"field: value\", or put # before it."},
	MisspeltField: {Misleading, "The word is misspelt and understood; other robots may ignore the line.",
		"Write User-agent, Allow, Disallow or Sitemap."},
	LikelyMisspelt: {Lost, "The word is misspelt so that no robot understands it; the line is ignored.",
		"Write User-agent, Allow, Disallow or Sitemap."},
	HiddenCharacter: {Lost, "A character that cannot be seen stands here, such as a byte order mark or a no-break space; the line does not say what it seems to say.",
		"Write the line anew, with plain blanks."},
	MissingColon: {Misleading, "The colon is missing; the line is understood, other robots may ignore it.",
		"Put a colon after the first word."},
	UnknownLine: {Note, "The field is not known; the line is ignored.",
		"Remove it, or see whether it is misspelt."},
	JoinedLines: {Misleading, "Two lines stand on one; they are read as two, other robots read one.",
		"Begin a new line here."},

	OrphanRule: {Lost, "The rule belongs to no group; it is ignored.",
		"Put a User-agent line before it."},
	EmptyAllow: {Misleading, "Allow without a path allows nothing.",
		"Write \"Allow: /\" to allow everything, or remove the line."},
	PathList: {Misleading, "Several paths stand on one line; they are read as a rule each, other robots read one path with blanks in it.",
		"Write one line for each path."},
	CommaInPath: {Misleading, "A comma does not separate paths; it is part of the path before it.",
		"Write one line for each path."},
	ForeignURL: {Lost, "This is the URL of another site, which this file does not speak for; it is ignored.",
		"Write the path alone, in the robots.txt of its own site."},
	AbsoluteURL: {Misleading, "Rules have paths, not URLs; it is read as its path, other robots may ignore it.",
		"Write the path alone, from the first / after the host."},
	NoSlash: {Misleading, "The path does not begin with /; it is read as if it did, other robots may ignore it.",
		"Begin it with / or *."},
	BlankInPath: {Misleading, "There is a blank in the path; it is read as %20, other robots may end the path there.",
		"Write %20, or a comment after #."},
	HashInPath: {Misleading, "The # begins a comment; the path ends before it, and the rule is wider than it looks.",
		"Write %23 for the character, or a blank before a comment."},
	ControlOctet: {Misleading, "There is a control character in the path; it is read as its escape.",
		"Write the escape, such as %09, or remove it."},
	InnerDollar: {Note, "A $ that is not at the end stands for itself; it ends nothing.",
		"Write %24 for the character, or end the rule with it."},
	BadEscape: {Note, "A % that two hexadecimal digits do not follow stands for itself.",
		"Write %25 for the character."},
	DotSegment: {Misleading, "Clients resolve . and .. in a path before they ask for it; this rule matches none of what they send.",
		"Write the path without them."},
	TrailingStar: {Note, "Every rule matches whatever follows; a * at its end only makes it longer than one without.",
		"Leave out the * at the end."},
	RuleForFile: {Note, "The robots.txt itself is always allowed, whatever the rules say.",
		"Remove the line."},
	RepeatedRule: {Note, "The group has this rule already.",
		"Remove one of the lines."},
	OpposedRules: {Misleading, "The same path is allowed and disallowed; Allow counts here, other robots may take the first line.",
		"Remove one of the lines."},

	NoName: {Lost, "The line names no robot; the rules after it are for nobody.",
		"Write the robot's name, or * for all."},
	NamesNobody: {Lost, "No robot goes by this; browsers carry it, too. The rules after it are for nobody by this name.",
		"Write the robot's own name, such as ExampleBot."},
	WholeUserAgent: {Misleading, "This is a whole User-Agent string; the names of robots in it are taken, other robots may take none.",
		"Write the name alone, such as ExampleBot."},
	NameList: {Misleading, "Several names stand on one line; each is taken, other robots may take one name or none.",
		"Write one User-agent line for each name."},
	NameOfWords: {Misleading, "The name has blanks in it; it is one name of several words, and is not a list.",
		"Write one User-agent line for each name."},
	NameVersion: {Note, "The version is ignored: the rules are for every version.",
		"Write the name alone."},
	NameStar: {Misleading, "The * in a name is ignored: names are compared whole.",
		"Write the name alone."},
	NameCut: {Lost, "The name is read up to here; the group is for robots of the shorter name.",
		"Keep it: other robots compare the whole name."},
	NameCharacter: {Note, "A name has only letters, - and _ in RFC 9309; it is compared whole, some robots read it up to the first other character.",
		"Keep it if the robot's operator writes it so."},
	StarAndText: {Misleading, "The name begins with *; it is read as * alone, and the rules are for all robots.",
		"Write * alone, or the name alone."},
	SharedGroup: {Misleading, "What stands between this line and the User-agent line above ends no group; both have the rules below.",
		"Write the rules of the line above below it, such as \"Disallow:\" for none."},
	BlankInGroup: {Note, "A blank line means nothing since 2022; robots of the standard of 1994 end the group here.",
		"Remove the blank line."},
	RepeatedGroup: {Note, "There is a group of this name above; the two are one group.",
		"Write the rules of one robot together."},
	EmptyGroup: {Note, "The group has no rules; everything is allowed to it.",
		"Write \"Disallow:\" to say so plainly."},

	BadValue: {Lost, "The value cannot be understood; the line is ignored.",
		"See how the field is written; a sitemap is a whole URL, a delay a number of seconds."},
	OrphanField: {Misleading, "The field stands in no group; it is taken for all robots, others may ignore it.",
		"Put a User-agent line before it."},
	NoEffect: {Misleading, "The field never was a standard and has no effect; pages are not kept out of any index by it.",
		"Send the X-Robots-Tag field, or Disallow the path."},
	OldField: {Note, "Nobody reads this field any more.",
		"Remove it."},
}
