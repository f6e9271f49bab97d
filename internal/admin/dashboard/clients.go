package dashboard

import (
	"errors"
	"net/http"
	"strings"

	"heed/internal/busy"
	"heed/internal/config"
	"heed/internal/figures"
	"heed/internal/reason"
)

// clientsShown is how many clients a page lists.
const clientsShown = 100

type clientsPage struct {
	Day      *totals // nil: decisions are not recorded
	Rows     []clientTotal
	More     int
	Busiest  []busyName // of the last hour
	Settings []config.ClientConfig
}

// busyName is a client or a site of the last hour.
type busyName struct {
	busy.Counts
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
		p.Rows = day.Clients[:min(len(day.Clients), clientsShown)]
		p.More = len(day.Clients) - len(p.Rows)
	}
	return &view{Page: "clients", Title: "Clients", Data: p}, nil
}

// busiest returns names with their bars.
func busiest(names []busy.Counts) (all []busyName) {
	for _, c := range names {
		var classes reason.Counts
		for _, k := range reason.Classes() {
			classes[k] = int64(c.Classes[k.String()])
		}
		all = append(all, busyName{c, figures.Pieces(&classes, int64(names[0].Requests))})
	}
	return all
}

// Agent returns the names that the client is judged under.
func (c *clientTotal) Agent() string { return strings.Join(c.Tokens, ", ") }
