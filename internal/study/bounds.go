package study

import (
	"fmt"
	"maps"
	"slices"

	"heed/internal/figures"
)

// bounds are how many different things a study remembers, so that a log of forged names
// and addresses, of which an IPv6 network has any number, takes bounded memory.
type bounds struct {
	sites     int // the rest are counted as otherSites
	robots    int // agents of all sites; the rest are otherRobots, those of the built-in list only beyond four times as many
	agents    int // User-Agent strings, which are only looked up again beyond
	addresses int // likewise
	networks  int // the rest are otherNetworks
	actors    int // the rest of an agent are one client
	pairs     int // of client and target, of agent and address, of agent and User-Agent; the rest are not counted as new
}

var defaultBounds = bounds{
	sites: 20_000, robots: 50_000, agents: 300_000, addresses: 4_000_000, networks: 2_000_000, actors: 3_000_000, pairs: 32_000_000,
}

// What is counted together beyond a bound.
const (
	otherSites    = "(other sites)"
	otherRobots   = "(others)"
	otherNetworks = "(other networks)"
)

// exceed counts a request that is beyond a bound.
func (s *Study) exceed(bound int, what string) {
	s.exceeded[fmt.Sprintf("more than %s %s", figures.Commas(int64(bound)), what)]++
}

// boundNotes returns what was counted together, in sentences.
func (s *Study) boundNotes() (notes []string) {
	for _, what := range slices.Sorted(maps.Keys(s.exceeded)) {
		notes = append(notes, what+": "+figures.Number(s.exceeded[what], "request"))
	}
	return notes
}
