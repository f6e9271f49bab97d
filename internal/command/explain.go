package command

import (
	"fmt"
	"io"
	"strings"

	"heed/rules"
)

// explain tells the road from the User-Agent to the verdict, a step a line.
func (a *judgement) explain(w io.Writer) error {
	var text strings.Builder
	for _, step := range []string{a.whoAsks(), a.whoseRules(), a.whatTheySay()} {
		if step != "" {
			fmt.Fprintf(&text, "    %s\n", step)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// whoAsks tells which robots the User-Agent names.
func (a *judgement) whoAsks() string {
	if a.Agent == "" {
		return "Nobody says who asks: what is written for all robots (*) counts."
	}
	tokens := rules.Identify(a.Agent).Tokens
	if len(tokens) == 0 {
		return fmt.Sprintf("%q names no robot: what is written for all robots (*) counts.", quoted(a.Agent))
	}
	var names []string
	for _, t := range tokens {
		name := quoted(t.Name)
		if !strings.EqualFold(t.Name, t.Piece) {
			name += fmt.Sprintf(" (from %q)", quoted(t.Piece))
		}
		names = append(names, name)
	}
	if len(names) == 1 {
		return "Who asks goes by the name " + names[0] + "."
	}
	return "Who asks goes by the names " + strings.Join(names, ", ") + "; each that has a group must be allowed."
}

// whoseRules tells where the rules are from and which group governs.
func (a *judgement) whoseRules() string {
	if a.Reason == rules.ReasonRobotsTxt || a.Reason == rules.ReasonMalformed {
		return "" // nothing was looked up
	}
	from := "The rules are from " + quoted(a.Robots)
	if a.By == "heed" {
		from += fmt.Sprintf(", as the running heed fetched them %s ago", a.age())
	}
	switch {
	case a.Group == "":
		return from + "."
	case a.Token == "":
		return from + "; none of its groups has that name, and the one for all robots (*) governs."
	default:
		return fmt.Sprintf("%s; the name %s leads to its group %s.", from, quoted(a.Token), quoted(a.Group))
	}
}

// whatTheySay tells what decided.
func (a *judgement) whatTheySay() string {
	switch a.Reason {
	case rules.ReasonRule:
		verdict := "it may not be fetched"
		if a.Allowed {
			verdict = "it may be fetched"
		}
		reading := "the URL"
		if a.Variant != "" {
			reading = "another reading of the URL (" + a.Variant + "), which a server may take it for"
		}
		return fmt.Sprintf("Of the rules that fit %s, line %d is the longest, %s: %s.", reading, a.Line, quoted(a.Rule), verdict)
	case rules.ReasonNoRule:
		return "No rule fits the URL: it may be fetched."
	case rules.ReasonRobotsTxt:
		return "This is robots.txt itself, which may always be fetched (RFC 9309 §2.2.2)."
	case rules.ReasonRobotsUnavailable:
		return "The site has none: everything may be fetched (RFC 9309 §2.3.1.3)."
	case rules.ReasonRobotsUnreachable, rules.ReasonOriginUnreachable:
		if a.tooWild() {
			return "There are more than 1,048,576 wildcards (*) in them, too many to judge by: everything but /robots.txt is refused until the site has fewer. See what is wrong with: heed lint " + quoted(a.Robots)
		}
		return "They cannot be had, and no copy is left: nothing may be fetched until they can (RFC 9309 §2.3.1.4)."
	case rules.ReasonDestination:
		return "heed may not reach that address: see [access] in proxy.toml."
	default:
		return "No server can be asked for this URL: " + quoted(a.Detail) + "."
	}
}
