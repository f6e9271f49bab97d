package signal

import (
	"slices"
	"strings"
	"time"

	"heed/internal/base/safetext"
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
// crawler that the following terms are for, and so are those in a list before it. Terms
// without comma between them are read when all are known, and others as looseNames does;
// unread reports that a restriction may be among what was not read.
func parseTerms(list string, scoped bool) (all []term, unread bool) {
	p := termParser{scoped: scoped, scopes: []string{""}}
	for rest := plainList(list); rest != ""; {
		rest = strings.TrimLeft(rest, " \t\r\n\f,;")
		rest = rest[p.segment(rest):]
	}
	p.flush()
	return p.all, p.unread
}

// termParser reads a list of terms.
type termParser struct {
	scoped bool
	scopes []string // the crawlers that the next terms are for; "": all
	tokens []string // the segments before this one that may be names of crawlers
	all    []term
	unread bool
}

// segment reads the segment at the start of rest and returns its length.
func (p *termParser) segment(rest string) int {
	if n := p.scope(rest); n > 0 {
		return n
	}
	segment := rest
	if i := strings.IndexAny(rest, ",;"); i >= 0 {
		segment = rest[:i]
	}
	at := strings.IndexAny(segment, ":=")
	key, value := segment, ""
	if at >= 0 {
		key, value = segment[:at], segment[at+1:]
	}
	key = strings.ToLower(strings.TrimSpace(key))
	name := valuedName(key)
	switch {
	case strings.HasPrefix(key, "unavailable_after "):
		name, value = "unavailable_after", segment[strings.Index(strings.ToLower(segment), "unavailable_after ")+len("unavailable_after "):]
		at = len(segment) - len(value) - 1
		fallthrough
	case at >= 0 && slices.Contains(valued, name):
		if name == "unavailable_after" {
			segment = rest[:dateEnd(rest, p.scoped)]
			value = segment[at+1:]
		}
		p.add(term{name: name, value: strings.TrimSpace(value)})
	default:
		p.names(segment)
	}
	return len(segment)
}

// valuedName returns the name that a term with a value has in valued.
func valuedName(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, " ", "_"), "unavailable-after", "unavailable_after")
}

// scope reads the name of a crawler and the colon at the start of rest and returns their length;
// 0 if there is none. It looks no further, since a list may have any number of them.
func (p *termParser) scope(rest string) int {
	at := strings.IndexAny(rest, ",;:=")
	if !p.scoped || at < 0 || rest[at] != ':' {
		return 0
	}
	key := strings.ToLower(strings.TrimSpace(rest[:at]))
	token, _, _ := strings.Cut(key, "/")
	if !isToken(token) || slices.Contains(valued, valuedName(key)) || knownTerm(key) != "" || slices.Contains(fillers, squeezed(key)) {
		return 0
	}
	p.scopes, p.tokens = append(p.tokens, token), nil
	return at + 1
}

// add adds a term for all crawlers that it is for.
func (p *termParser) add(t term) {
	p.flush()
	for _, t.scope = range p.scopes {
		p.all = append(p.all, t)
	}
}

// flush adds the segments that might have been names of crawlers as terms.
func (p *termParser) flush() {
	tokens := p.tokens
	p.tokens = nil
	for _, name := range tokens {
		p.add(term{name: name})
	}
}

// names adds the terms of a segment without commas: its words when all are known, else what
// looseNames reads, else the segment.
func (p *termParser) names(segment string) {
	words := strings.Fields(strings.ToLower(segment))
	if slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(known, w) }) {
		text := safetext.Excerpt(strings.Join(words, " "))
		terms, crawler, unread := looseNames(segment)
		p.unread = p.unread || unread
		switch {
		case crawler != "" && len(terms) > 0:
			p.scopes, words = []string{crawler}, terms
		case len(terms) > 0:
			words = terms
		case p.scoped && isToken(text) && len(p.tokens) < maxScopes:
			p.tokens = append(p.tokens, text)
			return
		default:
			words = []string{text}
		}
	}
	for _, name := range words {
		p.add(term{name: name})
	}
}

// maxScopes is the number of crawlers in a list before terms.
const maxScopes = 20

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
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return s == "*" || strings.Trim(s, letters+"0123456789-_.") == "" && strings.ContainsAny(s, letters)
}

// readTerms reads the terms of a list that are for agent, at a time. unread is that of
// parseTerms.
func (s *Statement) readTerms(all []term, unread bool, agent *rules.Agent, now time.Time) {
	s.Protocol = RobotsTerms
	if unread {
		s.Fault = faultUnread
	}
	for _, t := range all {
		if !concerns(t.scope, agent) {
			continue
		}
		word := t.name
		if t.value != "" {
			word = safetext.Excerpt(word + ": " + t.value)
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
