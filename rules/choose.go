package rules

import (
	"slices"
	"strings"
)

// chains are the names that a robot's publisher says it obeys next when a file
// has no group of its own name.
var chains = map[string][]string{
	"googlebot-image":       {"googlebot"},
	"googlebot-video":       {"googlebot"},
	"googlebot-news":        {"googlebot"},
	"google-inspectiontool": {"googlebot"},
	"google-cloudvertexbot": {"googlebot"},
	"googleother-image":     {"googleother"},
	"googleother-video":     {"googleother"},
	"applebot":              {"googlebot"},
	"bingbot":               {"msnbot"},
	"yandexbot":             {"yandex"},
	"yandeximages":          {"yandex"},
	"baiduspider-image":     {"baiduspider"},
	"baiduspider-video":     {"baiduspider"},
	"baiduspider-news":      {"baiduspider"},
	"semrushbot-sa":         {"semrushbot"},
	"semrushbot-ba":         {"semrushbot"},
	"ahrefssiteaudit":       {"ahrefsbot"},
}

// named is the groups of one name, merged.
type named struct {
	name   string // normalised; "*" for the star group
	text   string // as first written
	groups []int
}

// governing is what governs one agent: each set must allow.
type governing struct {
	sets []chosen
}

type chosen struct {
	named *named
	token Token
}

// index maps names to their groups.
func indexNames(groups []group) []*named {
	byName := map[string]*named{}
	var all []*named
	for i, g := range groups {
		for _, text := range g.agents {
			for _, name := range groupNames(text) {
				n := byName[name]
				if n == nil {
					n = &named{name: name, text: text}
					byName[name] = n
					all = append(all, n)
				}
				if !slices.Contains(n.groups, i) {
					n.groups = append(n.groups, i)
				}
			}
		}
	}
	return all
}

// groupNames normalises the value of a user-agent line. A whole User-Agent
// string stands for the robots it names.
func groupNames(value string) []string {
	v := strings.ToLower(strings.TrimSpace(value))
	if v == "*" || strings.HasPrefix(v, "* ") || strings.HasPrefix(v, "*\t") {
		return []string{"*"}
	}
	if strings.HasPrefix(v, "mozilla/") {
		var names []string
		for _, t := range tokensOf(value) {
			names = append(names, t.Name)
		}
		return names
	}
	v, _, _ = strings.Cut(v, "/")
	v = nameOf(strings.TrimRight(v, "*"))
	if v == "" {
		return nil
	}
	return []string{v}
}

// choose finds what governs an agent.
func choose(all []*named, tokens []Token) governing {
	var g governing
	for _, t := range tokens {
		n := best(all, t.Name)
		if n == nil || slices.ContainsFunc(g.sets, func(c chosen) bool { return c.named == n }) {
			continue
		}
		g.sets = append(g.sets, chosen{n, t})
	}
	if len(g.sets) == 0 {
		if n := find(all, "*"); n != nil {
			g.sets = []chosen{{named: n}}
		}
	}
	return g
}

func find(all []*named, name string) *named {
	for _, n := range all {
		if n.name == name {
			return n
		}
	}
	return nil
}

// best returns the groups that fit a candidate best: its own name, the first
// word of a name of several words, or the next name its publisher obeys.
func best(all []*named, candidate string) *named {
	if candidate == "*" {
		return nil
	}
	if n := find(all, candidate); n != nil {
		return n
	}
	for _, n := range all {
		if first, _, several := strings.Cut(n.name, " "); several && first == candidate {
			return n
		}
	}
	for _, next := range chains[candidate] {
		if n := find(all, next); n != nil {
			return n
		}
	}
	return nil
}
