package signal

import (
	"slices"
	"strings"
	"time"

	"heed/rules"
	"heed/rules/clock"
)

// terms.go reads lists of robots terms: "noindex, nofollow" in a META element, and the
// same with scopes in X-Robots-Tag ("ExampleBot: noindex").

// term is one word of a list.
type term struct {
	scope string // the crawler it is for, in lower case; empty for all
	name  string // in lower case
	value string // after the colon
}

// valued are the terms that have a value after a colon.
var valued = []string{"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}

// known are the terms without a value.
var known = []string{
	"all", "none", "index", "noindex", "follow", "nofollow", "noarchive", "nocache", "nosnippet",
	"notranslate", "noimageindex", "indexifembedded", "noai", "noimageai", "noodp", "noydir", "noyaca",
	"archive", "snippet", "nopagereadaloud",
}

// maxTerms is the number of terms of one statement that are kept although no purpose depends
// on them.
const maxTerms = 100

// tooMany is the Note of a statement of which terms are not kept.
const tooMany = "terms on which no purpose depends are left out: there are too many"

// parseTerms reads a list of terms. With scoped, a product token before a colon is the
// crawler that the following terms are for. Terms without comma between them are read
// when all are known.
func parseTerms(list string, scoped bool) []term {
	var all []term
	scope := ""
	for rest := list; rest != ""; {
		rest = strings.TrimLeft(rest, " \t\r\n\f,;")
		segment := rest
		if i := strings.IndexAny(rest, ",;"); i >= 0 {
			segment = rest[:i]
		}
		key, value, has := strings.Cut(segment, ":")
		key = strings.ToLower(strings.TrimSpace(key))
		switch {
		case has && slices.Contains(valued, key):
			if key == "unavailable_after" {
				segment = rest[:dateEnd(rest, scoped)]
				_, value, _ = strings.Cut(segment, ":")
			}
			all = append(all, term{scope, key, strings.TrimSpace(value)})
		case has && scoped && isToken(key):
			scope = key
			segment = segment[:strings.IndexByte(segment, ':')+1]
		default:
			for _, name := range names(segment) {
				all = append(all, term{scope: scope, name: name})
			}
		}
		rest = rest[len(segment):]
	}
	return all
}

// names returns the terms of a segment without commas: its words when all are known, else
// the segment.
func names(segment string) []string {
	words := strings.Fields(strings.ToLower(segment))
	if slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(known, w) }) {
		return []string{quote(strings.Join(words, " "))}
	}
	return words
}

// dateEnd returns where the term at the start of rest, whose value is a date, ends: at a
// comma that a known term or a scope follows. Dates contain commas and colons.
func dateEnd(rest string, scoped bool) int {
	for i := 0; i < len(rest); i++ {
		if rest[i] != ',' && rest[i] != ';' {
			continue
		}
		next := rest[i+1:]
		if j := strings.IndexAny(next, ",;"); j >= 0 {
			next = next[:j]
		}
		key, _, has := strings.Cut(strings.ToLower(next), ":")
		key = strings.TrimSpace(key)
		if slices.Contains(known, key) || has && (slices.Contains(valued, key) || scoped && isToken(key)) {
			return i
		}
	}
	return len(rest)
}

// isToken reports whether s, in lower case, may be the product token of a crawler.
func isToken(s string) bool {
	if s == "*" {
		return true
	}
	letters := false
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z':
			letters = true
		case c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return letters
}

// readTerms reads the terms of a list that are for agent, at a time.
func (s *Statement) readTerms(all []term, agent *rules.Agent, now time.Time) {
	s.Protocol = RobotsTerms
	for _, t := range all {
		if !concerns(t.scope, agent) {
			continue
		}
		word := t.name
		if t.value != "" {
			word = quote(word + ": " + t.value)
		}
		switch {
		case slices.Contains(s.Terms, word):
		case len(s.Terms) < maxTerms, slices.Contains(known, word):
			s.Terms = append(s.Terms, word)
		default:
			s.Note = tooMany
		}
		switch t.name {
		case "all", "index":
			s.say(Allow, Search)
		case "none", "noindex":
			s.say(Disallow, Search)
		case "noarchive", "nocache":
			s.say(Disallow, Archive)
		case "unavailable_after":
			at, ok := clock.Date(t.value)
			switch {
			case !ok:
				s.Fault = "the date of unavailable_after cannot be read"
			case now.After(at):
				s.say(Disallow, Search)
				s.Expired = true
			}
		}
	}
}

// concerns reports whether terms for a crawler are for agent: by any of its names, or for
// all.
func concerns(scope string, agent *rules.Agent) bool {
	if scope == "" || scope == "*" {
		return true
	}
	return agent != nil && slices.ContainsFunc(agent.Tokens, func(t rules.Token) bool { return t.Name == scope })
}

// ReadTerms returns whether terms, in lower case, let a page be indexed and its links be
// followed. All restrictions count, except under rules.REP1994: as in 1997, ALL wins over
// all other terms, and of two that contradict each other INDEX and FOLLOW do.
func ReadTerms(profile rules.Profile, terms []string) (index, follow bool) {
	has := func(word string) bool { return slices.Contains(terms, word) }
	index, follow = !has("none") && !has("noindex"), !has("none") && !has("nofollow")
	if profile == rules.REP1994 {
		index = index || has("all") || has("index")
		follow = follow || has("all") || has("follow")
	}
	return index, follow
}
