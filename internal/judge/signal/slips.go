package signal

import (
	"slices"
	"strconv"
	"strings"
)

// slips.go has what is read of preferences and reservations that are not written as their
// documents have them. A slip may only tighten:
//
//   - What is clearly a reservation is one, under every profile.
//   - A permission is read only as it is specified.
//   - Everything else is a fault, with the words as they were received: it says nothing, and
//     the profile strict refuses the uses that it may concern (Statement.unclear).
//
// The table of slips by source is in statements_test.go.

// noWords are the words that are read as n of Content-Usage and no of Content-Signal: of the
// other one of these, of answers (Spatie's laravel-markdown-response sends "disallow"), of
// settings, and of booleans (RFC 9651 §3.3.6).
var noWords = []string{"n", "no", "disallow", "false", "?0"}

// denies reports whether a value, in any case and between quotation marks or not, is one of
// noWords.
func denies(value string) bool {
	return slices.Contains(noWords, strings.ToLower(strings.Trim(value, " \t\"'")))
}

// keyUses are the uses that a key is about: those of Content-Usage and of Content-Signal, each
// of which is read in the other one too; nil: the key is unknown.
func keyUses(key string) []Category {
	if c, ok := signalKeys[key]; ok {
		return []Category{c}
	}
	return usageLabels[key]
}

// reserves reports whether a value is clearly a tdm-reservation of 1: true, another spelling of
// the number (RFC 8259 §6), a boolean (RFC 9651 §3.3.6), an item with parameters, or several
// values of which one is 1, as of a field that is sent twice.
func reserves(value string) bool {
	for one := range strings.SplitSeq(value, ",") {
		one, _, _ = strings.Cut(one, ";")
		one = strings.ToLower(strings.Trim(one, " \t\"'"))
		if n, err := strconv.ParseFloat(one, 64); one == "true" || one == "?1" || err == nil && n == 1 {
			return true
		}
	}
	return false
}
