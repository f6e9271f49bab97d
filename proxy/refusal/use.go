package refusal

import (
	"fmt"
	"strings"

	"heed/internal/judge/signal"
	"heed/rules"
)

// UseText returns why r refuses the use of a page, for the record. It has the place of the
// statement, and of the site's text the demand of a licence alone.
func UseText(r *signal.Refusal) string {
	text := fmt.Sprintf("for the purpose %s: %s", r.Purpose, r.Detail)
	if s := r.Statement; s != nil {
		text += "; " + Place(s)
	}
	return text
}

// Place returns where a statement is: the URL and the line, or the field in the header.
func Place(s *signal.Statement) string { return placeIn(s, legible(s.URL)) }

func placeIn(s *signal.Statement, url string) string {
	switch {
	case s.Source == signal.SourceHeader:
		return s.Name + " in the header of " + url
	case s.Line > 0:
		return fmt.Sprintf("%s, line %d", url, s.Line)
	}
	return url
}

// useSentence states which statement of the site refuses the use of a page, and where it is.
func (a *Answer) useSentence() string {
	r := a.of.Use
	if r == nil { // of an observed request
		return "Refused by heed: " + a.of.Entry.Detail
	}
	text := "Refused by heed: " + r.Sentence()
	if r.Statement != nil {
		_, short, _ := strings.Cut(legible(r.Statement.URL), "://")
		text += ": " + placeIn(r.Statement, short)
	}
	return text
}

// useDetail explains a refusal by a statement to a person.
func (a *Answer) useDetail() string {
	r := a.of.Use
	if r == nil {
		return a.of.Entry.Detail
	}
	text := fmt.Sprintf("%s states the purpose %s for this client, and %s", a.forReader("The operator of this proxy", "heed run --purpose, or proxy.toml here,"), r.Purpose, r.Detail)
	if s := r.Statement; s != nil {
		text += " (" + Place(s) + ")"
	}
	if r.Reason == rules.ReasonLicence {
		return text + ". heed never pays and asks for no token. Where " +
			a.forReader("the operator has a contract with the site, licence at its [[host]] names it.", "you have a contract with the site, write licence at its [[host]].") + a.hostLine()
	}
	if a.of.Entry.Outcome.SiteStatus != 0 {
		text += ". The site has sent the page, and it was not delivered"
	}
	return text + ". A retry will not help while the site states this; robots.txt lets the page be fetched for other purposes."
}

// quoteUse adds the statement that refuses the use of a page; a.of.Use is set.
func (a *Answer) quoteUse(p *Problem) {
	r := a.of.Use
	p.Purpose = string(r.Purpose)
	if s := r.Statement; s != nil {
		p.Line, p.Quoted, p.Statement = s.Line, &quoted{Rule: legible(s.Text)}, legible(s.URL)
	}
}
