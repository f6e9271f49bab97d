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
	Busiest  []busyClient // of the last hour, without a record
	Settings []config.ClientConfig
}

// busyClient is a client of the last hour.
type busyClient struct {
	busy.Counts
	Pieces []figures.Piece
}

func (d *Dashboard) clients(r *http.Request) (*view, error) {
	p := &clientsPage{Settings: d.Heed.Config().Clients}
	day, err := d.record.day(r.Context())
	switch {
	case errors.Is(err, errNoRecord):
		p.Busiest = busiest(d.Heed.Status().Busiest.Clients)
	case err != nil:
		return nil, err
	default:
		p.Day = day
		p.Rows = day.Clients[:min(len(day.Clients), clientsShown)]
		p.More = len(day.Clients) - len(p.Rows)
	}
	return &view{Page: "clients", Title: "Clients", Data: p}, nil
}

func busiest(clients []busy.Counts) (all []busyClient) {
	for _, c := range clients {
		var classes reason.Counts
		for _, k := range reason.Classes() {
			classes[k] = int64(c.Classes[k.String()])
		}
		all = append(all, busyClient{c, figures.Pieces(&classes, int64(clients[0].Requests))})
	}
	return all
}

// Agent returns the names that the client is judged under.
func (c *clientTotal) Agent() string { return strings.Join(c.Tokens, ", ") }
