package command

import (
	"slices"
	"time"

	"heed/internal/audit"
	"heed/internal/console"
	"heed/internal/reach"
)

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
