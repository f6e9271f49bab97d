package cache

import (
	"time"

	"heed/rules"
)

// What a profile says of a site's silence and of its denials. What all have in
// common is RFC 9309; they differ where it leaves a choice:
//
//	Standard, REP1994  401 and 403 mean "no file" (§2.3.1.3); the last good copy
//	                   stands in for a site that cannot be asked, for 30 days at
//	                   most (§2.4)
//	Strict             401 and 403 close the site, as the draft of 1996 had it;
//	                   no old copy stands in (§2.3.1.4)
//	Google             the first twelve hours of a failure are refused; only then
//	                   the last good copy stands in, for 30 days at most

// googleStop is how long Google leaves a failing site alone before it goes by
// the last good copy.
const googleStop = 12 * time.Hour

// denialCloses reports whether 401 and 403 close the site.
func denialCloses(p rules.Profile) bool { return p == rules.Strict }

// copyStandsIn reports whether a copy within its limit may stand in at now for
// a site that has been failing since failingSince.
func copyStandsIn(p rules.Profile, failingSince, now time.Time) bool {
	switch p {
	case rules.Strict:
		return false
	case rules.Google:
		return now.Sub(failingSince) >= googleStop
	default:
		return true
	}
}
