package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heed/internal/audit/counts"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/judge/reason"
	"heed/internal/output/console"
	"heed/internal/output/figures"
)

// mostBusy is how many clients, and how many sites, are printed for a person.
const mostBusy = 5

// printTraffic prints the octets of the last hour, and when a site last answered.
func printTraffic(row func(name, format string, values ...any), s *control.Status, now time.Time) {
	if s.Busiest.BytesIn+s.Busiest.BytesOut > 0 {
		row("traffic", "%s in the last hour", trafficWords(&s.Busiest.Traffic))
	}
	last := "none since the start"
	if at := s.Busiest.Success; !at.IsZero() {
		last = fmt.Sprintf("%s, %v ago", at.UTC().Format(time.RFC3339), max(0, now.Sub(at)).Round(time.Second))
	}
	row("last success", "%s", last)
}

// trafficWords returns the octets of answers and of uploads.
func trafficWords(t *counts.Traffic) string {
	text := figures.Size(int64(t.BytesOut)) + " answered"
	if t.BytesIn > 0 {
		text += ", " + figures.Size(int64(t.BytesIn)) + " uploaded"
	}
	return text
}

// printBusiest prints a row for each of the busiest clients and sites.
func printBusiest(row func(name, format string, values ...any), b *counts.Busiest, now time.Time) {
	for _, list := range []struct {
		name string
		of   []counts.NameCount
	}{{"busy client", b.Clients}, {"busy site", b.Sites}} {
		for i := range list.of[:min(mostBusy, len(list.of))] {
			row(list.name, "%s", busyWords(&list.of[i], now))
		}
	}
}

// busyWords returns the counts of one client or site: the classes other than allowed, the
// largest first, the waits, the octets and the last success.
func busyWords(c *counts.NameCount, now time.Time) string {
	text := console.Quoted(c.Name) + ": " + console.Plural(c.Requests, "request")
	classes := slices.SortedFunc(maps.Keys(c.Classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.Classes[b], c.Classes[a]), strings.Compare(a, b))
	})
	for _, class := range classes {
		if class != reason.Allowed.String() {
			text += fmt.Sprintf(", %d %s", c.Classes[class], class)
		}
	}
	if c.Waits > 0 {
		text += fmt.Sprintf("; %d waited, %s in all", c.Waits, shown(c.Waited))
	}
	text += "; " + trafficWords(&c.Traffic)
	if c.Success.IsZero() {
		return text + "; no success in the hour"
	}
	return text + fmt.Sprintf("; last success %v ago", max(0, now.Sub(c.Success)).Round(time.Second))
}

// printRoom prints the space of the record and of the stored policies.
func printRoom(row func(name, format string, values ...any), r *control.Room) {
	if r.Record != nil {
		row("record", "%s%s", fileWords(&r.Record.Space), growthWords(r.Record))
	}
	if r.Policies != nil {
		row("policies", "%s", fileWords(r.Policies))
	}
}

// fileWords returns the size of a file and the free space beside it.
func fileWords(f *state.Space) string {
	text := console.Quoted(f.Path) + ", " + figures.Size(f.Bytes)
	if f.Free != nil {
		text += ", " + figures.Size(*f.Free) + " free"
	}
	return text
}

// growthWords returns how fast the record grows, and for how long its room lasts.
func growthWords(r *state.Growing) string {
	text := ""
	if r.Limit > 0 {
		text += ", at most " + config.ByteSize(r.Limit).String()
	}
	if r.PerDay > 0 {
		text += fmt.Sprintf("; grows by %s a day", figures.Size(r.PerDay))
	}
	if r.Days == nil {
		return text
	}
	days := "less than a day"
	if *r.Days >= 1 {
		days = "about " + console.Plural(uint64(*r.Days), "day")
	}
	if r.UntilLimit() {
		return text + ": the oldest decisions are removed in " + days
	}
	return text + ": the disk is full in " + days
}

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
