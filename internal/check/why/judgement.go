package why

import (
	"fmt"
	"strings"
	"time"

	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/internal/output/console"
	"heed/proxy/refusal"
	"heed/rules"
)

// How the explanation is laid out.
const (
	pageWidth  = 80 // columns
	labelWidth = 11 // of the first word of a step, and the blanks around it
	// MaxListed is the largest number of names, pieces, readings or rules of one kind
	// that is printed; the rest is counted.
	MaxListed = 8
	// maxAgentShown is the largest number of characters of a User-Agent string that
	// is printed.
	maxAgentShown = 600
	// maxDetail is the largest number of characters of a detail: it may end with what to do.
	maxDetail = 400
)

// explainer collects the steps from a User-Agent to a verdict.
type explainer struct {
	*control.Judgement
	road  *rules.Explanation
	paint console.Painter
	steps []Step

	matched bool // the matching of rules is known
}

// explain begins an explanation. Without road nothing is said of the matching of rules.
func explain(a *control.Judgement, road *rules.Explanation, paint console.Painter) *explainer {
	x := &explainer{Judgement: a, road: road, paint: paint, matched: road != nil}
	if road == nil {
		x.road = &rules.Explanation{}
	}
	if paint == nil {
		x.paint = func(_, text string) string { return text }
	}
	return x
}

// Judgement returns the steps to a verdict of now. A nil paint is one without colours.
func Judgement(a *control.Judgement, paint console.Painter) []Step {
	x := explain(a, a.Road, paint) // the running heed may have sent none
	if a.Client != "" {
		x.step("Client", "%s, an entry of the settings", console.Quoted(a.Client))
	}
	for i, line := range a.Terms {
		if i == 0 {
			x.step("Settings", "%s", line)
		} else {
			x.more("%s", line)
		}
	}
	x.agentStep()
	if a.Robots != "" {
		x.rulesStep()
		x.groupsStep()
		x.matchesStep()
	}
	verdict := x.paint(console.Red, "refuse")
	if a.Allowed {
		verdict = x.paint(console.Green, "allow")
	}
	x.step("Verdict", "%s: %s", verdict, x.because())
	x.delayStep()
	return x.steps
}

// delayStep prints the time between two requests, whose it is, and the lines about it that
// have no effect.
func (x *explainer) delayStep() {
	if x.Delay == nil {
		return
	}
	x.step("Delay", "none is asked for")
	if lines := DelayLines(x.Judgement); lines != nil {
		x.steps[len(x.steps)-1].Lines = lines
	}
	Listed(x.Delay.Ignored, func(_ int, line *string) {
		x.more("%s has no effect: its value cannot be understood", console.Quoted(*line))
	},
		func(n int) { x.more("and %s more without effect", console.Plural(uint64(n), "line")) })
}

// DelayLines returns the time between two requests and what it rests on; nil: none is asked for.
func DelayLines(a *control.Judgement) (lines []string) {
	by, d := DelayBy(a), a.Delay
	if by == "" {
		return nil
	}
	if d.Line == 0 {
		by += " in the settings"
	}
	lines = append(lines, secondsText(d.Seconds)+" between two requests: "+by)
	if d.Seconds < d.Asked {
		lines = append(lines, secondsText(d.Asked)+" is asked for; max_delay in the settings is the longest that is kept")
	}
	return lines
}

// DelayBy returns what the time between two requests rests on; empty: none is asked for.
func DelayBy(a *control.Judgement) string {
	d := a.Delay
	switch {
	case d == nil || d.Asked == 0:
		return ""
	case d.Line == 0:
		return "min_delay"
	}
	text := fmt.Sprintf("line %d, %s, before any group", d.Line, console.Quoted(d.Rule))
	if d.Group != "" {
		text = fmt.Sprintf("line %d, %s, group %s", d.Line, console.Quoted(d.Rule), console.Quoted(d.Group))
	}
	if a.By == ByOperator {
		text += " of robots_file in [[host]]"
	}
	return text
}

// secondsText writes a number of seconds.
func secondsText(s float64) string {
	return refusal.Seconds(time.Duration(s * float64(time.Second)))
}

// agentStep prints which pieces of the User-Agent are names of robots, the groups
// that each name selects, and the pieces that are ignored.
func (x *explainer) agentStep() {
	if x.Agent == "" {
		x.step("Agent", "no User-Agent: the rules for all robots (*) apply")
		return
	}
	x.step("Agent", "%s", console.Truncated(x.Agent, maxAgentShown))
	if x.Role == rules.Obeyed.String() {
		x.more("its own names may fetch it; by the settings it also obeys the groups that name:")
	}
	Listed(x.road.Tokens, func(_ int, t *rules.TokenGroups) { x.more("%s", tokenText(t.Token)+x.groupsOf(*t)) },
		func(n int) { x.more("and %s", console.Plural(uint64(n), "further name")) })
	if len(x.road.Tokens) == 0 {
		x.more("contains no name of a robot: the rules for all robots (*) apply")
	}
	for _, why := range []rules.DropReason{rules.DroppedCompatible, rules.DroppedAddress} {
		if left := x.dropped(why); left != "" {
			x.more("ignored: %s (%s)", left, droppedText[why])
		}
	}
}

var droppedText = map[rules.DropReason]string{
	rules.DroppedCompatible: "a platform or a compatible browser",
	rules.DroppedAddress:    "an address, which may contain names of other robots",
}

func (x *explainer) dropped(why rules.DropReason) string {
	var left []string
	for _, d := range x.road.Dropped {
		if d.Why == why {
			left = append(left, console.Quoted(d.Piece))
		}
	}
	if more := len(left) - MaxListed; more > 0 {
		left = append(left[:MaxListed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(left, ", ")
}

// tokenText returns a name, with the piece it was taken from when they differ.
func tokenText(t rules.Token) string {
	if strings.EqualFold(t.Name, t.Piece) {
		return console.Quoted(t.Name)
	}
	return fmt.Sprintf(`%s (from "%s")`, console.Quoted(t.Name), console.Quoted(t.Piece))
}

// groupsOf returns the groups that a name selects, after a colon.
func (x *explainer) groupsOf(t rules.TokenGroups) string {
	if len(t.Groups) == 0 {
		if !x.matched || x.Robots == "" || x.Group == "" {
			return ""
		}
		return ": no group has this name"
	}
	var to []string
	for _, g := range t.Groups[:min(len(t.Groups), MaxListed)] {
		to = append(to, fmt.Sprintf("group %s%s", console.Quoted(g.Name), howText[g.How]))
	}
	return ": " + strings.Join(to, ", ")
}

// howText describes how a name selected a group, where it is not an exact match.
var howText = map[rules.How]string{
	rules.ByFirst: ", by its first word",
	rules.ByChain: ", which its operator documents as the fallback when no group has this name",
	rules.ByPart:  ", whose name is part of this one (1994)",
	rules.ByList:  ", one of several names on that line: it may only add refusals",
}

// rulesStep prints the source of the rules and the profile they are read by.
func (x *explainer) rulesStep() {
	x.step("Rules", "%s", console.Quoted(x.Robots))
	if x.By != ByFile {
		x.more("%s", sourceText(x.Judgement))
	}
	if x.Profile != "" && x.Profile != rules.Standard.String() {
		x.more("read by the profile %s", x.Profile)
	}
	if x.Reason == rules.ReasonRule && x.Detail != "" { // with other reasons the verdict has it
		x.more("%s", console.Quoted(x.Detail))
	}
}

// groupsStep prints the groups that govern.
func (x *explainer) groupsStep() {
	Listed(x.road.Governing, func(i int, g *rules.Governing) {
		why := "since no group is for a name of the agent"
		if g.Token.Name != "" {
			why = "for " + console.Quoted(g.Token.Name)
		}
		print := x.more
		if i == 0 {
			print = func(f string, v ...any) { x.step("Group", f, v...) }
		}
		print("%s (%s, %s), %s", console.Quoted(g.Name), lineList(g.Lines), console.Plural(uint64(g.Rules), "rule"), why)
	}, func(n int) { x.more("and %s", console.Plural(uint64(n), "further group")) })
	if len(x.road.Governing) > 1 {
		x.more("each of them must allow")
	}
	if len(x.road.Governing) == 0 && (x.Reason == rules.ReasonNoRule || x.Reason == rules.ReasonRule) {
		x.step("Group", "none: no group is for a name of the agent, nor for all robots (*)")
	}
}

// lineList returns line numbers as text.
func lineList(lines []int) string {
	var numbers []string
	for i, n := range lines {
		if i == MaxListed {
			numbers = append(numbers, "...")
			break
		}
		numbers = append(numbers, fmt.Sprint(n))
	}
	if len(numbers) == 1 {
		return "line " + numbers[0]
	}
	return "lines " + strings.Join(numbers, ", ")
}

// because returns the reason of the verdict in words.
func (x *explainer) because() string {
	switch x.Reason {
	case rules.ReasonRule:
		if x.Allowed {
			return fmt.Sprintf("line %d, %s, lets %s fetch it", x.Line, console.Quoted(x.Rule), x.subject())
		}
		return fmt.Sprintf("line %d, %s, keeps %s from it", x.Line, console.Quoted(x.Rule), x.subject())
	case rules.ReasonOverride:
		verb := "lets it through whatever the rules say"
		if !x.Allowed {
			verb = "refuses it whatever the rules say"
		}
		return fmt.Sprintf("%s, an exception of the operator's, %s (%s)", console.Quoted(x.Rule), verb, console.Quoted(x.Settled))
	case rules.ReasonNotACrawl:
		return fmt.Sprintf("%s (%s)", reason.Of(x.Reason).Words, console.Quoted(x.Settled))
	}
	text := console.Quoted(reason.Of(x.Reason).Words)
	switch {
	case tooMany(x.Judgement):
		return x.Detail + ": everything but /robots.txt is refused until the site has fewer"
	case x.Detail != "":
		text += ": " + console.Truncated(x.Detail, maxDetail)
	}
	return text
}

// subject returns the name that the deciding group is for.
func (x *explainer) subject() string {
	if x.Token == "" {
		return "all robots (*)"
	}
	if x.Role == rules.Obeyed.String() {
		return console.Quoted(x.Token) + ", which the client also obeys (also_obey),"
	}
	return console.Quoted(x.Token)
}

// matchesStep prints each reading of the target with the rules that match it.
func (x *explainer) matchesStep() {
	quiet := 0 // readings after the first that are allowed
	for i, r := range x.road.Readings {
		if last := i == len(x.road.Readings)-1; i > 0 && !(last && x.refused(r)) {
			quiet++
			continue
		}
		if quiet > 0 {
			x.more("in %s: allowed, too", console.Plural(uint64(quiet), "other spelling"))
			quiet = 0
		}
		if i == 0 {
			x.step("Judged", "%s", console.Quoted(r.Target))
		} else {
			x.more("but a server may take it for %s (%s):", console.Quoted(r.Target), spelling(r.Variant))
		}
		x.matches(r)
	}
	if quiet > 0 {
		x.more("in %s that servers may read it in: allowed, too", console.Plural(uint64(quiet), "other spelling"))
	}
}

func (x *explainer) refused(r rules.Reading) bool {
	return len(r.Results) > 0 && r.Results[len(r.Results)-1].Verdict == rules.Refuse
}

// spellings describes the readings by their names in Variant.
var spellings = map[string]string{
	"":   "with & and = as they may be sent",
	"v0": "decoded",
	"v1": "v1: dot segments resolved",
	"v2": "v2: slashes joined and dot segments resolved",
	"v3": `v3: escaped slashes and \ are slashes`,
	"v4": "v4: without what follows ;",
	"v5": "v5: decoded once more",
	"v6": "v6: without the blanks at its end",
	"v7": "v7: octets that are not UTF-8 read as ISO 8859-1",
}

func spelling(variant string) string {
	if text, known := spellings[variant]; known {
		return text
	}
	return variant
}

// matches prints the rules that match a reading, by group.
func (x *explainer) matches(r rules.Reading) {
	for i, o := range r.Results {
		of := ""
		if len(x.road.Governing) > 1 && i < len(x.road.Governing) {
			of = "of group " + console.Quoted(x.road.Governing[i].Name) + " "
		}
		if len(o.Matches) == 0 {
			x.more("  no rule %sfits", of)
			continue
		}
		if of != "" {
			x.more("  %sthese fit:", of)
		}
		for j, m := range o.Matches[:min(len(o.Matches), MaxListed)] {
			text := fmt.Sprintf("  line %d: %s (%s)", m.Line, console.Quoted(m.Rule), console.Plural(uint64(m.Octets), "octet"))
			if j == 0 {
				text += " <- " + x.precedence(o)
			}
			x.more("%s", text)
		}
		if more := len(o.Matches) + o.Further - MaxListed; more > 0 {
			x.more("  and %s that count for less", console.Plural(uint64(more), "rule"))
		}
	}
}

// precedence returns why the first rule of a result decides.
func (x *explainer) precedence(o rules.GroupResult) string {
	first := o.Matches[0]
	switch {
	case len(o.Matches) == 1:
		return "the only one that fits"
	case x.Profile == rules.REP1994.String():
		return "any Disallow that fits refuses"
	}
	for _, m := range o.Matches[1:] {
		if m.Octets == first.Octets && m.Allow != first.Allow {
			if first.Allow {
				return fmt.Sprintf("as long as line %d, and Allow counts then", m.Line)
			}
			return fmt.Sprintf("as long as line %d, and Disallow counts then", m.Line)
		}
	}
	return "the longest counts"
}
