package signal

import (
	"strings"

	"heed/rules"
)

// Sentence states who does not allow what, in words of heed alone: "the site's licence does
// not allow training". Where it is stated is not part of it.
func (r *Refusal) Sentence() string {
	s, use := r.Statement, useWords[r.Purpose]
	switch {
	case s == nil:
		return r.Detail
	case s.unread():
		return "the licence that " + s.speaker() + " declares cannot be read"
	case s.unclear(r.Category) && r.Reason != rules.ReasonTooComplex && s.Demand == "":
		return "what " + s.speaker() + " states on " + use + " cannot be read"
	case s.Demand != "" && s.Says[r.Category] != Disallow:
		return s.speaker() + " allows " + use + " only " + demandWords(s.Demand)
	case len(s.Only) > 0:
		return s.speaker() + " permits only " + strings.Join(s.Only, " and ")
	}
	return s.speaker() + " does not allow " + use
}

// useWords are what is not allowed, by purpose.
var useWords = map[Purpose]string{
	PurposeSearch: "search", PurposeAgent: "use by agents", PurposeTraining: "training",
	PurposeArchive: "archiving", PurposeTDM: "text and data mining",
}

// speaker returns who states s.
func (s *Statement) speaker() string {
	switch {
	case s.Source == SourceLicence, s.Protocol == RSL && !s.unread():
		return "the site's licence"
	case s.Source == SourceRobots:
		return "the site's robots.txt"
	case s.Source == SourceTDMRep:
		return "the site's tdmrep.json"
	}
	return "the page"
}

// demandWords returns what a licence asks for, without the site's own text.
func demandWords(demand string) string {
	for _, d := range [...]struct{ prefix, words string }{
		{"payment", "for a payment"}, {"a licence from", "with a licence from its server"}, {"reporting", "with reports"},
		{"only certain users", "to certain users"}, {"only certain geos", "in certain countries"},
	} {
		if strings.HasPrefix(demand, d.prefix) {
			return d.words
		}
	}
	return "on its terms"
}
