package why

import (
	"fmt"
	"strings"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/console"
	"heed/rules"
)

// ResultText returns what became of an allowed request that was not answered with the
// page: the verdict by which it was withheld, or the kind of the site's refusal.
func ResultText(d *replay.Decision) (text string) {
	if d.Withheld() {
		text = "; page withheld: " + ReasonText(d.Late)
	}
	if d.Outcome != nil && d.Outcome.SiteAnswer != "" {
		text += "; the site's answer: " + AnswerWords(d.Outcome.SiteAnswer)
	}
	return text
}

// ClientName returns the client. Where the settings or heed run --agent set its name,
// that is before it, as in reports.
func ClientName(d *replay.Decision) string {
	if d.ClientName == "" {
		return d.Client
	}
	return strings.ReplaceAll(d.Agent, " ", ",") + "@" + d.Client
}

// ReasonText returns the reason of a verdict in words, with the rule and line behind it.
func ReasonText(v *store.Verdict) string {
	text := console.ReasonText(rules.Reason(v.Reason))
	if v.Rule != "" {
		text += ": " + v.Rule
		if v.Line > 0 {
			text += fmt.Sprintf(" (line %d)", v.Line)
		}
	}
	if v.Settled != "" {
		text += " [" + v.Settled + "]"
	}
	return console.Quoted(text)
}

// VerdictText returns a verdict in one line.
func VerdictText(v *store.Verdict) string {
	if v.Verdict == "" {
		return "nothing: it could not be judged"
	}
	text := v.Verdict + " (" + console.ReasonText(rules.Reason(v.Reason))
	switch {
	case v.Rule != "" && v.Line > 0:
		text += fmt.Sprintf(": line %d, %s", v.Line, v.Rule)
	case v.Rule != "": // of the operator's
		text += ": " + v.Rule
	}
	if v.Group != "" {
		text += ", group " + v.Group
	}
	if v.Variant != "" {
		text += ", in another spelling (" + v.Variant + ")"
	}
	if v.Settled != "" {
		text += ", " + v.Settled
	}
	return console.Quoted(text + ")")
}
