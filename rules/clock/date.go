package clock

import (
	"strings"
	"time"
)

// dates are the forms of dates: those of RFC 9110 §5.6.7 and ISO 8601, with the habits of
// sites.
var dates = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02T15:04:05Z0700",
	"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04 MST", "2006-01-02 15:04",
	"20060102T150405Z0700", "20060102T150405", "20060102", time.DateOnly, "2006/01/02 15:04:05", "2006/01/02", "2006.01.02",
	"2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 -07:00", "2 Jan 2006 15:04:05", "2 Jan 06 15:04:05 MST", "2 Jan 06 15:04 MST", "2 Jan 06 15:04 -0700",
	"2 Jan 2006 15:04 MST", "2 Jan 2006 15:04", "2 Jan 2006", "2 January 2006", "2 January 2006 15:04:05 MST", "2 January 2006 15:04:05",
	"2-Jan-06 15:04:05 MST", "2-Jan-2006 15:04:05 MST", "2-Jan-2006 15:04:05", "2-Jan-2006",
	"Jan 2 15:04:05 2006", "Jan 2 15:04:05 MST 2006", "Jan 2 15:04:05 -0700 2006", "Jan 2 2006 15:04:05 MST", "Jan 2 2006 15:04:05", "Jan 2 2006", "January 2 2006",
	"2.1.2006 15:04:05", "2.1.2006 15:04", "2.1.2006",
}

// slashed are dates of which it is not certain which number is the day.
var slashed = []string{"2/1/2006 15:04:05", "2/1/2006 15:04", "2/1/2006", "1/2/2006 15:04:05", "1/2/2006 15:04", "1/2/2006"}

// zones are the offsets of the zones of RFC 822 §5.1 and of Europe, in hours.
var zones = map[string]int{
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
	"CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "BST": 1, "MSK": 3, "JST": 9,
}

// Date reads a date. One without a zone is in UTC; one without a time ends with its day. One
// whose day may be its month is not read.
func Date(s string) (time.Time, bool) {
	if len(s) > maxText {
		return time.Time{}, false
	}
	s = strings.Join(strings.Fields(strings.ReplaceAll(strings.Trim(strings.ToUpper(s), " \t\"'.;"), ",", " ")), " ")
	if first, rest, found := strings.Cut(s, " "); found && isDay(first) {
		s = rest
	}
	for _, form := range dates {
		if at, ok := dateAs(form, s); ok {
			return at, true
		}
	}
	var found time.Time
	for _, form := range slashed {
		switch at, ok := dateAs(form, s); {
		case ok && !found.IsZero() && !at.Equal(found):
			return time.Time{}, false
		case ok:
			found = at
		}
	}
	return found, !found.IsZero()
}

// isDay reports whether a word is the name of a day of the week, or the beginning of one.
func isDay(word string) bool {
	word = strings.ToLower(strings.TrimSuffix(word, "."))
	for day := time.Sunday; day <= time.Saturday; day++ {
		if len(word) >= 3 && strings.HasPrefix(strings.ToLower(day.String()), word) {
			return true
		}
	}
	return false
}

func dateAs(form, s string) (time.Time, bool) {
	at, err := time.Parse(form, s)
	if err != nil {
		return time.Time{}, false
	}
	if name, offset := at.Zone(); offset == 0 && zones[name] != 0 {
		at = at.Add(-time.Duration(zones[name]) * time.Hour)
	}
	if !strings.Contains(form, "15") {
		at = at.Add(24 * time.Hour)
	}
	return at, true
}
