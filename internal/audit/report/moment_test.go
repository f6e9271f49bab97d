package report_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
)

// What a report counts, and the names it has for it, are of one moment, though
// new clients, sites and rules come in all the while.
func TestHeed_AReportIsOfOneMomentWhileHeedWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	written := make(chan error, 1)
	go func() { written <- audittest.Crawl{Entries: 2000, Sites: 1000}.Write(path, store.Options{}) }()
	for last, done := int64(0), false; !done; {
		select {
		case err := <-written:
			must.OK(t, err)
			done = true
		default:
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		record, err := store.OpenRecord(path)
		if err != nil {
			continue // it is being made
		}
		records := []*store.Record{record}
		r, err := report.New(records, report.Query{Conduct: true}, time.Now())
		if err == nil {
			err = report.Export(context.Background(), records, report.Query{Filter: store.Filter{Host: "unvisited.test"}}, report.Lines(&bytes.Buffer{}))
		}
		must.OK(t, err)
		c := &r.Total
		must.Need(t, c.Requests >= last && c.Requests == c.Allowed+c.Refused+c.WouldRefuse+c.NotJudged,
			"after %d there are %+v", last, c)
		last = c.Requests
		must.True(t, !done || last == 2000, "at the end there are %d", last)
	}
}
