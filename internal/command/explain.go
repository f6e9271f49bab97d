package command

import (
	"fmt"
	"io"
	"strings"

	"heed/rules"
)

// How the explanation is laid out.
const (
	pageWidth  = 80 // columns
	labelWidth = 11 // of the first word of a step, and the blanks around it
	// maxTold is how many names, pieces, readings or rules of one kind are told:
	// a page is read, a list is not.
	maxTold = 8
	// maxAgentTold is how many characters of a User-Agent string are told.
	maxAgentTold = 600
)

// explainer writes the road from a User-Agent to a verdict, a step a paragraph.
type explainer struct {
	*judgement
	road  *rules.Explanation
	paint painter
	text  strings.Builder
}

// explain tells the road to the verdict.
func (a *judgement) explain(w io.Writer, paint painter) error {
	x := &explainer{judgement: a, road: a.Road, paint: paint}
	if x.road == nil {
		x.road = &rules.Explanation{} // of a heed that does not tell
	}
	x.whoAsks()
	if a.Robots != "" {
		x.whoseRules()
		x.whichGroups()
		x.whatIsJudged()
	}
	x.verdict()
	x.text.WriteByte('\n')
	_, err := io.WriteString(w, x.text.String())
	return err
}

// step begins a paragraph.
func (x *explainer) step(label, format string, values ...any) {
	x.line(x.paint(bold, fmt.Sprintf("  %-*s", labelWidth-2, label)), format, values...)
}

// more goes on with the paragraph, on a new line.
func (x *explainer) more(format string, values ...any) {
	x.line(strings.Repeat(" ", labelWidth), format, values...)
}

// line writes a text of one line, wrapped at blanks; what stands between two
// blanks stays whole. Further lines are set in by two columns more.
func (x *explainer) line(head, format string, values ...any) {
	words := strings.Split(fmt.Sprintf(format, values...), " ")
	x.text.WriteString(head)
	at := labelWidth
	for i, word := range words {
		size := len([]rune(word))
		switch {
		case i == 0:
		case at+1+size > pageWidth:
			x.text.WriteString("\n" + strings.Repeat(" ", labelWidth+2))
			at = labelWidth + 2
		default:
			x.text.WriteByte(' ')
			at++
		}
		x.text.WriteString(word)
		at += size
	}
	x.text.WriteByte('\n')
}

// whoAsks tells which pieces of the User-Agent are names of robots, where each
// leads, and which are not.
func (x *explainer) whoAsks() {
	if x.Client != "" {
		x.step("Client", "%s, as the settings know it", quoted(x.Client))
	}
	if x.Agent == "" {
		x.step("Who asks", "nobody says so: the rules for all robots (*) count")
		return
	}
	x.step("Who asks", "%s", atMost(x.Agent, maxAgentTold))
	for i, t := range x.road.Tokens {
		if i == maxTold {
			x.more("and %s", plural(uint64(len(x.road.Tokens)-maxTold), "further name"))
			break
		}
		x.more("%s", named(t.Token)+x.leads(t))
	}
	if len(x.road.Tokens) == 0 {
		x.more("names no robot: the rules for all robots (*) count")
	}
	for _, why := range []rules.Dropping{rules.DroppedCompatible, rules.DroppedAddress} {
		if left := x.leftOut(why); left != "" {
			x.more("no name: %s (%s)", left, droppings[why])
		}
	}
}

var droppings = map[rules.Dropping]string{
	rules.DroppedCompatible: "says what it runs on or is compatible with",
	rules.DroppedAddress:    "an address, where other robots' names may stand",
}

func (x *explainer) leftOut(why rules.Dropping) string {
	var left []string
	for _, d := range x.road.Dropped {
		if d.Why == why {
			left = append(left, quoted(d.Piece))
		}
	}
	if more := len(left) - maxTold; more > 0 {
		left = append(left[:maxTold], fmt.Sprintf("%d more", more))
	}
	return strings.Join(left, ", ")
}

// named is a name, with the piece it was taken from when that looks otherwise.
func named(t rules.Token) string {
	if strings.EqualFold(t.Name, t.Piece) {
		return quoted(t.Name)
	}
	return fmt.Sprintf(`%s (from "%s")`, quoted(t.Name), quoted(t.Piece))
}

// leads tells which groups a name leads to.
func (x *explainer) leads(t rules.TokenLed) string {
	if len(t.To) == 0 {
		if x.Robots == "" || x.Group == "" {
			return ""
		}
		return ": no group has this name"
	}
	var to []string
	for _, led := range t.To[:min(len(t.To), maxTold)] {
		to = append(to, fmt.Sprintf("group %s%s", quoted(led.Name), hows[led.How]))
	}
	return ": " + strings.Join(to, ", ")
}

// hows says how a name led to a group, where that is not plain.
var hows = map[rules.How]string{
	rules.ByFirst: ", by its first word",
	rules.ByChain: ", which its operator has it obey when there is none of its own",
	rules.ByPart:  ", whose name is part of this one (1994)",
	rules.ByList:  ", one of several names on that line: it may only add refusals",
}

// whoseRules tells where the rules are from and how they are read.
func (x *explainer) whoseRules() {
	x.step("Rules", "%s", quoted(x.Robots))
	from := "asked just now"
	switch x.By {
	case byFile:
		from = ""
	case byHeed:
		from = fmt.Sprintf("as the running heed has them, %s old", x.age())
	case byOperator:
		from = "but read from the file that the settings put in its place"
	case byRecord:
		from = fmt.Sprintf("as recorded, %s old", x.age())
		if r := x.Reason; r == rules.ReasonRobotsUnreachable || r == rules.ReasonOriginUnreachable || r == rules.ReasonDestination {
			from = "which could not be had"
		}
	case byStore:
		from = fmt.Sprintf("as stored %s ago", x.age())
	}
	if x.Stale {
		from = fmt.Sprintf("an old copy, %s old, since the site cannot be asked", x.age())
	}
	if from != "" {
		x.more("%s", from)
	}
	if x.Profile != "" && x.Profile != rules.Standard.String() {
		x.more("read by the profile %s", x.Profile)
	}
}

// whichGroups tells which groups govern.
func (x *explainer) whichGroups() {
	for i, g := range x.road.Governing {
		if i == maxTold {
			x.more("and %s", plural(uint64(len(x.road.Governing)-maxTold), "further group"))
			break
		}
		why := "since no group is for a name of who asks"
		if g.Token.Name != "" {
			why = "for " + quoted(g.Token.Name)
		}
		tell := x.more
		if i == 0 {
			tell = func(f string, v ...any) { x.step("Group", f, v...) }
		}
		tell("%s (%s, %s), %s", quoted(g.Name), lineList(g.Lines), plural(uint64(g.Rules), "rule"), why)
	}
	if len(x.road.Governing) > 1 {
		x.more("each of them must allow")
	}
	if len(x.road.Governing) == 0 && (x.Reason == rules.ReasonNoRule || x.Reason == rules.ReasonRule) {
		x.step("Group", "none: no group is for a name of who asks, nor for all robots (*)")
	}
}

// lineList names lines.
func lineList(lines []int) string {
	var numbers []string
	for i, n := range lines {
		if i == maxTold {
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

// verdict tells what came out.
func (x *explainer) verdict() {
	colour, verdict := red, "refuse"
	if x.Allowed {
		colour, verdict = green, "allow"
	}
	x.step("Verdict", "%s: %s", x.paint(colour, verdict), x.because())
}

func (x *explainer) because() string {
	switch x.Reason {
	case rules.ReasonRule:
		if x.Allowed {
			return fmt.Sprintf("line %d, %s, lets %s fetch it", x.Line, quoted(x.Rule), x.who())
		}
		return fmt.Sprintf("line %d, %s, keeps %s from it", x.Line, quoted(x.Rule), x.who())
	case rules.ReasonNoRule:
		return "no rule speaks of it"
	case rules.ReasonOverride:
		verb := "lets it through whatever the rules say"
		if !x.Allowed {
			verb = "refuses it whatever the rules say"
		}
		return fmt.Sprintf("%s, an exception of the operator's, %s (%s)", quoted(x.Rule), verb, quoted(x.Settled))
	case rules.ReasonNotACrawl:
		return fmt.Sprintf("it is a service that programs call, not a site they crawl, so nothing is judged (%s)", quoted(x.Settled))
	case rules.ReasonExempt:
		return "the operator has declared this client to be people, who are not judged"
	case rules.ReasonUnnamed:
		return "the operator wants this client to say who it is, and it sends no User-Agent"
	case rules.ReasonRobotsTxt:
		return "robots.txt itself may always be fetched (RFC 9309 §2.2.2)"
	case rules.ReasonRobotsUnavailable:
		return "the site has no rules, so everything may be fetched (RFC 9309 §2.3.1.3)" + x.remark()
	case rules.ReasonRobotsUnreachable, rules.ReasonOriginUnreachable:
		if x.tooWild() {
			return "the rules have more than 1,048,576 wildcards (*), too many to judge by: everything but /robots.txt is refused until the site has fewer"
		}
		return "the rules cannot be had and no copy may stand in, so nothing may be fetched until they can (RFC 9309 §2.3.1.4)" + x.remark()
	case rules.ReasonDestination:
		return "heed may not reach that address (see [access] in proxy.toml)" + x.remark()
	default:
		return "no server can be asked for this" + x.remark()
	}
}

// who is whom the deciding group is for.
func (x *explainer) who() string {
	if x.Token == "" {
		return "all robots (*)"
	}
	return quoted(x.Token)
}

func (x *explainer) remark() string {
	if x.Detail == "" {
		return ""
	}
	return ": " + quoted(x.Detail)
}
