package signal

import (
	"cmp"
	"slices"

	"heed/internal/base/safetext"
	"heed/internal/judge/signal/licence"
)

// Licence is the outcome of fetching a licence document.
type Licence struct {
	Document *licence.Document // nil when it could not be read
	Err      error             // why; its text is shown to people
}

// usage is a category that licences speak of.
type usage struct {
	category Category
	usage    licence.Usage
}

// usages are all of them.
var usages = []usage{{Search, licence.Search}, {AIInput, licence.AIInput}, {TrainAI, licence.AITrain}}

// declared adds the declaration of the licence at address, and what the licence says.
func (j *judge) declared(s Statement, address string) {
	if address == "" {
		s.Fault = cmp.Or(s.Fault, "not an absolute http or https URL")
		j.add(s)
		return
	}
	first := !slices.Contains(j.declares, address)
	if first {
		j.declares = append(j.declares, address)
	}
	got, fetched := j.in.Licences[address]
	unread := got.Err != nil || got.Document == nil
	switch {
	case !fetched:
		s.Note = notFetched
	case got.Err != nil:
		s.Fault = "the licence cannot be read: " + safetext.Excerpt(got.Err.Error())
	case unread:
		s.Fault = "the licence cannot be read"
	}
	if j.add(s); first && !unread {
		j.licence(Statement{Source: SourceLicence, Protocol: RSL, URL: address, Name: "license"}, got.Document, nil)
	}
}

// licence adds what a licence document says about the page. base is its place.
func (j *judge) licence(base Statement, d *licence.Document, err error) {
	if err != nil {
		base.Fault = "the licence cannot be read: " + safetext.Excerpt(err.Error())
		j.add(base)
		return
	}
	j.tooMany = j.tooMany || d.TooMany()
	at := make(map[place]int) // terms of one licence are one statement
	for _, part := range d.Parts(j.in.Origin, j.in.Target, j.in.Profile) {
		for _, u := range usages {
			j.terms(base, part.Terms(j.in.Target, u.usage), u.category, part.Variant, at)
		}
	}
}

// faultWords is the Fault of a licence that may prohibit a use in words that heed does not know.
const faultWords = "a prohibition in it is not understood"

// place identifies terms.
type place struct {
	line         int
	text, demand string
}

// terms adds the terms of a licence for a category.
func (j *judge) terms(s Statement, t licence.Terms, c Category, variant string, at map[place]int) {
	if t.Line == 0 {
		return
	}
	if t.Fault {
		s.Fault = faultWords
	}
	answer := [...]Answer{licence.Unknown: Unknown, licence.Allow: Allow, licence.Disallow: Disallow}[t.Verdict]
	key := place{t.Line, t.Text, t.Unmet}
	if i, known := at[key]; known {
		if j.all[i].say(answer, c); len(t.Only) > 0 {
			j.all[i].Only = t.Only
		}
		j.all[i].Fault = cmp.Or(j.all[i].Fault, s.Fault)
		return
	}
	if s.Source == SourceLicence {
		s.Line = t.Line
	}
	s.Text, s.Demand, s.Only, s.Variant = t.Text, t.Unmet, t.Only, variant
	s.say(answer, c)
	at[key] = len(j.all)
	j.add(s)
}
