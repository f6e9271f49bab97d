package signal

import (
	"cmp"
	"net/http"
	"strings"

	"heed/internal/judge/signal/wall"
)

// SiteAnswer is what a site's refusal, or its price, means. The empty one is an answer
// that is neither.
type SiteAnswer string

// The classes. The list is closed and its identifiers are stable.
const (
	Priced          SiteAnswer = "priced"           // the site asks for money
	Challenge       SiteAnswer = "challenge"        // a bot wall asks for a proof that a person is there
	SignatureWanted SiteAnswer = "signature-wanted" // the site asks for Web Bot Auth
	LicenceWanted   SiteAnswer = "licence-wanted"   // the site asks for an RSL licence
	Forbidden       SiteAnswer = "forbidden"        // 401 and 403 without another sign
	Rate            SiteAnswer = "rate"             // 429, and 503 with Retry-After
	Legal           SiteAnswer = "legal"            // 451
)

// SiteAnswers returns all classes.
func SiteAnswers() []SiteAnswer {
	return []SiteAnswer{Priced, Challenge, SignatureWanted, LicenceWanted, Forbidden, Rate, Legal}
}

// Words returns a sentence about the class; of an unknown one its name.
func (a SiteAnswer) Words() string { return cmp.Or(answerWords[a], string(a)) }

var answerWords = map[SiteAnswer]string{
	Priced:          "the site asks for money",
	Challenge:       "a bot wall asks for proof that a person is there",
	SignatureWanted: "the site asks for signed requests (Web Bot Auth)",
	LicenceWanted:   "the site asks for a licence (RSL)",
	Forbidden:       "the site forbids it",
	Rate:            "the site asks for fewer requests",
	Legal:           "the site gives legal reasons",
}

// crawlerErrors are the reasons in the field Crawler-Error (Cloudflare pay per crawl)
// that say more than the status. InternalError and InvalidContentPrice are faults of the
// site.
var crawlerErrors = map[string]SiteAnswer{
	"crawlerforbidden": Forbidden, "strongauthrequired": SignatureWanted, "invalidsignature": SignatureWanted,
	"missingcrawlerprice": Priced, "invalidcrawlerpricevalue": Priced, "paymentfailed": Priced,
	"invalidcrawlerexactprice": Priced, "invalidcrawlermaxprice": Priced, "conflictingpriceheaders": Priced,
}

// Classify returns the class of a site's answer, by its status and header alone: the
// fields decide before the status. A 503 without Retry-After is an ordinary failure.
func Classify(status int, h http.Header) SiteAnswer {
	if wall.Field(status, h) != "" {
		return Challenge
	}
	if status < 400 {
		return ""
	}
	if class := crawlerErrors[strings.ToLower(strings.TrimSpace(h.Get("Crawler-Error")))]; class != "" {
		return class
	}
	switch {
	case (status == http.StatusUnauthorized || status == http.StatusPaymentRequired) && asksForLicence(h):
		return LicenceWanted
	case status == http.StatusPaymentRequired:
		return Priced
	case (status == http.StatusForbidden || status == http.StatusUnauthorized) && h.Get("Accept-Signature") != "":
		return SignatureWanted
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return Forbidden
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && h.Get("Retry-After") != "":
		return Rate
	case status == http.StatusUnavailableForLegalReasons:
		return Legal
	}
	return ""
}

// asksForLicence reports whether a challenge of WWW-Authenticate has the scheme License
// (RSL, Crawler Authorization Protocol).
func asksForLicence(h http.Header) bool {
	for _, line := range h.Values("Www-Authenticate") {
		for part := range strings.SplitSeq(line, ",") {
			if scheme, _, _ := strings.Cut(strings.TrimSpace(part), " "); strings.EqualFold(scheme, "License") {
				return true
			}
		}
	}
	return false
}
