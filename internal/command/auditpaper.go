package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"heed/internal/audit/replay"
	"heed/internal/audit/report"
	"heed/rules"
)

// paper writes the tables of a paper.
func (c *AuditReportCmd) paper(a *App, q report.Query, records []report.Record) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := &report.Paper{
		Query: q, Now: a.Now(), Step: func(what string) { a.progress("making " + what) },
		Sensitivity: func(ctx context.Context, r report.Record) ([]report.Sensitivity, error) {
			return sensitivity(ctx, a, r)
		},
	}
	if err := p.Write(ctx, c.Paper, records); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "the tables are in %s; begin with methods.txt and codebook.csv\n", quoted(c.Paper))
	return nil
}

// sensitivity judges a record again under each profile.
func sensitivity(ctx context.Context, a *App, r report.Record) (list []report.Sensitivity, err error) {
	for _, profile := range []rules.Profile{rules.Standard, rules.Strict, rules.Google, rules.REP1994} {
		progress, end := a.bar("judging again under " + profile.String())
		result, err := replay.Judge(ctx, r.DB, replay.Options{Books: bookInForce, If: &replay.If{Profile: &profile}, Progress: progress})
		end()
		if err != nil {
			return nil, fmt.Errorf("%s cannot be judged again: %w", quoted(r.Name), err)
		}
		list = append(list, report.Sensitivity{
			Profile: profile.String(), Judged: result.If.Judged, Allowed: result.If.Allowed, Refused: result.If.Refused, Otherwise: result.If.Otherwise,
		})
	}
	return list, nil
}
