package signal_test

import (
	"testing"

	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// The sentence of a refusal says who does not allow what, for every kind of statement.
func TestHeed_RefusalsSayWhoDoesNotAllowWhat(t *testing.T) {
	t.Parallel()
	const licensed = "License: https://site.example/license.xml\n"
	rsl := func(terms string) request {
		return request{robots: licensed, licence: `<rsl><content url="/"><license>` + terms + `</license></content></rsl>`}
	}
	for want, c := range map[string]struct {
		request
		signal.Purpose
	}{
		"the site's robots.txt does not allow training":                {request{robots: "User-agent: *\nContent-Signal: ai-train=no\n"}, signal.PurposeTraining},
		"the site's robots.txt does not allow search":                  {request{robots: "User-agent: *\nContent-Usage: / search=n\n"}, signal.PurposeSearch},
		"the site's tdmrep.json does not allow text and data mining":   {request{tdmrep: `[{"location": "/", "tdm-reservation": 1}]`}, signal.PurposeTDM},
		"the site's licence does not allow training":                   {rsl(`<prohibits type="usage">ai-train</prohibits>`), signal.PurposeTraining},
		"the site's licence permits only ai-train":                     {rsl(`<permits type="usage">ai-train</permits>`), signal.PurposeSearch},
		"the site's licence permits only search and ai-input":          {rsl(`<permits type="usage">ai-input <![CDATA[x]]> search</permits>`), signal.PurposeTraining},
		"the site's licence does not allow use by agents":              {rsl(`<permits type="usage">poetry</permits>`), signal.PurposeAgent},
		"the site's licence allows search only for a payment":          {rsl(`<permits type="usage">search</permits><payment type="crawl"/>`), signal.PurposeSearch},
		"the site's licence allows search only with reports":           {rsl(`<permits type="usage">all</permits><reporting type="audit"/>`), signal.PurposeSearch},
		"the site's licence allows training only to certain users":     {rsl(`<permits type="usage">all</permits><permits type="user">education</permits>`), signal.PurposeTraining},
		"the site's licence allows training only in certain countries": {rsl(`<permits type="usage">all</permits><permits type="geo">EU</permits>`), signal.PurposeTraining},
		"the site's licence allows training only with a licence from its server": {request{robots: licensed,
			licence: `<rsl><content url="/" server="https://l.example/"><license/></content></rsl>`}, signal.PurposeTraining},
		"the licence that the site's robots.txt declares cannot be read": {request{robots: licensed, licence: "<", profile: rules.Strict}, signal.PurposeTraining},
		"the page does not allow archiving":                              {request{header: []string{"X-Robots-Tag: noarchive"}}, signal.PurposeArchive},
		"the page does not allow search":                                 {request{head: "<meta name=robots content=noindex>"}, signal.PurposeSearch},
		"the page does not allow training":                               {request{header: []string{"Content-Usage: train-ai=n"}}, signal.PurposeTraining},
	} {
		refusal, refused := c.request.judge(t).Refuses(c.Purpose)
		got := refusal.Sentence()
		must.True(t, refused && got == want, "refused %v: %q, want %q", refused, got, want)
	}
}
