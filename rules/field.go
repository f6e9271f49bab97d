package rules

import "strings"

// FieldKind is what a line beyond RFC 9309's own says.
type FieldKind uint8

// The fields. Those that an operator may want to honour are kept with the
// policy; none of them touches access (RFC 9309 §2.2.4).
const (
	fieldUnknown   FieldKind = iota
	fieldUserAgent           // begins or continues a group (RFC 9309 §2.2.1)
	fieldAllow               // a rule (RFC 9309 §2.2.2)
	fieldDisallow            // a rule (RFC 9309 §2.2.2)

	Sitemap       // the URL of a sitemap, for everybody (sitemaps.org)
	CrawlDelay    // seconds between two requests of a group's agents
	RequestRate   // documents per time of a group's agents (Conner 1996)
	VisitTime     // hours of UTC at which a group's agents may come (Conner 1996)
	ContentSignal // what a group's content may be used for (Cloudflare 2025)
	ContentUsage  // what a group's content may be used for (IETF aipref)
	License       // where the licence of the content lies (RSL 1.0)
	Host          // the preferred name of the site (Yandex, until 2018)
	CleanParam    // query parameters that do not change a page (Yandex)
	Noindex       // never a standard; ignored by Google since 2019
	Nofollow      // never a standard; ignored by Google since 2019
	CacheDelay    // seconds between two requests of a caching robot
	Comment       // a word to the robot's operator (Conner 1996)
	RobotVersion  // the version of the record (Conner 1996)
)

// fieldNames are the names of the fields in lower case, as sites write them.
var fieldNames = [...]string{
	fieldUserAgent: "user-agent", fieldAllow: "allow", fieldDisallow: "disallow",
	Sitemap: "sitemap", CrawlDelay: "crawl-delay", RequestRate: "request-rate",
	VisitTime: "visit-time", ContentSignal: "content-signal", ContentUsage: "content-usage",
	License: "license", Host: "host", CleanParam: "clean-param", Noindex: "noindex",
	Nofollow: "nofollow", CacheDelay: "cache-delay", Comment: "comment", RobotVersion: "robot-version",
}

// String returns the field's name in lower case; empty for an unknown field.
func (k FieldKind) String() string {
	if int(k) < len(fieldNames) {
		return fieldNames[k]
	}
	return ""
}

// global reports whether a field speaks for the whole file and not for the
// group in which it stands.
func (k FieldKind) global() bool {
	return k == Sitemap || k == Host || k == CleanParam || k == License
}

// misspellings that Google's parser accepts.
var misspellings = map[string]FieldKind{
	"useragent": fieldUserAgent, "user agent": fieldUserAgent,
	"dissallow": fieldDisallow, "dissalow": fieldDisallow, "disalow": fieldDisallow,
	"diasllow": fieldDisallow, "disallaw": fieldDisallow,
	"site-map": Sitemap,
}

// fieldOf returns which field a key is. Keys of RFC 9309 and Sitemap are known
// by how they begin ("Disallowed" is Disallow), and in the misspellings above;
// exact reports that the key is written as it should be.
func fieldOf(key string) (kind FieldKind, exact bool) {
	for _, k := range [...]FieldKind{fieldDisallow, fieldAllow, fieldUserAgent, Sitemap} {
		name := fieldNames[k]
		if prefixFold(key, name) && strings.IndexByte(key, ' ') < 0 {
			return k, len(key) == len(name)
		}
	}
	for k := CrawlDelay; int(k) < len(fieldNames); k++ {
		if equalFold(key, fieldNames[k]) {
			return k, true
		}
	}
	if len(key) < len("disalow") {
		return fieldUnknown, false
	}
	for wrong, k := range misspellings {
		if prefixFold(key, wrong) && strings.IndexByte(key[len(wrong):], ' ') < 0 {
			return k, false
		}
	}
	return fieldUnknown, false
}

// embedded finds a further field within a value: a line break was lost, as in
// "User-agent: * Disallow: /". A field begins the value or follows white space
// or, on a user-agent line, a star. The result is where it begins.
func embedded(text string, value span, onAgentLine bool) (at int, found bool) {
	for i := value.from; i < value.to; i++ {
		colon := strings.IndexByte(text[i:value.to], ':')
		if colon < 0 {
			return 0, false
		}
		i += colon
		end := i
		for end > value.from && blank(text[end-1]) {
			end--
		}
		from := end
		for from > value.from && (letter(text[from-1]) || text[from-1] == '-') {
			from--
		}
		starts := from == value.from || blank(text[from-1]) || onAgentLine && text[from-1] == '*'
		if starts && mayFollow(text[from:end]) {
			return from, true
		}
	}
	return 0, false
}

// mayFollow reports whether a key is one of those that lose their line break.
func mayFollow(key string) bool {
	for _, k := range [...]FieldKind{fieldDisallow, fieldAllow, fieldUserAgent, Sitemap, CrawlDelay} {
		if equalFold(key, fieldNames[k]) {
			return true
		}
	}
	_, known := misspellings[strings.ToLower(key)]
	return known
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
