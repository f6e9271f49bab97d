package command

import (
	"fmt"
	"slices"
	"time"

	"heed/internal/audit"
	"heed/internal/console"
	"heed/internal/reach"
)

// reachIlls returns the reasons why sites cannot be reached that are not theirs.
func reachIlls(s *reach.Status) (ills []string) {
	for i := range s.Proxies {
		ills = append(ills, "the upstream proxy "+console.Quoted(s.Proxies[i].Name)+" cannot be used: "+console.Quoted(s.Proxies[i].Err))
	}
	if s.ManyFail() {
		ills = append(ills, fmt.Sprintf("%d of the %s asked in the last %d minutes failed", s.Failed, console.Plural(uint64(s.Asked), "site"), int(reach.Window/time.Minute)))
	}
	return ills
}

// printReach prints a row for each upstream proxy and each site that fails. A site whose
// robots.txt is in trouble has its row there.
func printReach(row func(name, format string, values ...any), s *reach.Status, troubles []audit.Trouble) {
	for i := range s.Proxies {
		p := &s.Proxies[i]
		row("upstream", "%s: %s, since %s", console.Quoted(p.Name), times(p.Failed)+" not usable", p.Since.UTC().Format(time.RFC3339))
	}
	for _, site := range s.Sites {
		if !slices.ContainsFunc(troubles, func(t audit.Trouble) bool { return t.Origin == site.Origin }) {
			row("not reached", "%s: %s", console.Quoted(site.Origin), console.Quoted(site.Err))
		}
	}
}
