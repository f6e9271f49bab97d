package command

import (
	"slices"
	"time"

	"heed/internal/console"
	"heed/internal/counts"
)

// printReach prints a row for each upstream proxy and each site that fails. A site whose
// robots.txt is in trouble has its row there.
func printReach(row func(name, format string, values ...any), s *counts.Reach, troubles []counts.Trouble) {
	for i := range s.Proxies {
		p := &s.Proxies[i]
		row("upstream", "%s: %s, since %s", console.Quoted(p.Name), times(p.Failed)+" not usable", p.Since.UTC().Format(time.RFC3339))
	}
	for _, site := range s.Sites {
		if !slices.ContainsFunc(troubles, func(t counts.Trouble) bool { return t.Origin == site.Origin }) {
			row("not reached", "%s: %s", console.Quoted(site.Origin), console.Quoted(site.Err))
		}
	}
}
