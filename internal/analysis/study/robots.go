package study

import (
	_ "embed" // robots.list
	"slices"
	"strings"
	"sync"

	"heed/rules"
)

// The categories of robots that the code knows; robots.list has more.
const (
	catAISearch = "ai-search"
	catTraining = "ai-training"
	catAgent    = "ai-agent"
	catOther    = "other robot"
	catNone     = ""
	catUnnamed  = "no name"
	noName      = "(no name)"       // a User-Agent that names no robot, as those of browsers
	noUserAgent = "(no User-Agent)" // no User-Agent at all
	noSite      = "(site not named)"
)

// robotsList is the built-in list of robots: each category, and its product tokens in lower case.
// A robot that serves several uses is in the one that its operator names first.
//
//go:embed robots.list
var robotsList string

// known returns the category of each product token of robotsList.
var known = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	category := ""
	for word := range strings.FieldsSeq(robotsList) {
		if name, begins := strings.CutSuffix(word, ":"); begins {
			category = name
		} else {
			all[word] = category
		}
	}
	return all
})

// ai are the categories of the robots that Liu et al. study.
func ai(category string) bool {
	return category == catTraining || category == catAISearch || category == catAgent
}

// who is a User-Agent string, identified.
type who struct {
	agent    *rules.Agent
	token    string // of the built-in list if any name is in it, else the agent's name
	category string
	known    bool   // token is in the built-in list
	browser  bool   // it names no robot
	hash     uint64 // of the string
	text     string
	// parts are the tokens of AI robots that the string contains, as Liu et al. read it.
	parts []string
}

// identify finds the token of a User-Agent string, as heed does for requests.
func identify(userAgent string) *who {
	w := &who{agent: rules.Identify(userAgent), text: userAgent}
	if userAgent == "-" {
		w.text = ""
	}
	w.hash = hashOf(w.text)
	switch {
	case w.text == "":
		w.token, w.agent, w.category = noUserAgent, rules.Identify(""), catUnnamed
		return w
	case len(w.agent.Tokens) == 0:
		w.token, w.browser = noName, true
	}
	for _, t := range w.agent.Tokens {
		if t.Name == "java" && onPhone(userAgent) {
			continue // Java ME, a word of phones
		}
		if category, ok := known()[t.Name]; ok {
			w.token, w.category, w.known = t.Name, category, true
			break
		}
	}
	if w.token == "" {
		w.token = strings.ToLower(w.agent.Name())
		w.category = catOther
		if browsers[w.token] || (strings.HasPrefix(userAgent, "Mozilla/") || onPhone(userAgent)) && !looksRobotic(w.token, userAgent) {
			w.token, w.category, w.browser = noName, catNone, true
		}
	}
	lower := strings.ToLower(userAgent)
	for token, category := range known() {
		if ai(category) && strings.Contains(lower, token) {
			w.parts = append(w.parts, token)
		}
	}
	return w
}

// browsers are the names of browsers whose User-Agent does not begin as those of others.
var browsers = map[string]bool{"opera": true, "midori": true, "dalvik": true, "lynx": true, "links": true, "elinks": true, "w3m": true, "konqueror": true, "epiphany": true, "dillo": true, "cfnetwork": true}

// phones are what the browsers and programs of phones and other devices in the hands of people
// have in their User-Agent, in lower case: profiles of Java ME, systems, browsers, makers'
// platforms and the library of Apple's systems.
var phones = []string{
	"midp", "cldc", "up.browser", "openwave", "obigo", "netfront", "semc-browser", "teleca", "jasmine", "polaris/", "nucleus/", "maui", "wap browser", "wap1", "wap2",
	"symbian", "series60", "series 60", "series40", "s60/", "windows ce", "windows phone", "iemobile", "windows mobile", "palmos", "palmsource", "webos", "bada/", "maemo", "meego",
	"tizen", "kaios", "brew mp", " brew/", "blackberry", "playbook", "android", "iphone", "ipad", "ipod", "darwin/", "cfnetwork", "kindle", "silk/",
	"opera mini", "opera mobi", "ucweb", "ucbrowser", "uc browser", "mqqbrowser", "fennec", "minimo", "blazer", "docomo", "kddi-", "j-phone", "softbank", "vodafone", "nintendo", "playstation",
}

// onPhone reports whether a string is of a phone or another device of people. Robots that
// imitate one name themselves beside it.
func onPhone(userAgent string) bool {
	return hasAny(strings.ToLower(userAgent), phones)
}

func hasAny(s string, marks []string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(s, mark) })
}

// looksRobotic reports whether a string that begins as those of browsers do is of a robot
// that is not in the list: its name, or what it says of itself, has a robot's mark.
func looksRobotic(token, userAgent string) bool {
	lower := strings.ToLower(userAgent)
	return hasAny(token, []string{"bot", "crawl", "spider", "slurp", "fetch", "scan", "archiv"}) ||
		strings.Contains(lower, "(compatible;") && strings.Contains(lower, "http")
}
