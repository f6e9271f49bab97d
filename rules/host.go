package rules

// DecideHost judges a site of which no target can be seen, since it is reached
// through a tunnel. It refuses when agent is barred from everything: a rule
// disallows every path, and there is no Allow. Otherwise it allows, and unseen
// is how many rules might have refused what goes through the tunnel; 0 says
// that nothing was missed. A nil agent is judged under the star group. The
// reason is ReasonHostOnly, or that of Decide where there are no rules.
func (p *Policy) DecideHost(agent *Agent) (d Decision, unseen int) {
	if p.source.State != Available || p.engine == nil {
		return p.Decide(agent, "/"), 0
	}
	sets := p.engine.governing(agent)
	if len(sets) > MaxGoverning {
		return Decision{Verdict: Refuse, Reason: ReasonMalformed}, 0
	}
	d = Decision{Verdict: Allow, Reason: ReasonHostOnly}
	for i := range sets {
		own, disallows := p.engine.judgeHost(&sets[i])
		if own.Verdict == Refuse {
			return own, 0
		}
		unseen += disallows
		if i == 0 {
			d = own
		}
	}
	return d, unseen
}

// judgeHost judges a host by one set of rules.
func (e *engine) judgeHost(c *chosen) (d Decision, disallows int) {
	d = Decision{Verdict: Allow, Reason: ReasonHostOnly, Group: c.group, Token: c.token.Name, Piece: c.token.Piece}
	bars, allows := -1, false
	for _, id := range e.rulesOf(e.groupsOf(c.at)) {
		switch {
		case e.rules[id].allows():
			allows = true
		default:
			disallows++
			if bars < 0 && e.matchesAll(id) {
				bars = int(id)
			}
		}
	}
	if bars >= 0 && !allows {
		d.Verdict = Refuse
		d.Rule, d.Line = e.ruleText(bars)
	}
	return d, disallows
}

// matchesAll reports whether a rule matches every target. One that matches "/"
// has nothing but operators and at most one slash in its pattern; unless it is
// bound to that slash, it matches whatever has one.
func (e *engine) matchesAll(id uint32) bool {
	return e.matches(id, "/") && e.matches(id, "/x")
}
