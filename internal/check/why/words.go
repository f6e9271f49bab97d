package why

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/internal/output/console"
	"heed/rules"
)

// A Naming writes a reason: console.ReasonText with its code, Words without.
type Naming func(rules.Reason) string

// Words is a Naming.
func Words(r rules.Reason) string { return reason.Of(r).Words }

// detailed are the reasons that say nothing of their cause: it is in the detail.
var detailed = []rules.Reason{rules.ReasonCredentials, rules.ReasonFailures, rules.ReasonMalformed, rules.ReasonDestination, rules.ReasonLimit}

// ResultText returns what became of a request that was not answered with the page: the
// verdict by which it was withheld, the kind of the site's refusal, or the cause of a refusal
// without a rule: what is malformed, which address, which limit, and what was wrong with the
// credentials for this proxy, with the name that was tried.
func ResultText(d *replay.Decision, name Naming) (text string) {
	if slices.Contains(detailed, rules.Reason(d.Reason)) && d.Detail != "" {
		text = "; " + console.Quoted(d.Detail)
	}
	if d.Withheld() {
		text += "; page withheld: " + ReasonText(d.Late, name)
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
	return strings.NewReplacer(", ", ",", " ", "_").Replace(agent) + "@" + d.Client
}

// ReasonText returns the reason of a verdict in words, with what it rests on.
func ReasonText(v *store.Verdict, name Naming) string { return reasonText(v, "", name) }

func reasonText(v *store.Verdict, role string, name Naming) string {
	text, on := console.Quoted(name(rules.Reason(v.Reason))), basis(v, role)
	switch {
	case v.Rule != "":
		text += ": " + on
	case on != "":
		text += ", " + on
	}
	if v.Settled != "" {
		text += " (" + console.Quoted(v.Settled) + ")"
	}
	return text
}

// basis returns the rule behind a verdict, its line and group, and the spelling of the path that
// it is for; role is that of the name that the group is for.
func basis(v *store.Verdict, role string) string {
	var on []string
	add := func(format, value string) {
		if value != "" {
			on = append(on, fmt.Sprintf(format, console.Quoted(value)))
		}
	}
	if v.Line > 0 {
		add("line %s", strconv.Itoa(v.Line))
	}
	add("%s", v.Rule)
	if add("group %s", v.Group); role == rules.Obeyed.String() {
		add("%s", "which the client also obeys")
	}
	add("in another spelling of the path (%s)", v.Variant)
	return strings.Join(on, ", ")
}

// VerdictText returns a verdict in one line.
func VerdictText(v *store.Verdict, name Naming) string {
	if v.Verdict == "" {
		return "nothing: it could not be judged"
	}
	return v.Verdict + " (" + ReasonText(v, name) + ")"
}

// Line returns the reason of a judgement in words, with what it rests on.
func Line(a *control.Judgement) string {
	v := &store.Verdict{Reason: string(a.Reason), Group: a.Group, Rule: a.Rule, Line: a.Line, Variant: a.Variant, Settled: a.Settled}
	text, detail := reasonText(v, a.Role, Words), a.Detail
	switch {
	case a.Reason == rules.ReasonSignal || a.Reason == rules.ReasonLicence:
		return a.Detail
	case a.Reason == rules.ReasonRule:
		text = basis(v, a.Role)
	case tooMany(a):
		text, detail = detail+"; all but /robots.txt is refused", ""
	}
	if detail != "" {
		text += " (" + console.Quoted(detail) + ")"
	}
	if source := sourceText(a); source != "" {
		text += " (" + source + ")"
	}
	if a.Mode != "" && !a.Allowed {
		text += " (only observed: let through)"
	}
	return text
}

// Sources of the rules of a Judgement (its By).
const (
	ByFile  = "file"  // the one of --robots
	ByHeed  = "heed"  // the running one, which was asked
	ByStore = "store" // a copy that a heed stored and that is fresh
	BySite  = "site"  // the site itself, which was asked just now

	ByRecord   = "record"   // the record of the decision
	ByOperator = "operator" // a file that the settings put in place of the site's
)

// sourceText describes the source and the age of the rules; empty when no rules
// were looked up.
func sourceText(a *control.Judgement) string {
	age := time.Duration(a.Age*float64(time.Second)).Round(time.Second).String() + " old"
	switch {
	case a.Robots == "":
		return ""
	case a.By == ByFile:
		return "by " + console.Quoted(a.Robots)
	case a.By == ByRecord && slices.Contains([]rules.Reason{rules.ReasonRobotsUnreachable, rules.ReasonOriginUnreachable, rules.ReasonDestination}, a.Reason):
		return "which could not be fetched"
	case a.By == ByRecord && !a.Stale:
		return "as recorded, " + age
	case a.Stale && a.By == ByHeed:
		return "by the running heed's copy, " + age + ", since the site cannot be asked"
	case a.Stale:
		return "by a copy " + age + ", since the site cannot be asked"
	case a.By == ByOperator:
		return "by the file that the settings name in place of the site's"
	case a.By == ByHeed:
		return "by the running heed's copy, " + age
	case a.By == ByStore:
		return "by the stored copy, " + age
	}
	return "asked just now"
}

// tooMany reports whether a robots.txt was read and has too many wildcards or words to be used.
func tooMany(a *control.Judgement) bool {
	return a.Detail == rules.ErrTooManyWildcards.Error() || a.Detail == rules.ErrTooManyWords.Error()
}

// Step is one step of an explanation: a paragraph with a label. Text of clients and sites
// in it is printable, and is not escaped for HTML.
type Step struct {
	Label string
	Lines []string // at least one
}

// step begins a step.
func (x *explainer) step(label, format string, values ...any) {
	x.steps = append(x.steps, Step{label, []string{fmt.Sprintf(format, values...)}})
}

// more adds a line to the last step.
func (x *explainer) more(format string, values ...any) {
	last := &x.steps[len(x.steps)-1]
	last.Lines = append(last.Lines, fmt.Sprintf(format, values...))
}

// Text returns steps for a terminal, one paragraph each.
func Text(steps []Step, paint console.Painter) string {
	var out strings.Builder
	for _, s := range steps {
		for i, line := range s.Lines {
			if i == 0 && s.Label != "" {
				out.WriteString(paint(console.Bold, fmt.Sprintf("  %-*s", labelWidth-2, s.Label)))
			} else {
				out.WriteString(strings.Repeat(" ", labelWidth))
			}
			writeWrapped(&out, line)
		}
	}
	return out.String()
}

// writeWrapped writes one line, wrapped at blanks; words are never split. Continuation
// lines are indented by two more columns.
func writeWrapped(out *strings.Builder, line string) {
	at := labelWidth
	for i, word := range strings.Split(line, " ") {
		size := len([]rune(word))
		switch {
		case i == 0:
		case at+1+size > pageWidth:
			out.WriteString("\n" + strings.Repeat(" ", labelWidth+2))
			at = labelWidth + 2
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += size
	}
	out.WriteByte('\n')
}

// Listed calls each with the first ones of a list, and more with the number of the others, if
// there are any.
func Listed[T any](list []T, each func(i int, x *T), more func(n int)) {
	for i := range list[:min(len(list), MaxListed)] {
		each(i, &list[i])
	}
	if n := len(list) - MaxListed; n > 0 {
		more(n)
	}
}
