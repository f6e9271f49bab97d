package rules

// Answer is how a site answered the request for its robots.txt under one name. Sites
// that answer 401 or 403 to heed are asked again under the name of the client.
type Answer struct {
	For    string // NameKey of the client under whose name it was asked; empty: heed's own
	File   bool   // there is a file, fresh or stale
	Denied bool   // 401 or 403
	Failed bool   // unreachable
}

// InForce returns the index of the answer that holds for clients with a NameKey, and -1
// when none does. It is the site's answer to that name, unless that is a denial or a
// failure and heed's own is a file; else heed's own if it was usable; else a 401 or 403
// that the site gave under the name of another client, which counts as that status; else
// heed's own failure. Of equal answers the last one holds. A file that was given to
// another client never counts.
func InForce(answers []Answer, nameKey string) int {
	found, best := -1, unfit
	for i := range answers {
		if fit := answers[i].fit(nameKey); fit <= best && fit < unfit {
			found, best = i, fit
		}
	}
	return found
}

// unfit is the fit of an answer that does not hold.
const unfit = 6

// fit returns the place of a in the order of InForce.
func (a *Answer) fit(nameKey string) int {
	switch own := a.For == ""; {
	case a.For == nameKey && !own && (a.File || !a.Denied && !a.Failed):
		return 0
	case own && a.File:
		return 1
	case a.For == nameKey && !own:
		return 2
	case own && !a.Failed:
		return 3
	case a.Denied && !a.Failed:
		return 4
	case own:
		return 5
	}
	return unfit
}

// nameMark is the prefix of the results of NameKey.
const nameMark = "as"

// NameKey returns the key of answers to clients with this User-Agent; empty for an empty
// one. It consists of the product tokens, by which rules distinguish clients: all versions
// of a program have one key.
func NameKey(userAgent string) string {
	if userAgent == "" {
		return ""
	}
	key := nameMark
	for _, t := range Identify(userAgent).Tokens {
		key += " " + t.Name
	}
	return key
}
