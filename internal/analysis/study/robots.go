package study

import (
	"slices"
	"strings"
	"sync"

	"heed/rules"
)

// The categories of robots. A robot that serves several uses is in the one that its
// operator names first.
const (
	catSearch   = "search"
	catAISearch = "ai-search"
	catTraining = "ai-training"
	catAgent    = "ai-agent"
	catSEO      = "seo"
	catArchive  = "archive"
	catPreview  = "preview"
	catMonitor  = "monitor"
	catFeed     = "feed"
	catTool     = "tool"
	catHeadless = "headless"
	catOther    = "other robot"
	catNone     = ""
	catUnnamed  = "no name"
	noName      = "(no name)"       // a User-Agent that names no robot, as those of browsers
	noUserAgent = "(no User-Agent)" // no User-Agent at all
	noSite      = "(site not named)"
)

// known is the built-in list of robots: product tokens in lower case by category.
var known = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for category, list := range map[string]string{
		catSearch: `googlebot googlebot-image googlebot-video googlebot-news googlebot-mobile storebot-google
		google-inspectiontool googleother googleother-image googleother-video
		adsbot-google adsbot-google-mobile mediapartners-google apis-google
		feedfetcher-google bingbot msnbot msnbot-media bingpreview adidxbot yandexbot yandeximages
		yandexmobilebot yandexmedia yandexvideo yandexnews yandexaccessibilitybot
		baiduspider baiduspider-image baiduspider-render duckduckbot slurp applebot
		yisouspider sogou seznambot naverbot yeti coccocbot coccocbot-web
		coccocbot-image petalbot exabot qwantify qwantbot mojeekbot gigabot 360spider
		haosouspider daum daumoa teoma psbot bravebot wotbox ia_archiver
		ezooms sistrix gigablast findxbot mail.ru_bot voilabot marginalia kagibot`,
		catAISearch: `oai-searchbot perplexitybot claude-searchbot duckassistbot youbot
		amzn-searchbot applebot-search phindbot iaskbot iaskspider andibot linerbot
		bedrockbot kagi-fetcher`,
		catTraining: `gptbot claudebot claude-web anthropic-ai ccbot bytespider
		tiktokspider google-extended google-cloudvertexbot applebot-extended amazonbot
		meta-externalagent facebookbot cohere-ai cohere-training-data-crawler diffbot
		ai2bot ai2bot-dolma imagesiftbot omgili omgilibot webzio-extended timpibot
		pangubot kangaroo img2dataset laion-huggingface-processor sbintuitionsbot
		velenpublicwebcrawler icc-crawler friendlycrawler isscyberriskcrawler
		deepseekbot chatglm-spider cotoyogi crawlspace panscient semanticscholarbot
		factset_spyderbot turnitinbot mistralai-training`,
		catAgent: `chatgpt-user claude-user perplexity-user meta-externalfetcher
		mistralai-user google-agent gemini-deep-research novaact
		amazonbuyforme manus-user duckassist-user bingbot-copilot amzn-user
		google-notebooklm cohere-user phind-user`,
		catSEO: `ahrefsbot ahrefssiteaudit semrushbot semrushbot-ba semrushbot-si
		siteauditbot dotbot mj12bot rogerbot blexbot dataforseobot serpstatbot
		barkrowler seokicks seokicks-robot megaindex linkdexbot
		spbot netestate seobilitybot serankingbacklinksbot mauibot
		zoominfobot contentkingbot oncrawl botify deepcrawl lumar sitebulb`,
		catArchive: `archive.org_bot archive-it heritrix arquivo-web-crawler
		special_archiver nicecrawler webrecorder browsertrix brozzler
		internetarchive ukwa bnf.fr_bot`,
		catPreview: `facebookexternalhit facebookcatalog twitterbot linkedinbot slackbot
		slackbot-linkexpanding slack-imgproxy discordbot telegrambot whatsapp
		pinterestbot pinterest skypeuripreview redditbot embedly tumblr
		vkshare iframely mastodon bluesky`,
		catMonitor: `uptimerobot pingdom pingdom.com_bot statuscake site24x7
		updownbot betteruptime uptimebot censysinspect internetmeasurement
		nmap zgrab masscan shodan netcraftsurveyagent chrome-lighthouse
		gtmetrix datadogsynthetics newrelicpinger w3c_validator`,
		catFeed: `feedly feedlybot feedbin inoreader newsblur rssbot feedburner
		universalfeedparser magpierss netnewswire theoldreader feedspot flipboardproxy
		liferea livejournal.com
		universal-feed-parser simplepie freshrss miniflux`,
		catTool: `curl wget python-requests python-urllib python-httpx aiohttp httpx
		scrapy go-http-client java okhttp apache-httpclient libwww-perl lwp-trivial
		www-mechanize node-fetch axios undici guzzlehttp ruby faraday
		httpie postmanruntime insomnia reqwest winhttp libcurl aria2 httrack
		nutch colly jakarta dart powershell typhoeus rest-client`,
		catHeadless: `headlesschrome phantomjs puppeteer playwright selenium slimerjs
		electron`,
	} {
		for _, token := range strings.Fields(list) {
			all[token] = category
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
