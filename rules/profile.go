package rules

// Profile is a way to read robots.txt files. The zero value is Standard.
type Profile uint8

// The profiles. Every one is the same engine; what differs is said here and
// nowhere else.
const (
	// Standard is RFC 9309 in full, lenient as RFC 9309 §2.2.4 allows.
	Standard Profile = iota
	// Strict is Standard where the more cautious answer wins: Disallow wins a
	// tie, and targets are judged in the readings v4 and v5 too.
	Strict
	// Google reads as Google's published parser does: names are cut at the
	// first character that is neither a letter nor "-" nor "_", escapes in a
	// target are not decoded, nothing is repaired, a rule of Allow for an
	// index.html allows its directory. /robots.txt itself stays allowed.
	Google
	// REP1994 reads as the consensus of 30 June 1994: a blank line ends a
	// record, Allow and wildcards are unknown, any Disallow that matches
	// refuses, and a name in the file addresses every robot whose name
	// contains it.
	REP1994
)

// String returns the profile's name in settings: standard, strict, google or rep1994.
func (p Profile) String() string {
	switch p {
	case Strict:
		return "strict"
	case Google:
		return "google"
	case REP1994:
		return "rep1994"
	default:
		return "standard"
	}
}

// ParseProfile returns the profile of that name; the empty name is Standard.
func ParseProfile(name string) (p Profile, ok bool) {
	for _, p := range []Profile{Standard, Strict, Google, REP1994} {
		if p.String() == name {
			return p, true
		}
	}
	return Standard, name == ""
}

// differences are what sets the profiles apart. The zero value is Standard.
type differences struct {
	tieRefuses  bool // Disallow wins over Allow of the same length
	allReadings bool // targets are read up to v5
	asSent      bool // targets are compared as sent, in one reading
	cutNames    bool // a name ends before the first octet that is no letter, "-" or "_"
	noRepair    bool // no lists, no assumed slash, no absolute URL, no collapsed line
	indexHTML   bool // Allow: /x/index.html allows /x/ too
	blankEnds   bool // a blank line ends a record
	noAllow     bool // Allow is an unknown field
	literal     bool // "*" and "$" are themselves
	substring   bool // a name in the file is looked for inside the robot's name
	wordList    bool // blanks on a user-agent line separate names
}

func (p Profile) differences() differences {
	switch p {
	case Strict:
		return differences{tieRefuses: true, allReadings: true}
	case Google:
		return differences{asSent: true, cutNames: true, noRepair: true, indexHTML: true}
	case REP1994:
		return differences{blankEnds: true, noAllow: true, literal: true, substring: true, wordList: true}
	default:
		return differences{}
	}
}
