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

// The kinds that are not found by an expression.
var (
	everywhere = finding("everything", Misleading, "The rule matches every URL of the site.",
		"Write / if the whole site is meant.")
	lookAlike = finding("look-alike", Lost, "There is a character that looks like another one, such as a full-width sign, a typographic hyphen or a letter of another alphabet; it matches nothing of what is meant.",
		"Type the value again, in plain ASCII characters.")
	hiddenCharacter = finding("hidden-character", Lost, "There is an invisible character here, such as a byte order mark or a no-break space; the line does not mean what it seems to mean.",
		"Type the line again, with plain spaces.")
)

// slips are all kinds of slips that an expression finds, in the order in which they are looked
// for; of those that are at one place the first counts.
var slips = []pattern{
	{finding("repeated-field", Lost, "The name of the field is there twice; the second one is a part of the value.",
		"Write the field once."),
		expression(`(?i)^(?:dis)?allow\b`, `(?i)^user-?agent\b`), expression(`(?i)^user-?agent\b`)},
	{finding("method-in-path", Lost, "Rules are for all methods; with one before the path, it matches nothing.",
		"Write only the path."), expression(`(?i)^(?:get|post|head|put|delete)\s+/`), nil},
	{finding("comment-sign", Lost, "Only # begins a comment; what follows here is a part of the value, which matches nothing.",
		"Put # before a comment."),
		expression(`\s(?://|<!--|/\*|;|--|rem\b)`, `<!--`), expression(`\s(?://|<!--|/\*|--)`, `<!--`)},
	{finding("html-entity", Lost, "This is the form that a character has in HTML; in a robots.txt it is read as it is.",
		"Write the character itself, such as &."),
		expression(`&(?:amp|lt|gt|quot|nbsp|#\d+|#x[0-9A-Fa-f]+);`), nil},
	{finding("host-in-path", Lost, "A path begins after the host; with a host in it, it matches nothing.",
		"Write only the path, from the first / after the host."),
		expression(`^//[^/]+\.[a-z]{2,}`, `^/?https?:`, `^/?(?:www|m|blog|shop|cdn)\.[\w-]+\.[a-z]{2,}(?:/|$)`, `^[\w-]+\.(?:com|org|net|test|example|de|fr|uk|eu|io)(?:/|$)`, `^/(?:[\w-]+\.)+(?:com|org|net)(?:/|$)`), nil},
	{finding("file-path", Lost, "This is the place of a file on the server, not the path of a URL; it matches nothing.",
		"Write the path as it is in the URL."),
		expression(`^/?(?:var/www|srv/www|home/[^/]+/(?:public_html|www|htdocs)|usr/(?:local|share)/)`, `^/?[A-Za-z]:[\\/]`, `^/?(?:public_html|htdocs|httpdocs|wwwroot)/`, `^\.{1,2}/`, `^~/`), nil},
	{finding("word-for-path", Lost, "This is a word, not a path; it is read as a path of that name.",
		"Leave the value empty to disallow nothing, or write / for everything."),
		expression(`(?i)^(?:none|nothing|no|yes|all|everything|any|true|false|null|nil|n/a|on|off|-|empty|\.|\?|0|1)$`), nil},
	{finding("placeholder", Lost, "This is the placeholder of a template or of a program's routes; it is read as it is, and matches no URL of the site.",
		"Write * in its place."),
		expression(`/:[a-z_]\w*`, `\{\{?\s*[A-Za-z_][\w. ]*\}?\}`, `<(?:\w+:)?\w+>`, `%[sd](?:\W|$)`, `\$\{`, `/\$[a-z]\w*`, `/\[[a-z]{2,}(?:[ _-][a-z]+)*\](?:/|$)`, `(?i)^/?(?:path/to/|your[-_ ]|example[-_](?:path|folder|page))`),
		expression(`\{\{?\s*[A-Za-z_][\w. -]*\}?\}`, `^<[^>]*>$`, `^\[[^\]]*\]$`, `%[sd]`, `(?i)\b(?:your|some)[-_ ]?(?:bot|robot|crawler|user)`, `(?i)^(?:bot|robot|user-?agent|crawler)[-_ ]?name$`)},
	{finding("name-for-all", Lost, "Only * stands for all robots; this is read as the name of one robot.",
		"Write * alone."),
		nil, expression(`(?i)^(?:all|any|every|everyone|everybody|everything|anyone|bots?|robots?|crawlers?|spiders?|all[ _-]?(?:bots|robots|agents|crawlers|spiders|user[ -]?agents)|any[ _-]?(?:bot|robot|agent)|global|default|star|asterisk|others?|all others?)$`)},
	{finding("negated-name", Lost, "There is no way to write all robots but one: a name with a sign or a word before it is no robot's name.",
		"Write a group for that robot with an empty Disallow, and a group for *."),
		nil, expression(`^[!-]\s*\w`, `(?i)^(?:not|except|all except|all but|everyone but|\* except|\* -)\s`)},
	{finding("name-address", Lost, "This is an address or a host, not the name of a robot; robots are known by the name in their User-Agent.",
		"Write the robot's name; block addresses at the server."),
		nil, expression(`^\d{1,3}(?:\.(?:\d{1,3}|\*|x)){1,3}(?:/\d+)?$`, `^[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]+$`, `(?i)^https?:`, `(?i)^(?:[a-z0-9*-]+\.)+(?:com|net|org)$`, `^\S+@\S+$`)},
	{finding("quoted-value", Lost, "The value is in quotation marks, which are a part of it; it matches nothing.",
		"Write it without quotation marks."),
		expression("^[\"'`“”„‘’«»]", "[\"“”„«»]$"), expression("^[\"'`“”„‘’«»]", "[\"'`“”„‘’«»]$")},
	{finding("regular-expression", Lost, "This is a regular expression. In a robots.txt only * and a $ at the end have a meaning; every other sign is an ordinary character, and the rule matches nothing of what is meant.",
		"Write a plain path, with * for any characters and $ for the end; several rules for alternatives."),
		expression(`^\^`, `\((?:\?[:!=<i]|[^()]*\|)[^()]*\)`, `\[[^\]]*(?:a-z|A-Z|[0-9]-[0-9])[^\]]*\]`, `\[[^\]]+\][+?{]`, `\)[+?{]`, `\{\d+(?:,\d*)?\}`,
			`\\[dDwWsS./?+*$()\[\]-]`, `(?:^|/)\.\*`, `(?:[^ ]\.\+|\w\+\$)`, `/\?\$$`, `^[~@!]?~\*?\s`, `^m?[#|~]\^`), nil},
	{finding("name-pattern", Lost, "Names of robots are compared whole, and only * alone has a meaning; a pattern is no robot's name.",
		"Write the name alone, such as ExampleBot, one line for each robot."),
		nil, expression(`^\^`, `\.\*`, `\.\+`, `\\`, `\([^()]*\|`, `\)[?*+]`, `\[[A-Za-z-]{2,}\]`, `\{\d`, `\$$`, `^%|%$`, `(?i)^/.*/i?$`, `^~`)},
	{finding("glob", Lost, "Braces and ** are not read as a shell reads them: a brace is an ordinary character, and ** is *.",
		"Write one rule for each alternative, and a single *."),
		expression(`\{[^{}]*,[^{}]*\}`, `/\*\*(?:/|$)`, `\[![^\]]+\]`), nil},
	{finding("backslash", Lost, "A path of the web has / where this has a backslash; clients send no backslash.",
		"Write / for each backslash."), expression(`\\`), nil},
	{finding("separator", Lost, "Values are not separated by this sign: it is a part of the value, which matches nothing of what is meant.",
		"Write one line for each value."),
		expression(`[;|]\s*/`, `\s(?:and|or|und|et|&&)\s+/`, `,/`), expression(`[;|]`, `\w\s(?:and|or|&&)\s`)},
	{finding("double-escape", Lost, "The path is escaped twice: %25 is a % sign in the URL.",
		"Escape it once, such as %20 for a space."), expression(`%25[0-9A-Fa-f]{2}`), nil},
	{finding("escaped-slash", Misleading, "%2F is not the same as /: a rule with it matches only URLs that have it.",
		"Write / if the path has it."), expression(`(?i)%2f`), nil},
	{finding("query-at-end", Misleading, "A $ after ? matches only URLs with an empty query; a query with a value has an = or more behind it.",
		"Write ? without $ for URLs with any query."), expression(`^[^*]*[?]\$$`), nil},
	{finding("last-sign", Lost, "The sign at the end is a part of the path; it is likely meant to end it.",
		"Remove it, or write its escape if it is meant."), expression(`[,;>]$`), nil},
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
