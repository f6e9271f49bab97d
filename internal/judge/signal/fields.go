package signal

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"heed/internal/base/safetext"
	"heed/internal/base/structured"
	"heed/internal/judge/signal/licence"
	"heed/internal/judge/signal/page"
	"heed/rules"
)

// fields are the names of the fields that may state something, in canonical form.
var fields = [...]string{"X-Robots-Tag", "Robots-Tag", "Content-Usage", "Content-Signal", "Tdm-Reservation", "Tdm-Policy"}

// Stated reports whether a header may have a statement. It is fast for one that has none.
func Stated(h http.Header) bool {
	for _, names := range [][]string{fields[:], misspelt[:]} {
		for _, name := range names {
			if len(h[name]) > 0 {
				return true
			}
		}
	}
	for _, line := range h["Link"] {
		if strings.Contains(strings.ToLower(line), "rsl+xml") {
			return true
		}
	}
	return false
}

// Statements returns the fields of a header that may have a statement, without the rest of the
// text that they are part of.
func Statements(h http.Header) http.Header {
	kept := make(http.Header)
	for _, name := range slices.Concat(fields[:], misspelt[:], []string{"Link"}) {
		if lines := h[name]; len(lines) > 0 {
			for _, line := range lines {
				kept[name] = append(kept[name], strings.Clone(line)) // it may be part of a whole head
			}
		}
	}
	return kept
}

// header adds the statements of the header of an answer. Each line of X-Robots-Tag has
// scopes of its own.
func (j *judge) header(h http.Header) {
	base := Statement{Source: SourceHeader, URL: j.in.URL}
	for _, name := range append([]string{"X-Robots-Tag", "Robots-Tag"}, misspelt[:]...) {
		for _, line := range h[name] {
			terms, unread := parseTerms(line, true)
			if name == "Robots-Tag" && strings.Contains(line, ";") {
				terms, unread = parseRobotsTag(line), false
			}
			s := named(base, name, line)
			if s.readTerms(terms, unread, j.in.Agent, j.in.Now); len(s.Terms) > 0 || s.Fault != "" {
				j.add(s)
			}
		}
	}
	if lines := h["Content-Usage"]; len(lines) > 0 {
		j.preference(named(base, "Content-Usage", strings.Join(lines, ", ")), "content-usage", lines)
	}
	for _, line := range h["Content-Signal"] {
		j.preference(named(base, "Content-Signal", line), "content-signal", []string{line})
	}
	if lines := h["Tdm-Reservation"]; len(lines) > 0 {
		j.preference(named(base, "tdm-reservation", strings.Join(lines, ", ")), "tdm-reservation", lines)
	}
	for _, line := range h["Tdm-Policy"] {
		j.preference(named(base, "tdm-policy", line), "tdm-policy", []string{line})
	}
	for _, line := range h["Link"] {
		for _, target := range licenceLinks(line) {
			j.declare(named(base, "Link", line), target)
		}
	}
}

// preferences are the names of META elements that are also those of fields.
var preferences = []string{"content-usage", "content-signal", "tdm-reservation", "tdm-policy"}

// preference adds the statement of a field or an element of one of these names.
func (j *judge) preference(s Statement, name string, lines []string) {
	switch name {
	case "content-usage":
		s.readUsage(lines)
	case "content-signal":
		s.readContentSignal(lines[0], true)
	case "tdm-reservation":
		s.reserve(strings.Join(lines, ", "), true)
	case "tdm-policy":
		s.Protocol = TDMRepP
	}
	j.add(s)
}

// named returns base as the statement of a field or an element.
func named(base Statement, name, value string) Statement {
	base.Name, base.Text = name, safetext.Excerpt(name+": "+value)
	return base
}

// parseRobotsTag reads a Robots-Tag: a list of product tokens, or "*", with the terms as
// parameters. It is split without regard to the syntax of structured fields, so that a
// bare ";" at the end of a member loses nothing.
func parseRobotsTag(line string) []term {
	var all []term
	for member := range strings.SplitSeq(line, ",") {
		parts := strings.Split(strings.ToLower(member), ";")
		scope := strings.Trim(parts[0], " \t\"")
		for _, p := range parts[1:] {
			name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
			if name != "" && value != "?0" && isToken(scope) {
				all = append(all, term{scope: scope, name: name, value: strings.TrimPrefix(strings.Trim(value, `"`), "?1")})
			}
		}
	}
	return all
}

// licenceLinks returns the targets of the links to RSL licences in a line of Link (RFC
// 8288 §3).
func licenceLinks(line string) []string {
	var all []string
	for rest := line; ; {
		from := strings.IndexByte(rest, '<')
		if from < 0 {
			return all
		}
		to := strings.IndexByte(rest[from:], '>')
		if to < 0 {
			return all
		}
		target := strings.TrimSpace(rest[from+1 : from+to])
		rest = rest[from+to+1:]
		var parameters, one string
		parameters, rest = structured.Cut(rest, ',')
		rel, kind := false, false
		for parameters != "" {
			one, parameters = structured.Cut(parameters, ';')
			name, value, _ := strings.Cut(one, "=")
			value = strings.ToLower(strings.Trim(value, " \t\""))
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "rel":
				rel = rel || slices.Contains(strings.Fields(value), "license")
			case "type":
				kind = kind || value == "application/rsl+xml"
			}
		}
		if rel && kind {
			all = append(all, target)
		}
	}
}

// head adds the statements in the head of a page.
func (j *judge) head(h *page.Head) {
	for i := range h.Elements {
		e := &h.Elements[i]
		s := Statement{Source: SourceMeta, URL: j.in.URL, Line: e.Line, Name: strings.TrimSpace("meta " + safetext.Excerpt(e.Name)), Text: safetext.Excerpt(e.Text)}
		switch {
		case e.Kind == page.Link:
			s.Name = "link"
			j.declare(s, e.Content)
		case e.Kind == page.Licence:
			s.Name, s.Protocol = "script", RSL
			d, err := licence.Parse([]byte(e.Content))
			j.licence(s, d, err)
		case slices.Contains(preferences, e.Name):
			j.preference(s, e.Name, []string{e.Content})
		case slices.Contains(robotsNames, e.Name) || e.Name != "*" && e.Name != "" && concerns(e.Name, j.in.Agent):
			terms, unread := parseTerms(e.Content, false)
			if s.readTerms(terms, unread || e.Broken, j.in.Agent, j.in.Now); len(s.Terms) > 0 || s.Fault != "" {
				j.add(s)
			}
		}
	}
}

// robotsNames are the names of META elements for all robots: that of the convention, and those
// that some sites write in its place.
var robotsNames = []string{"robots", "robot", "x-robots-tag", "robots-tag", "robots.txt"}

// PageNames returns the names of the META elements that may concern an agent, for
// page.NewScanner.
func PageNames(agent *rules.Agent) []string {
	all := slices.Concat(preferences, robotsNames)
	if agent != nil {
		for _, t := range agent.Tokens {
			all = append(all, t.Name)
		}
	}
	return all
}

// declare adds the declaration of a licence by a page, and the statements of the licence.
func (j *judge) declare(s Statement, target string) {
	s.Protocol = RSL
	address := ""
	if base, err := url.Parse(j.in.URL); err == nil {
		if u, err := base.Parse(target); err == nil {
			address = licenceURL(u.String())
		}
	}
	j.declared(s, address)
}
