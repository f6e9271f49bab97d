package dashboard

import (
	"errors"
	"net/http"

	"heed/internal/audit/counts"
	"heed/internal/config"
	"heed/internal/judge/reason"
	"heed/internal/output/figures"
)

// clientsShown is how many clients a page lists.
const clientsShown = 100

type clientsPage struct {
	Day      *totals    // nil: decisions are not recorded
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
	var err error
	if p.Day, err = d.record.day(r.Context()); err != nil && !errors.Is(err, errNoRecord) {
		return nil, err
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
