package cache

import "time"

// Profile says how strictly a site's silence and its denials are taken. The
// zero value is Standard. What the profiles have in common is RFC 9309; they
// differ where it leaves a choice.
type Profile uint8

const (
	// Standard takes 401 and 403 for "no file" (RFC 9309 §2.3.1.3) and lets
	// the last good copy stand in for a site that cannot be asked, for 30 days
	// at most (§2.4).
	Standard Profile = iota
	// Strict takes 401 and 403 for a closed site, as the draft of 1996 did, and
	// lets no old copy stand in: what cannot be asked is refused (§2.3.1.4).
	Strict
	// Google refuses for the first twelve hours of a failure, and only then lets
	// the last good copy stand in, for 30 days at most.
	Google
)

// googleStop is how long Google leaves a failing site alone before it goes by
// the last good copy.
const googleStop = 12 * time.Hour

// lets reports whether a copy within its limit may stand in at now for a site
// that has been failing since failingSince.
func (p Profile) lets(failingSince, now time.Time) bool {
	switch p {
	case Strict:
		return false
	case Google:
		return now.Sub(failingSince) >= googleStop
	default:
		return true
	}
}
