package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heed/internal/busy"
	"heed/internal/config"
	"heed/internal/console"
	"heed/internal/control"
	"heed/internal/reason"
	"heed/internal/room"
)

// mostBusy is how many clients, and how many sites, are printed for a person.
const mostBusy = 5

// printBusiest prints a row for each of the busiest clients and sites.
func printBusiest(row func(name, format string, values ...any), b *busy.Busiest) {
	for _, list := range []struct {
		name string
		of   []busy.Counts
	}{{"busy client", b.Clients}, {"busy site", b.Sites}} {
		for i := range list.of[:min(mostBusy, len(list.of))] {
			row(list.name, "%s", busyWords(&list.of[i]))
		}
	}
}

// busyWords returns the counts of one client or site: the classes other than allowed, the
// largest first, and the waits.
func busyWords(c *busy.Counts) string {
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
		text += fmt.Sprintf("; %d waited, %v in all", c.Waits, c.Waited.Round(time.Second/10))
	}
	return text
}

// printRoom prints the space of the record and of the stored policies.
func printRoom(row func(name, format string, values ...any), r *control.Room) {
	if r.Record != nil {
		row("record", "%s%s", fileWords(&r.Record.File), growthWords(r.Record))
	}
	if r.Policies != nil {
		row("policies", "%s", fileWords(r.Policies))
	}
}

// fileWords returns the size of a file and the free space beside it.
func fileWords(f *room.File) string {
	text := console.Quoted(f.Path) + ", " + spaceWords(f.Bytes)
	if f.Free != nil {
		text += ", " + spaceWords(*f.Free) + " free"
	}
	return text
}

// growthWords returns how fast the record grows, and for how long its room lasts.
func growthWords(r *room.Growing) string {
	text := ""
	if r.Limit > 0 {
		text += ", at most " + config.ByteSize(r.Limit).String()
	}
	if r.PerDay > 0 {
		text += fmt.Sprintf("; grows by %s a day", spaceWords(r.PerDay))
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

// spaceWords returns a size rounded for people.
func spaceWords(octets int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	size, i := float64(octets), 0
	for ; size >= 1000 && i < len(units)-1; i++ {
		size /= 1024
	}
	if i == 0 || size >= 100 {
		return fmt.Sprintf("%.0f %s", size, units[i])
	}
	return fmt.Sprintf("%.1f %s", size, units[i])
}
