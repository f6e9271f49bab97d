package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"heed/internal/config"
	"heed/internal/counts"
	"heed/internal/figures"
	"heed/internal/reason"
)

// clientsShown is how many clients a page lists.
const clientsShown = 100

type clientsPage struct {
	Day      *totals // nil: decisions are not recorded
	Rows     []clientGroup
	More     int
	Busiest  []busyName // of the last hour
	Settings []config.ClientConfig
}

// busyName is a client or a site of the last hour.
type busyName struct {
	counts.NameCount
	Pieces []figures.Piece
}

func (d *Dashboard) clients(r *http.Request) (*view, error) {
	p := &clientsPage{Settings: d.Heed.Config().Clients, Busiest: busiest(d.Heed.Status().Busiest.Clients)}
	day, err := d.record.day(r.Context())
	switch {
	case errors.Is(err, errNoRecord):
	case err != nil:
		return nil, err
	default:
		p.Day = day
		all := grouped(day.Clients)
		p.Rows = all[:min(len(all), clientsShown)]
		p.More = len(all) - len(p.Rows)
	}
	return &view{Page: "clients", Title: "Clients", Data: p}, nil
}

// busiest returns names with their bars.
func busiest(names []counts.NameCount) (all []busyName) {
	for _, c := range names {
		var classes reason.Counts
		for _, k := range reason.Classes() {
			classes[k] = int64(c.Classes[k.String()])
		}
		all = append(all, busyName{c, figures.Pieces(&classes, int64(names[0].Requests))})
	}
	return all
}

// clientGroup is the requests of all clients with one name: that of a [[client]], of a user,
// or an address. Its details are those of the one with the most requests.
type clientGroup struct {
	clientTotal
	Others int // addresses with User-Agents of the same name, beside its own
}

// grouped returns the clients by name, those with the most requests first.
func grouped(clients []clientTotal) (all []clientGroup) {
	at, seen := map[string]int{}, map[string]bool{}
	for i := range clients {
		c := &clients[i]
		name := cmp.Or(c.Configured(), c.User, c.Address) + "\x00" + c.Mode
		if c.Configured() == "" {
			name += "\x00" + strings.Join(c.Tokens, " ")
		}
		who := name + "\x00" + c.Address + "\x00" + c.UserAgent // it has a row for each start of heed
		again := seen[who]
		seen[who] = true
		n, known := at[name]
		if !known {
			at[name] = len(all)
			all = append(all, clientGroup{clientTotal: *c})
			continue
		}
		g := &all[n]
		if !again {
			g.Others++
		}
		g.Classes.Add(&c.Classes)
		if c.Last.After(g.Last) {
			g.Last = c.Last
		}
	}
	slices.SortStableFunc(all, func(a, b clientGroup) int { return cmp.Compare(b.Requests(), a.Requests()) })
	return all
}

// Agent returns the names that the client is judged under.
func (c *clientTotal) Agent() string { return strings.Join(c.Tokens, ", ") }
