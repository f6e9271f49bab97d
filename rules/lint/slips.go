package lint

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"heed/internal/base/memo"
	"heed/rules"
)

// A slip is what a site has written in a robots.txt by accident: a path or a name in the
// language of something else than robots.txt, or characters that are not what they seem to be.
type slip struct {
	kind     Kind
	from, to int // where in the text, in octets
}

// pattern is how a kind is found: the first match is the place. nil: it is not.
type pattern struct {
	kind Kind
	path func() *regexp.Regexp // in the value of a rule
	name func() *regexp.Regexp // in the value of a user-agent line
}

// slips are all kinds of slips that an expression finds, in the order in which they are looked
// for; of those that are at one place the first counts.
var slips = []pattern{
	{"repeated-field", expression(`(?i)^(?:dis)?allow\b`, `(?i)^user-?agent\b`), expression(`(?i)^user-?agent\b`)},
	{"method-in-path", expression(`(?i)^(?:get|post|head|put|delete)\s+/`), nil},
	{"comment-sign", expression(`\s(?://|<!--|/\*|;|--|rem\b)`, `<!--`), expression(`\s(?://|<!--|/\*|--)`, `<!--`)},
	{"html-entity", expression(`&(?:amp|lt|gt|quot|nbsp|#\d+|#x[0-9A-Fa-f]+);`), nil},
	{"host-in-path", expression(`^//[^/]+\.[a-z]{2,}`, `^/?https?:`, `^/?(?:www|m|blog|shop|cdn)\.[\w-]+\.[a-z]{2,}(?:/|$)`, `^[\w-]+\.(?:com|org|net|test|example|de|fr|uk|eu|io)(?:/|$)`, `^/(?:[\w-]+\.)+(?:com|org|net)(?:/|$)`), nil},
	{"file-path", expression(`^/?(?:var/www|srv/www|home/[^/]+/(?:public_html|www|htdocs)|usr/(?:local|share)/)`, `^/?[A-Za-z]:[\\/]`, `^/?(?:public_html|htdocs|httpdocs|wwwroot)/`, `^\.{1,2}/`, `^~/`), nil},
	{"word-for-path", expression(`(?i)^(?:none|nothing|no|yes|all|everything|any|true|false|null|nil|n/a|on|off|-|empty|\.|\?|0|1)$`), nil},
	{"placeholder", expression(`/:[a-z_]\w*`, `\{\{?\s*[A-Za-z_][\w. ]*\}?\}`, `<(?:\w+:)?\w+>`, `%[sd](?:\W|$)`, `\$\{`, `/\$[a-z]\w*`, `/\[[a-z]{2,}(?:[ _-][a-z]+)*\](?:/|$)`, `(?i)^/?(?:path/to/|your[-_ ]|example[-_](?:path|folder|page))`),
		expression(`\{\{?\s*[A-Za-z_][\w. -]*\}?\}`, `^<[^>]*>$`, `^\[[^\]]*\]$`, `%[sd]`, `(?i)\b(?:your|some)[-_ ]?(?:bot|robot|crawler|user)`, `(?i)^(?:bot|robot|user-?agent|crawler)[-_ ]?name$`)},
	{"name-for-all", nil, expression(`(?i)^(?:all|any|every|everyone|everybody|everything|anyone|bots?|robots?|crawlers?|spiders?|all[ _-]?(?:bots|robots|agents|crawlers|spiders|user[ -]?agents)|any[ _-]?(?:bot|robot|agent)|global|default|star|asterisk|others?|all others?)$`)},
	{"negated-name", nil, expression(`^[!-]\s*\w`, `(?i)^(?:not|except|all except|all but|everyone but|\* except|\* -)\s`)},
	{"name-address", nil, expression(`^\d{1,3}(?:\.(?:\d{1,3}|\*|x)){1,3}(?:/\d+)?$`, `^[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]+$`, `(?i)^https?:`, `(?i)^(?:[a-z0-9*-]+\.)+(?:com|net|org)$`, `^\S+@\S+$`)},
	{"quoted-value", expression("^[\"'`“”„‘’«»]", "[\"“”„«»]$"), expression("^[\"'`“”„‘’«»]", "[\"'`“”„‘’«»]$")},
	{"regular-expression", expression(`^\^`, `\((?:\?[:!=<i]|[^()]*\|)[^()]*\)`, `\[[^\]]*(?:a-z|A-Z|[0-9]-[0-9])[^\]]*\]`, `\[[^\]]+\][+?{]`, `\)[+?{]`, `\{\d+(?:,\d*)?\}`,
		`\\[dDwWsS./?+*$()\[\]-]`, `(?:^|/)\.\*`, `(?:[^ ]\.\+|\w\+\$)`, `/\?\$$`, `^[~@!]?~\*?\s`, `^m?[#|~]\^`), nil},
	{"name-pattern", nil, expression(`^\^`, `\.\*`, `\.\+`, `\\`, `\([^()]*\|`, `\)[?*+]`, `\[[A-Za-z-]{2,}\]`, `\{\d`, `\$$`, `^%|%$`, `(?i)^/.*/i?$`, `^~`)},
	{"glob", expression(`\{[^{}]*,[^{}]*\}`, `/\*\*(?:/|$)`, `\[![^\]]+\]`), nil},
	{"backslash", expression(`\\`), nil},
	{"separator", expression(`[;|]\s*/`, `\s(?:and|or|und|et|&&)\s+/`, `,/`), expression(`[;|]`, `\w\s(?:and|or|&&)\s`)},
	{"double-escape", expression(`%25[0-9A-Fa-f]{2}`), nil},
	{"escaped-slash", expression(`(?i)%2f`), nil},
	{"query-at-end", expression(`^[^*]*[?]\$$`), nil},
	{"last-sign", expression(`[,;>]$`), nil},
}

// expression returns an expression that matches what any of some expressions matches.
func expression(alternatives ...string) func() *regexp.Regexp {
	return memo.Expression("(?:" + strings.Join(alternatives, ")|(?:") + ")")
}

// maxText is the length of the longest text that is looked at, in bytes.
const maxText = 500

// slipsInPath returns the slips in the value of a rule: one at most of those that an expression
// finds, and those of its characters.
func slipsInPath(path string) []slip {
	if everything(path) {
		return []slip{{everywhere, 0, min(len(path), maxText)}}
	}
	return find(path, func(p *pattern) func() *regexp.Regexp { return p.path })
}

// slipsInName returns the slips in the value of a user-agent line.
func slipsInName(name string) []slip {
	return find(name, func(p *pattern) func() *regexp.Regexp { return p.name })
}

func find(text string, of func(*pattern) func() *regexp.Regexp) (found []slip) {
	text = text[:min(len(text), maxText)]
	for i := range slips {
		if x := of(&slips[i]); x != nil {
			if at := x().FindStringIndex(text); at != nil {
				found = append(found, slip{slips[i].kind, at[0], at[1]})
				break
			}
		}
	}
	return append(found, characters(text)...)
}

// everything reports whether a path matches all URLs and is neither "/" nor "*" nor "/*".
func everything(path string) bool {
	switch path {
	case "/", "*", "/*", "":
		return false
	}
	bare := strings.TrimSuffix(path, "$")
	return bare != "" && strings.Trim(bare, "*") == "" || strings.HasSuffix(bare, "*") && strings.Trim(bare[:len(bare)-1], "*") == "/" && bare[0] != '/' ||
		strings.HasPrefix(bare, "/*") && strings.Trim(bare[1:], "*") == "" || path == "*/"
}

// characters returns the first invisible character and the first look-alike in a text. Signs
// that look like others are ordinary in texts of the scripts that have them.
func characters(text string) (found []slip) {
	hidden, alike, latin := false, false, false
	wide := strings.IndexFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
	}) >= 0
	for i, r := range text {
		size := utf8.RuneLen(r)
		switch {
		case r < utf8.RuneSelf:
			latin = r|0x20 >= 'a' && r|0x20 <= 'z'
		case !hidden && rules.Invisible(r):
			hidden = true
			found = append(found, slip{hiddenCharacter, i, i + size})
		case !alike && (!wide && isAlike(r) || latin && unicode.In(r, unicode.Cyrillic, unicode.Greek)):
			alike = true
			found = append(found, slip{lookAlike, i, i + size})
		}
	}
	return found
}

// isAlike reports whether a sign looks like one of ASCII.
func isAlike(r rune) bool {
	return r >= '！' && r <= '～' || strings.ContainsRune("∗✱＊⁎٭•…–—−‐‑‒⁄∕﹨∶", r)
}

// magics are the first octets of files that are no text.
var magics = []string{"\x1f\x8b", "\x89PNG", "%PDF-", "PK\x03\x04", "\x7fELF", "GIF8", "\xff\xd8\xff", "RIFF", "BZh", "\xfd7zXZ", "\x28\xb5\x2f\xfd", "MZ"}

// isBinary reports whether a file without a rule is no text at all.
func isBinary(text string) bool {
	for _, magic := range magics {
		if strings.HasPrefix(text, magic) {
			return true
		}
	}
	return strings.Count(text[:min(len(text), 4096)], "\x00") > 8
}
