package why

import (
	"fmt"

	"heed/internal/console"
	"heed/internal/signal"
	"heed/proxy/refusal"
)

// Use returns the steps of what a site states about the use of a page.
func Use(v *signal.Verdict) []Step {
	x := explain(nil, nil, nil)
	x.useSteps(v)
	return x.steps
}

// useSteps prints the answers by category, with the rule of precedence, and the statements
// that led to them.
func (x *explainer) useSteps(v *signal.Verdict) {
	label := "Use"
	for _, c := range signal.Categories() {
		r, known := v.Results[c]
		if !known {
			continue
		}
		text := fmt.Sprintf("%s: %s", c, r.Answer)
		if r.Precedence != "" {
			text += " (" + string(r.Precedence) + ")"
		}
		if len(r.Unmet) > 0 && r.Answer != signal.Disallow {
			text += ", with a demand"
		}
		x.step(label, "%s", text)
		label = ""
	}
	if label != "" {
		x.step(label, "nothing is stated")
	}
	for i := range v.Statements {
		x.statement(&v.Statements[i])
	}
	switch {
	case v.Incomplete():
		x.step("Page", "its head was not read to its end (%s)", v.Page)
	case v.Page != "" && v.Page != "whole":
		x.step("Page", "there was no head to read (%s)", v.Page)
	}
}

func (x *explainer) statement(s *signal.Statement) {
	x.step("Stated", "%s", refusal.Place(s))
	x.more("  %s", console.Quoted(s.Text))
	says := s.String()
	for _, more := range []string{s.Demand, s.Fault, s.Note} {
		if more != "" {
			says += "; " + console.Quoted(more)
		}
	}
	if s.Variant != "" {
		says += "; it counts since a server may take the URL for another (" + spelling(s.Variant) + ")"
	}
	x.more("  %s", says)
}
