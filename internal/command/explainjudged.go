package command

import (
	"fmt"

	"heed/rules"
)

// whatIsJudged tells each reading of the target with the rules that fit it.
func (x *explainer) whatIsJudged() {
	quiet := 0 // readings that no rule fits or that are allowed, beyond the first
	for i, r := range x.road.Readings {
		last := i == len(x.road.Readings)-1
		if i > 0 && !(last && x.refused(r)) {
			quiet++
			continue
		}
		if quiet > 0 {
			x.more("in %s: allowed, too", plural(uint64(quiet), "other spelling"))
			quiet = 0
		}
		if i == 0 {
			x.step("Judged", "%s", quoted(r.Target))
		} else {
			x.more("but a server may take it for %s (%s):", quoted(r.Target), spelling(r.Variant))
		}
		x.opinions(r)
	}
	if quiet > 0 {
		x.more("in %s that servers may read it in: allowed, too", plural(uint64(quiet), "other spelling"))
	}
}

func (x *explainer) refused(r rules.Reading) bool {
	return len(r.Opinions) > 0 && r.Opinions[len(r.Opinions)-1].Verdict == rules.Refuse
}

// spellings says what the names of readings stand for.
var spellings = map[string]string{
	"":   "with & and = as they may be sent",
	"v0": "decoded",
	"v1": "v1: dot segments resolved",
	"v2": "v2: slashes joined and dot segments resolved",
	"v3": `v3: escaped slashes and \ are slashes`,
	"v4": "v4: without what follows ;",
	"v5": "v5: decoded once more",
}

func spelling(variant string) string {
	if text, known := spellings[variant]; known {
		return text
	}
	return variant
}

// opinions tells the rules that fit a reading, those of each group.
func (x *explainer) opinions(r rules.Reading) {
	for i, o := range r.Opinions {
		of := ""
		if len(x.road.Governing) > 1 && i < len(x.road.Governing) {
			of = "of group " + quoted(x.road.Governing[i].Name) + " "
		}
		if len(o.Matches) == 0 {
			x.more("  no rule %sfits", of)
			continue
		}
		if of != "" {
			x.more("  %sthese fit:", of)
		}
		for j, m := range o.Matches[:min(len(o.Matches), maxTold)] {
			text := fmt.Sprintf("  line %d: %s (%s)", m.Line, quoted(m.Rule), plural(uint64(m.Octets), "octet"))
			if j == 0 {
				text += " <- " + x.why(o)
			}
			x.more("%s", text)
		}
		if more := len(o.Matches) + o.Further - maxTold; more > 0 {
			x.more("  and %s that count for less", plural(uint64(more), "rule"))
		}
	}
}

// why says why the first rule of an opinion counts.
func (x *explainer) why(o rules.Opinion) string {
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
