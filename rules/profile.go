package rules

import "slices"

// Profile is a way to read robots.txt files. The zero value is Standard.
type Profile uint8

// The profiles. All use the same engine; only this file has the differences.
const (
	// Standard is RFC 9309 in full, lenient as RFC 9309 §2.2.4 allows.
	Standard Profile = iota
	// Strict is Standard where the more cautious answer wins: Disallow wins a
	// tie, and targets are also judged without the parameters of every segment (v4) and with
	// escapes decoded once more (v5).
	Strict
	// Google is Standard but for three differences of Google's published parser; see
	// the table below.
	Google
	// REP1994 reads as the consensus of 30 June 1994: a blank line ends a
	// record, Allow and wildcards are unknown, any Disallow that matches
	// refuses, and a name in the file addresses every robot whose name
	// contains it.
	REP1994
)

// profileNames are the profiles' names in settings.
var profileNames = [...]string{Standard: "standard", Strict: "strict", Google: "google", REP1994: "rep1994"}

// String returns the profile's name in settings: standard, strict, google or rep1994.
func (p Profile) String() string {
	if int(p) >= len(profileNames) {
		p = Standard
	}
	return profileNames[p]
}

// ParseProfile returns the profile of that name; the empty name is Standard.
func ParseProfile(name string) (p Profile, ok bool) {
	if i := slices.Index(profileNames[:], name); i >= 0 {
		return Profile(i), true
	}
	return Standard, name == ""
}

// Where Google's published parser differs from most, and the profile Google:
//
//	difference                                      Standard     Google
//	a byte order mark, even a broken one, is no text     the same
//	a line is cut at 16,663 octets, and at a NUL        the same
//	a colon may be missing on a line of two words        the same
//	"dissallow", "useragent" and others are understood   the same
//	a field is known by its beginning ("Disallowed:")    the same
//	a name ends before the first octet that is not   no       cutNames
//	  a letter, "-" or "_"
//	escapes are compared as they are written          no       asSent
//	Allow: /x/index.html allows /x/                   no       indexHTML
//	/robots.txt itself may be refused                 no       no
//
// Consequences: with cutNames a group for "MJ12bot" is one for "MJ", and the
// star group governs the robot, or none does. With asSent a rule that
// holds escapes of octets that need none is kept for targets sent with these
// escapes only: "Disallow: /%7Ejoe" lets "/~joe" through, as Google's own robot
// would be. The opposite is prevented: "Disallow: /~joe" refuses "/%7Ejoe"
// and "/x/../~joe" as in Standard, and an Allow must hold for the target as
// sent and for its decoded forms. With indexHTML nothing is let through that
// the site did not mean to allow.

// differences is how a profile differs from Standard, the zero value.
type differences struct {
	tieRefuses  bool // Disallow wins over Allow of the same length
	allReadings bool // targets are read up to v5
	asSent      bool // rules and targets are compared as they are written
	cutNames    bool // a name ends before the first octet that is no letter, "-" or "_"
	indexHTML   bool // Allow: /x/index.html allows /x/ too
	blankEnds   bool // a blank line ends a record
	noAllow     bool // Allow is an unknown field
	literal     bool // "*" and "$" are themselves
	substring   bool // a name in the file matches robots whose name contains it
	wordList    bool // blanks on a user-agent line separate names
}

func (p Profile) differences() differences {
	switch p {
	case Strict:
		return differences{tieRefuses: true, allReadings: true}
	case Google:
		return differences{asSent: true, cutNames: true, indexHTML: true}
	case REP1994:
		return differences{blankEnds: true, noAllow: true, literal: true, substring: true, wordList: true}
	default:
		return differences{}
	}
}
