package signal

import (
	"slices"
	"strings"
	"unicode"

	"heed/internal/base/safetext"
	"heed/rules"
)

// loose.go reads lists of robots terms in which something is not as it should be: quotation
// marks, other separators, hyphens in a word, names and marks that are no terms. What cannot be
// read and may be a restriction is a fault.

// misspelt are names under which sites send X-Robots-Tag by mistake, in canonical form.
var misspelt = [...]string{"X-Robot-Tag", "X-Robots-Tags", "X-Robots", "X-Robot", "Xrobots-Tag", "X-Robotstag", "X_robots_tag", "Robots"}

// faultUnread is the Fault of a statement with a term that cannot be read and may be a
// restriction.
const faultUnread = "a term cannot be read"

// fillers are words in lists of terms that are no terms, and change nothing of those beside
// them.
var fillers = []string{
	"robots", "robot", "bots", "bot", "crawlers", "crawler", "spiders", "spider", "robotstag", "xrobotstag", "content", "contents", "name", "meta", "tag", "and", "true", "yes", "1", "on",
	"useragent", "directive", "directives", "value", "und", "et", "y", "br", "quot", "amp",
}

// negations are words that turn the term after them into its opposite, and denials the values
// that do so with the term before them.
var (
	negations = []string{"no", "non", "not", "dont", "never", "do-not", "disallow"}
	denials   = []string{"no", "false", "0", "off", "never"}
)

// plainList returns a list with plain spaces and separators, and without quotation marks and
// characters that cannot be seen. It is list itself if all of it is printable ASCII.
func plainList(list string) string {
	if strings.IndexFunc(list, func(r rune) bool { return r >= 0x7F || r < ' ' || r == '"' || r == '\'' }) < 0 {
		return list
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '！' && r <= '～': // full width
			return r - '！' + '!'
		case r == '、' || r == '،' || r == '·':
			return ','
		case unicode.Is(unicode.Pd, r), r == '−':
			return '-'
		case unicode.IsSpace(r), r == '\u2800', r == '"', r == '\'', r == '`', unicode.In(r, unicode.Pi, unicode.Pf), r == '„', r == '\u00ab', r == '\u00bb':
			return ' '
		case rules.Invisible(r), unicode.IsControl(r):
			return -1
		}
		return r
	}, list)
}

// squeezed returns a word without the signs within it: "no-index" is noindex.
func squeezed(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, word)
}

// knownTerm returns the term that a word is, whatever signs are within it; empty for none.
func knownTerm(word string) string {
	word = squeezed(word)
	for _, one := range [...]string{word, strings.Replace(word, "non", "no", 1)} {
		if slices.Contains(known, one) {
			return one
		}
	}
	return ""
}

// looseNames returns the terms of a segment that is no list of known terms, and the crawler
// that they are for, if it names one. unread reports that it may have a restriction that is not
// among them.
func looseNames(segment string) (terms []string, crawler string, unread bool) {
	words := strings.FieldsFunc(strings.ToLower(segment), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	})
	strange := false
	for i := 0; i < len(words); i++ {
		word := words[i]
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		term := knownTerm(word)
		switch {
		case slices.Contains(negations, word) && knownTerm("no"+next) != "":
			terms = append(terms, knownTerm("no"+next))
			i++
		case term != "" && slices.Contains(denials, next) && knownTerm("no"+term) != "":
			terms = append(terms, knownTerm("no"+term)) // "index: no"
			i++
		case term != "" && slices.Contains(denials, next):
			i++ // "noindex: false"
		case term != "":
			terms = append(terms, term)
		case squeezed(word) == "", slices.Contains(fillers, squeezed(word)):
		case i == 0 && isRobot(word):
			crawler = word
		default:
			strange = true
		}
	}
	if !strange {
		return terms, crawler, false
	}
	return nil, "", mayRestrict(segment, words)
}

// isRobot reports whether a word calls itself a robot.
func isRobot(word string) bool {
	return slices.ContainsFunc([]string{"bot", "crawler", "spider", "slurp"}, func(mark string) bool { return strings.Contains(word, mark) })
}

// restrictions are the terms on which a purpose depends.
var restrictions = []string{"noindex", "noarchive", "nocache", "unavailableafter"}

// mayRestrict reports whether a segment may have one of them that is misspelt.
func mayRestrict(segment string, words []string) bool {
	whole := squeezed(strings.ToLower(segment[:min(len(segment), safetext.MaxExcerpt)]))
	for _, r := range restrictions {
		if strings.Contains(whole, r) || strings.Contains(whole, "not"+strings.TrimPrefix(r, "no")) {
			return true
		}
		for _, w := range words[:min(len(words), maxTerms)] {
			if w = squeezed(w); len(w) >= 6 && rules.Distance(w, r) <= 2 {
				return true
			}
		}
	}
	return false
}
