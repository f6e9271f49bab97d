package command

import "heed/rules"

// lintWords is what a person is told of a kind of finding.
type lintWords struct {
	Means   string // what it is, and what becomes of it
	Instead string // what to write
	Serious bool   // something is lost, or not what it seems
}

// wordsOf are the words for every kind that rules.Lint finds.
var wordsOf = map[rules.FindingKind]lintWords{
	rules.LongFile:       {"The file is longer than 4 MiB; what follows is not read.", "Shorten it; many robots read 500 KiB only.", true},
	rules.UTF16:          {"The file is in UTF-16; many robots read UTF-8 only.", "Save it as UTF-8.", true},
	rules.ByteOrderMark:  {"The file begins with a byte order mark; some robots take it for a part of the first line.", "Save it as UTF-8 without a mark.", false},
	rules.PartialMark:    {"The file begins with a broken byte order mark; some robots take it for a part of the first line.", "Remove what stands before the first line.", true},
	rules.HTMLPage:       {"This is a page of HTML without a rule, no robots.txt; everything is allowed.", "Serve a text file of rules, or answer 404 when there is none.", true},
	rules.ManyWildcards:  {"The rules have more wildcards than can be judged by; everything is refused.", "Write fewer * or fewer rules.", true},
	rules.LongLine:       {"The line is too long; its end is not read.", "Write several lines.", true},
	rules.NulOctet:       {"A NUL character ends the line; what follows it is not read.", "Remove it.", true},
	rules.NoField:        {"This is neither a rule nor a comment; the line is ignored.", "Write it as \"field: value\", or put # before it.", true},
	rules.MisspeltField:  {"The word is misspelt and understood; other robots may ignore the line.", "Write User-agent, Allow, Disallow or Sitemap.", true},
	rules.MissingColon:   {"The colon is missing; the line is understood, other robots may ignore it.", "Put a colon after the first word.", true},
	rules.UnknownLine:    {"The field is not known; the line is ignored.", "Remove it, or see whether it is misspelt.", false},
	rules.JoinedLines:    {"Two lines stand on one; they are read as two, other robots read one.", "Begin a new line here.", true},
	rules.OrphanRule:     {"The rule belongs to no group; it is ignored.", "Put a User-agent line before it.", true},
	rules.PathList:       {"Several paths stand on one line; they are read as a rule each, other robots read one path with blanks in it.", "Write one line for each path.", true},
	rules.ForeignURL:     {"This is the URL of another site, which this file does not speak for; it is ignored.", "Write the path alone, in the robots.txt of its own site.", true},
	rules.AbsoluteURL:    {"Rules have paths, not URLs; it is read as its path, other robots may ignore it.", "Write the path alone, from the first / after the host.", true},
	rules.NoSlash:        {"The path does not begin with /; it is read as if it did, other robots may ignore it.", "Begin it with / or *.", true},
	rules.BlankInPath:    {"There is a blank in the path; it is read as %20, other robots may end the path there.", "Write %20, or a comment after #.", true},
	rules.ControlOctet:   {"There is a control character in the path; it is read as its escape.", "Write the escape, such as %09, or remove it.", true},
	rules.InnerDollar:    {"A $ that is not at the end stands for itself; it ends nothing.", "Write %24 for the character, or end the rule with it.", false},
	rules.BadEscape:      {"A % that two hexadecimal digits do not follow stands for itself.", "Write %25 for the character.", false},
	rules.NoName:         {"The line names no robot; the rules after it are for nobody.", "Write the robot's name, or * for all.", true},
	rules.NamesNobody:    {"No robot goes by this; browsers carry it, too. The rules after it are for nobody by this name.", "Write the robot's own name, such as ExampleBot.", true},
	rules.WholeUserAgent: {"This is a whole User-Agent string; the names of robots in it are taken, other robots may take none.", "Write the name alone, such as ExampleBot.", true},
	rules.NameList:       {"Several names stand on one line; each is taken, other robots may take one name or none.", "Write one User-agent line for each name.", true},
	rules.NameOfWords:    {"The name has blanks in it; it is one name of several words, and is not a list.", "Write one User-agent line for each name.", true},
	rules.NameVersion:    {"The version is ignored: the rules are for every version.", "Write the name alone.", false},
	rules.NameStar:       {"The * in a name is ignored: names are compared whole.", "Write the name alone.", true},
	rules.StarAndText:    {"The name begins with *; it is read as * alone, and the rules are for all robots.", "Write * alone, or the name alone.", true},
}
