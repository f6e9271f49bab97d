package replay

import (
	"slices"
	"strings"

	"heed/rules"
)

// Files that would need more to be judged are left out of decideBeginning: under all
// others no target of a usual length is too complex.
const (
	maxRules    = 20_000
	maxSearched = 20 // rules whose pieces may be searched for in a target
)

// decideBeginning judges all targets that begin with beginning, which ends in the query,
// and returns the Decision that they have in common. ok is false when some may have
// another one, or when that cannot be excluded in a simple way: a rule without "$" that
// matches the beginning matches them all, and a rule whose first piece differs from the
// beginning matches none. Any other rule is doubtful, and must be shorter than the one
// that decides.
func decideBeginning(p *rules.Policy, agent *rules.Agent, beginning string) (d rules.Decision, ok bool) {
	if beginning == "" || beginning[0] != '/' || strings.HasPrefix("/robots.txt", beginning) {
		return d, false
	}
	x := p.Explain(agent, rules.NewTarget(beginning))
	total := 0
	for _, g := range x.Governing {
		total += g.Rules
	}
	switch {
	case total == 0 || len(x.Governing) > rules.MaxGoverning:
		return x.Decision, true // whatever follows
	case p.Profile() == rules.Google, total > maxRules, endsInEscape(beginning), !strings.Contains(beginning, "?"):
		return d, false
	}
	// Readings concern the path and the separators in the query. With a single one both
	// are as they are sent; one that refuses is the first, or else there are others.
	if len(x.Readings) != 1 {
		return d, false
	}
	return x.Decision, certain(p, agent, &x.Readings[0])
}

// endsInEscape reports whether what follows may complete an escape.
func endsInEscape(beginning string) bool {
	i := strings.LastIndexByte(beginning, '%')
	return i >= 0 && i+len("%41") > len(beginning)
}

// certain reports whether no doubtful rule is as long as the one that decides about a
// beginning, under any of the groups that were asked.
func certain(p *rules.Policy, agent *rules.Agent, beginning *rules.Reading) bool {
	doubtful, best := make([]int, len(beginning.Results)), make([]int, len(beginning.Results))
	whole := false // a rule with "$" matches the beginning, and may be the one that decides
	searched := 0
	p.FirstPieces(agent, func(governing, line, octets int, first string, more, ends bool) {
		if governing >= len(best) {
			return // an earlier group refuses
		}
		target := beginning.Target
		if more && (strings.HasPrefix(target, first) || strings.HasPrefix(first, target)) {
			searched++
		}
		switch {
		case !ends && slices.ContainsFunc(beginning.Results[governing].Matches, func(m rules.Match) bool { return m.Line == line && m.Octets == octets }):
			return // it matches them all
		case strings.HasPrefix(target, first) && (more || first == target), strings.HasPrefix(first, target):
		default:
			return // it matches none
		}
		whole = whole || ends && first == target
		doubtful[governing] = max(doubtful[governing], octets)
	})
	for i, result := range beginning.Results {
		if len(result.Matches) > 0 {
			best[i] = result.Matches[0].Octets
		}
		if doubtful[i] > 0 && doubtful[i] >= best[i] {
			return false
		}
	}
	return !whole && searched <= maxSearched
}
