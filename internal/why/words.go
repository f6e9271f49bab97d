package why

import (
	"fmt"
	"strings"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/console"
	"heed/rules"
)

// ResultText returns what became of a request that was not answered with the page: the
// verdict by which it was withheld, the kind of the site's refusal, or what was wrong with
// the credentials for this proxy, with the name that was tried.
func ResultText(d *replay.Decision) (text string) {
	if r := rules.Reason(d.Reason); (r == rules.ReasonCredentials || r == rules.ReasonFailures) && d.Detail != "" {
		text = "; " + console.Quoted(d.Detail)
	}
	if d.Withheld() {
		text += "; page withheld: " + ReasonText(d.Late)
	}
	if d.Outcome != nil && d.Outcome.SiteAnswer != "" {
		text += "; the site's answer: " + AnswerWords(d.Outcome.SiteAnswer)
	}
	return text
}

// ClientName returns the agent, as in reports, and the client's address: newsbot@192.0.2.7.
// The agent of a request that was refused before it was identified is that of its
// User-Agent; one without a name is (no-name).
func ClientName(d *replay.Decision) string {
	agent := d.Agent
	if unnamed := store.AgentName("", nil); agent == unnamed {
		var tokens []string
		for _, t := range rules.Identify(d.UserAgent).Tokens {
			tokens = append(tokens, t.Name)
		}
		agent = strings.Replace(store.AgentName("", tokens), unnamed, "(no-name)", 1)
	}
	return strings.ReplaceAll(agent, " ", ",") + "@" + d.Client
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
