package rules

import (
	"strings"
	"unicode"
)

// What is known of the names of robots: how they are spelt, which words of a User-Agent string
// name none, and which robots obey the groups of others.

// compatibility is the words in User-Agent strings that are there for historical
// reasons and name no robot. A site that writes "User-agent: mozilla/5" does not
// mean every program that claims to be compatible with Mozilla.
var compatibility = wordSet(`mozilla applewebkit khtml gecko like chrome
	chromium safari version mobile firefox edge edg opr trident msie rv windows nt
	macintosh intel mac os x x11 linux android iphone ipad ipod cpu compatible u
	languages build win64 wow64 x64 x86_64 i686 i386 amd64 aarch64 arm64 wv tablet
	nexus pixel 5x touch crios fxios edga edgios ppc cros`)

// genericWords are part of too many names to be a name in a list of names.
var genericWords = wordSet(`a an and bot bots browser checker client collector crawl
	crawler download downloader email engine explorer for free image images
	internet link links mail net news of offline or page robot robots search site
	spider spiders sucker the tool tools user agent web website www`)

// chains contains the groups that an agent obeys when none has its own name, the
// nearest first, as the crawlers' vendors document them.
var chains = map[string][]string{
	"googlebot-image":       {"googlebot"},
	"googlebot-video":       {"googlebot"},
	"googlebot-news":        {"googlebot"},
	"google-inspectiontool": {"googlebot"},
	"google-cloudvertexbot": {"googlebot"},
	"googleother-image":     {"googleother"},
	"googleother-video":     {"googleother"},
	"applebot":              {"googlebot"},
	"bingbot":               {"msnbot"},
	"slurp":                 {"yahoo"},
	"ahrefssiteaudit":       {"ahrefsbot"},
}

// yandex are the robots of Yandex, without that name before theirs; they obey
// its group when there is none for them.
var yandex = wordSet(`bot accessibilitybot additional additionalbot blogs calendar
	direct directdyn favicons imageresizer images market media metrika mobilebot
	mobilescreenshotbot news ontodb pagechecker renderresourcesbot screenshotbot
	searchshop sitelinks spravbot tracker turbo vertis verticals video videoparser
	webmaster`)

// fallbacks returns the names under which name obeys groups, when there is
// none for itself, the nearest first.
func fallbacks(name string) []string {
	if chain := chains[name]; chain != nil {
		return chain
	}
	family, robot, _ := strings.Cut(name, "-")
	if robot != "" && (family == "baiduspider" || family == "semrushbot") {
		return []string{family}
	}
	if robot, ok := strings.CutPrefix(name, "yandex"); ok && yandex[robot] {
		return []string{"yandex"}
	}
	return nil
}

func wordSet(list string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// nameOctet reports whether c may occur in a name: letters, digits, octets of
// letters beyond ASCII and a few signs that real names contain.
func nameOctet(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c >= 0x80:
		return true
	}
	return c == '.' || c == '_' || c == '-' || c == '!' || c == '\''
}

// cleanName returns the name that text spells: lower case, words with one
// blank between them, without the signs around them.
func cleanName(text string) string {
	if oneWord(text) {
		return strings.ToLower(text)
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r < 0x80 && !nameOctet(byte(r)) })
	return strings.ToLower(trimName(strings.Join(words, " ")))
}

// trimName returns a name without the signs around it.
func trimName(name string) string { return strings.Trim(name, "._-!' ") }

// allRobots reports whether a name is the star: no letter or digit is joined to its stars.
// Stars around a name are not part of it: "*bot" is the name "bot".
func allRobots(name string) bool {
	rest := strings.TrimLeft(name, "*")
	if len(rest) == len(name) {
		return false
	}
	joined := strings.Fields("x" + rest)[0][1:]
	return joined == "" || !nameOctet(joined[0]) ||
		!strings.ContainsFunc(joined, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// oneWord reports whether text is a clean name but for its case, as nearly all
// names in files are.
func oneWord(text string) bool {
	for i := range len(text) {
		if c := text[i]; !letter(c) && (c < '0' || c > '9') && (c != '-' || i == 0 || i == len(text)-1) {
			return false
		}
	}
	return true
}

// noRobot reports whether every word of a clean name is one of
// compatibility, a number, a build or a language.
func noRobot(name string) bool {
	for word := range strings.FieldsSeq(name) {
		if !compatibility[word] && !versionLike(word) && !languageTag(word) && !deviceModel(word) {
			return false
		}
	}
	return true
}

// versionLike reports whether a word is a number with or without points, "v1.2" included.
func versionLike(word string) bool {
	return strings.Trim(strings.TrimPrefix(word, "v"), "0123456789._-") == ""
}

// languageTag reports whether a word looks like "en-us".
func languageTag(word string) bool {
	return len(word) == 5 && (word[2] == '-' || word[2] == '_') && letters(word[:2]) && letters(word[3:])
}

// deviceModel reports whether a word looks like the "SM-G960F" of a telephone.
func deviceModel(word string) bool {
	rest, ok := strings.CutPrefix(word, "sm-")
	return ok && strings.ContainsAny(rest, "0123456789")
}

func letters(s string) bool {
	for i := range len(s) {
		if !letter(s[i]) {
			return false
		}
	}
	return true
}

// withoutCompatible returns a name without what follows it about robots that it is
// compatible with, as in "SentiBot www.sentibot.eu (compatible with Googlebot)".
func withoutCompatible(name string) string {
	const mark = "compatible with "
	for i := range max(0, len(name)-len(mark)+1) {
		if strings.EqualFold(name[i:i+len(mark)], mark) && (i == 0 || !nameOctet(name[i-1])) {
			if noRobot(cleanName(name[:i])) {
				break
			}
			return name[:i]
		}
	}
	return name
}

// CutName returns the name that Google's parser sees in a value, which is not empty: "*" alone or
// before white space, else the part before the first octet that is neither a
// letter nor "-" nor "_".
func CutName(value string) string {
	if value[0] == '*' && (len(value) == 1 || strings.IndexByte(" \t\v\f", value[1]) >= 0) {
		return "*"
	}
	end := 0
	for end < len(value) && (value[end]|0x20 >= 'a' && value[end]|0x20 <= 'z' || value[end] == '-' || value[end] == '_') {
		end++
	}
	return strings.ToLower(value[:end])
}
