package accesslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/rules"
)

// isRecord reports whether a file is a record of heed.
func isRecord(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 16)
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "SQLite format 3\x00"
}

// recordBatch is how many decisions are read together.
const recordBatch = 4096

// record reads the requests that heed sent to sites. Those that it answered itself never
// reached a site: they are counted apart.
type record struct {
	reader  *store.Reader
	first   int64 // of the decisions that are not read yet
	last    int64
	entries []store.Entry
	at      int
	n       int64
	clients map[int64]*store.Client
	sites   map[int64]rules.Origin
}

func (s *source) openRecord() error {
	kept, err := store.OpenRecord(s.path)
	if err != nil {
		return err
	}
	reader, err := kept.Read(context.Background())
	if err != nil {
		return err
	}
	r := &record{reader: reader, clients: map[int64]*store.Client{}, sites: map[int64]rules.Origin{}}
	if r.first, r.last, err = reader.Range(); err != nil {
		reader.Close()
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.records = r
	return nil
}

func (r *record) number() int64  { return r.n }
func (r *record) cut() int64     { return 0 }
func (r *record) format() string { return "record of heed" }
func (r *record) close()         { r.reader.Close() }

func (r *record) when() (t time.Time, ok bool, err error) {
	var q Request
	reason, err := r.next(&q)
	return q.Time, reason == "", err
}

// fill reads the next decisions.
func (r *record) fill() error {
	r.entries, r.at = r.entries[:0], 0
	for len(r.entries) == 0 {
		if r.first > r.last || r.last == 0 {
			return io.EOF
		}
		until := min(r.first+recordBatch-1, r.last)
		filter := &store.Filter{First: r.first, Last: until}
		err := r.reader.Entries(filter, func(e *store.Entry) error { r.entries = append(r.entries, *e); return nil })
		if err != nil {
			return err
		}
		r.first = until + 1
	}
	return nil
}

func (r *record) next(q *Request) (reason string, err error) {
	if r.at == len(r.entries) {
		if err := r.fill(); err != nil {
			return "", err
		}
	}
	e := &r.entries[r.at]
	r.at++
	r.n = e.Seq
	switch {
	case e.Outcome == nil:
		return "heed recorded no outcome", nil
	case !reached(e):
		return aside, nil
	}
	if e.Site == 0 {
		return "heed recorded no site", nil
	}
	client, err := r.client(e.Client)
	if err != nil {
		return "", err
	}
	site, err := r.site(e.Site)
	if err != nil {
		return "", err
	}
	q.Time, q.Client, q.Host = time.UnixMicro(e.Time+e.Waited).UTC(), client.Address, site.Authority()
	q.Method, q.Target, q.Bytes = e.Method, cmp.Or(e.Target, q.Host), e.Outcome.BytesOut // a tunnel has a host only
	if q.Status = e.Outcome.Status; e.Outcome.SiteStatus != 0 {
		q.Status = e.Outcome.SiteStatus
	}
	if q.UserAgent = client.Sent; q.UserAgent == "" {
		q.UserAgent = client.UserAgent
	}
	return "", nil
}

// reached reports whether a request came to the site: it answered, or it accepted a tunnel.
func reached(e *store.Entry) bool {
	o := e.Outcome
	return o.FromSite || o.SiteStatus != 0 || audit.IsTunnel(e.Method, e.Target) && o.Status == http.StatusOK
}

func (r *record) client(id int64) (c *store.Client, err error) {
	if c = r.clients[id]; c == nil {
		if c, err = r.reader.Client(id); err == nil && c == nil {
			err = errors.New("the record has a decision without its client\nSee `heed audit verify`")
		}
		r.clients[id] = c
	}
	return c, err
}

func (r *record) site(id int64) (o rules.Origin, err error) {
	o, ok := r.sites[id]
	if !ok {
		o, err = r.reader.Site(id)
		r.sites[id] = o
	}
	return o, err
}
