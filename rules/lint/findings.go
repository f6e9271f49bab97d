package lint

// Kind is the kind of a finding. The list is closed and its identifiers are stable.
type Kind string

// Severity is how serious a finding is.
type Severity uint8

// The severities. The zero value is the least.
const (
	Note       Severity = iota // works as intended
	Misleading                 // other robots, or a reader, may understand it in another way
	Lost                       // the line has no effect
)

// String returns the severity's stable name: note, misleading or lost.
func (s Severity) String() string { return [...]string{"note", "misleading", "lost"}[min(s, Lost)] }

// Severity returns how serious findings of this kind are; Note for an unknown kind.
func (k Kind) Severity() Severity { return advices[k].severity }

// Means returns a sentence about a finding of this kind and its effect; empty for
// an unknown kind.
func (k Kind) Means() string { return advices[k].means }

// Instead returns a sentence about what to write instead; empty for an unknown kind.
func (k Kind) Instead() string { return advices[k].instead }

// advice is what people read of a kind.
type advice struct {
	severity       Severity
	means, instead string
}

// advices has the kinds that finding has made.
var advices = map[Kind]advice{}

// finding makes a kind: how serious its findings are, their effect, and what to
// write instead. Those without a name here are the parser's alone.
func finding(kind Kind, severity Severity, means, instead string) Kind {
	advices[kind] = advice{severity, means, instead}
	return kind
}

// The kinds of findings about a file as a whole.
var (
	longFile = finding("long-file", Lost, "The file is longer than 4 MiB; what follows is not read.",
		"Shorten it; many robots read 500 KiB only.")
	overMinimum = finding("over-500-kib", Misleading, "The file is longer than 500 KiB; many robots read no further.",
		"Shorten it, or put the important rules first.")
	inUTF16 = finding("utf-16", Misleading, "The file is in UTF-16; many robots read UTF-8 only.",
		"Save it as UTF-8.")
	byteOrderMark = finding("byte-order-mark", Note, "The file begins with a byte order mark; some robots take it for a part of the first line.",
		"Save it as UTF-8 without a mark.")
	partialMark = finding("partial-mark", Misleading, "The file begins with a broken byte order mark; some robots take it for a part of the first line.",
		"Remove the octets before the first line.")
	htmlPage = finding("html-page", Lost, "This is an HTML page without a rule in a group, not a robots.txt; everything is allowed.",
		"Serve a text file of rules, or answer 404 when there is none.")
	binaryFile = finding("binary-file", Lost, "This is a binary file (an image, a program or a compressed file) without a rule; everything is allowed.",
		"Serve a text file of rules, and name its compression in Content-Encoding if there is one; or answer 404 when there is none.")
	noGroup = finding("no-group", Note, "The file has no User-agent line; everything is allowed.",
		"Begin with a User-agent line and write rules below it.")
	manyWildcards = finding("many-wildcards", Lost, "The rules have more than 1,048,576 wildcards; they are not used, and everything is refused.",
		"Write fewer * or fewer rules.")
	manyWords = finding("many-words", Lost, "The user-agent lines have more than 65,536 words in names of several words; the file is not used, and everything is refused.",
		"Write one name on a user-agent line.")
	moreFindings = finding("further-findings", Note, "There are more findings than are listed here.",
		"Correct these and check the file again.")
)

// The kinds of findings about a line.
var (
	_ = finding("long-line", Lost, "The line is too long; its end is not read.",
		"Write several lines.")
	_ = finding("nul", Lost, "A NUL character ends the line; what follows it is not read.",
		"Remove it.")
	notUTF8 = finding("not-utf-8", Misleading, "The line is not UTF-8; its octets are compared as they are, other robots may replace them.",
		"Save the file as UTF-8, or write the escapes, such as %C3%A9.")
	noField = finding("no-field", Lost, "This is neither a rule nor a comment; the line is ignored.",
		"Write it as \"field: value\", or put # before it.")
	_ = finding("misspelt-field", Misleading, "The field is misspelt but understood; other robots may ignore the line.",
		"Write User-agent, Allow, Disallow or Sitemap.")
	likelyMisspelt = finding("likely-misspelt", Lost, "The field is misspelt and no robot understands it; the line is ignored.",
		"Write User-agent, Allow, Disallow or Sitemap.")
	_ = finding("prefixed-field", Lost, "There is something before the field, such as a bullet, a number or a tag; no robot reads the line.",
		"Begin the line with the field.")
	_ = finding("missing-colon", Misleading, "The colon is missing; the line is understood, other robots may ignore it.",
		"Put a colon after the first word.")
	unknownLine = finding("unknown-field", Note, "The field is unknown; the line is ignored.",
		"Remove it, or check its spelling.")
	_ = finding("joined-lines", Misleading, "Two lines are joined; they are read as two, other robots read one.",
		"Begin a new line here.")
)

// The kinds of findings about a rule.
var (
	_ = finding("orphan-rule", Lost, "The rule is in no group; it is ignored.",
		"Put a User-agent line before it.")
	emptyAllow = finding("empty-allow", Misleading, "Allow without a path allows nothing.",
		"Write \"Allow: /\" to allow everything, or remove the line.")
	_ = finding("path-list", Misleading, "There are several paths on one line; each is read as a rule, other robots read one path with spaces.",
		"Write one line for each path.")
	commaInPath = finding("comma-in-paths", Misleading, "A comma does not separate paths; it is part of the path before it.",
		"Write one line for each path.")
	_ = finding("foreign-url", Lost, "This is the URL of another site, to which this file does not apply; it is ignored.",
		"Write only the path, in the robots.txt of that site.")
	_ = finding("absolute-url", Misleading, "Rules have paths, not URLs; it is read as its path, other robots may ignore it.",
		"Write only the path, from the first / after the host.")
	noSlash = finding("no-slash", Misleading, "The path does not begin with /; it is read as if it did, other robots may ignore it.",
		"Begin it with / or *.")
	blankInPath = finding("blank-in-path", Misleading, "There is a space in the path; it is read as %20, other robots may end the path there.",
		"Write %20, or a comment after #.")
	hashInPath = finding("hash-in-path", Misleading, "The # begins a comment; the path ends before it, and the rule is wider than it looks.",
		"Write %23 for the character, or a space before a comment.")
	controlOctet = finding("control-octet", Misleading, "There is a control character in the path; it is read as its escape.",
		"Write the escape, such as %09, or remove it.")
	innerDollar = finding("inner-dollar", Note, "A $ that is not at the end of the rule is an ordinary character.",
		"Write %24 for the character, or end the rule with it.")
	badEscape = finding("bad-escape", Note, "A % without two hexadecimal digits after it is an ordinary character.",
		"Write %25 for the character.")
	dotSegment = finding("dot-segment", Misleading, "Clients resolve . and .. in a path before they send it; this rule matches no request.",
		"Write the path without them.")
	trailingStar = finding("trailing-star", Note, "Every rule matches any continuation; a * at its end only makes the rule longer.",
		"Leave out the * at the end.")
	ruleForFile = finding("robots-txt", Note, "The robots.txt itself is always allowed, whatever the rules say.",
		"Remove the line.")
	repeatedRule = finding("repeated-rule", Note, "The group has this rule already.",
		"Remove one of the lines.")
	opposedRules = finding("opposed-rules", Misleading, "The same path is allowed and disallowed; Allow counts here, other robots may take the first line.",
		"Remove one of the lines.")
)

// The kinds of findings about a user-agent line or a group.
var (
	_ = finding("no-name", Lost, "The line has no name; the rules after it apply to no robot.",
		"Write the robot's name, or * for all.")
	nameOfNoRobot = finding("names-nobody", Lost, "No robot has this name, and browsers send it as well; by this name the rules after it apply to no robot.",
		"Write the robot's own name, such as ExampleBot.")
	_ = finding("whole-user-agent", Misleading, "This is a whole User-Agent string; the robot names in it are used, other robots may use none.",
		"Write the name alone, such as ExampleBot.")
	_ = finding("name-list", Misleading, "There are several names on one line; each is used, other robots may use one or none.",
		"Write one User-agent line for each name.")
	_ = finding("name-of-words", Misleading, "The name contains spaces; it is one name of several words, not a list.",
		"Write one User-agent line for each name.")
	_ = finding("name-version", Note, "The version is ignored: the rules apply to every version.",
		"Write the name alone.")
	_ = finding("name-star", Misleading, "The * around a name is ignored: names are compared whole, and the rules apply to that robot alone.",
		"Write the name alone.")
	nameCharacter = finding("name-character", Note, "A name has only letters, - and _ in RFC 9309; it is compared whole, some robots read it up to the first other character.",
		"Keep it if the robot's operator writes it so.")
	_ = finding("name-cut", Lost, "The name is read up to here; the group applies to robots of the shorter name.",
		"Keep it: other robots compare the whole name.")
	_ = finding("star-and-text", Misleading, "A * and more is read as * alone: the rules apply to all robots.",
		"Write * alone, or the name alone.")
	sharedGroup = finding("shared-group", Misleading, "The lines between this one and the User-agent line above do not end a group; the rules below apply to both.",
		"Write the rules of the line above below it, such as \"Disallow:\" for none.")
	blankInGroup = finding("blank-in-group", Note, "A blank line has no meaning since RFC 9309 (2022); robots of the standard of 1994 end the group here.",
		"Remove the blank line.")
	repeatedGroup = finding("repeated-group", Note, "There is a group of this name above; the two are one group.",
		"Write the rules of one robot together.")
	emptyGroup = finding("group-without-rules", Note, "The group has no rules; its robots may fetch everything.",
		"Write \"Disallow:\" to make that explicit.")
)

// The kinds of findings about other fields.
var (
	badValue = finding("bad-value", Lost, "The value cannot be understood; the line is ignored.",
		"Check the syntax of the field; a sitemap is a whole URL, a delay a number of seconds.")
	looseValue = finding("loose-value", Misleading, "The value is not written as robots expect it; it is read as what it obviously means, other robots may ignore the line.",
		"Write a delay as a number of seconds (10), a rate as 1/10s, hours as 0600-0845.")
	orphanField = finding("orphan-field", Misleading, "The field is in no group; it applies to all robots, other robots may ignore it.",
		"Put a User-agent line before it.")
	noEffect = finding("no-effect", Misleading, "The field never was a standard and has no effect; it keeps no page out of an index.",
		"Send the X-Robots-Tag field, or Disallow the path.")
	oldField = finding("old-field", Note, "No robot reads this field any more.",
		"Remove it.")
)
