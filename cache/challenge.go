package cache

import (
	"bytes"
	"net/http"
)

// wallHeaders are fields by which a wall says that its answer is not the
// site's: the value is what they hold then, empty for any.
var wallHeaders = []struct{ name, value, wall string }{
	{"Cf-Mitigated", "challenge", "Cloudflare"},
	{"X-Amzn-Waf-Action", "", "AWS WAF"},
	{"X-Vercel-Mitigated", "challenge", "Vercel"},
}

// wallMarks occur in the challenge pages of walls and not in pages that merely
// stand behind one. They count in HTML only: a robots.txt may name such paths.
var wallMarks = []struct{ mark, wall string }{
	{"_cf_chl_opt", "Cloudflare"},
	{"gokuProps", "AWS WAF"},
	{"Incapsula incident ID", "Imperva"},
	{"captcha-delivery.com/", "DataDome"},
	{"px-captcha", "HUMAN"},
	{"/_sec/cp_challenge/", "Akamai"},
	{"bm-verify=", "Akamai"},
	{"anubis_challenge", "Anubis"},
	{"/.within.website/x/cmd/anubis/", "Anubis"},
	{"sucuri_cloudproxy_js", "Sucuri"},
	{"/.well-known/ddos-guard/", "DDoS-Guard"},
	{"/.well-known/sgcaptcha/", "SiteGround"},
	{"/_fs-ch-", "Fastly"},
	{`document.cookie="__test=`, "testcookie"},
}

// maxChallenge is how much of a page is searched: such pages are short.
const maxChallenge = 64 << 10

// challenge returns whose challenge page a 2xx answer is, or "". Such a page is
// neither the site's robots.txt nor a word on whether there is one.
func challenge(h http.Header, body []byte) string {
	for _, f := range wallHeaders {
		if v := h.Get(f.name); v != "" && (f.value == "" || v == f.value) {
			return f.wall
		}
	}
	if !isHTML(h, body) {
		return ""
	}
	body = body[:min(len(body), maxChallenge)]
	for _, m := range wallMarks {
		if bytes.Contains(body, []byte(m.mark)) {
			return m.wall
		}
	}
	return ""
}
