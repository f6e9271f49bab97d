package accesslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/base/sqlite"
	"heed/rules"
)

// IsRecord reports whether a file is a record of heed, or another database of SQLite.
func IsRecord(path string) bool { return sqlite.IsDatabase(path) }

// record reads the requests that heed sent to sites. Those that it answered itself never
// reached a site: they are left out, or marked as refused.
type record struct {
	entries func() (*store.Entry, error)
	clients map[int64]*store.Client
	sites   map[int64]rules.Origin
	refused bool // those that heed answered itself count too
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
	r := &record{clients: map[int64]*store.Client{}, sites: map[int64]rules.Origin{}, refused: s.reader.options.Refused}
	all := &store.Filter{}
	err = errors.Join(
		reader.Clients(all, func(c *store.Client) { r.clients[c.ID] = c }),
		reader.Sites(all, func(id int64, o rules.Origin, _ bool) { r.sites[id] = o }),
	)
	var stop func()
	if err == nil {
		r.entries, stop, err = reader.Pull(all)
	}
	if err != nil {
		reader.Close()
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.records, s.closing = r, func() { stop(); reader.Close() }
	return nil
}

func (r *record) next(q *Request) (reason string, err error) {
	e, err := r.entries()
	if e == nil {
		return "", cmp.Or(err, io.EOF)
	}
	q.Line = e.Seq
	o := e.Outcome
	switch {
	case o == nil:
		return "heed recorded no outcome", nil
	case !o.FromSite && o.SiteStatus == 0 && !(audit.IsTunnel(e.Method, e.Target) && o.Status == http.StatusOK):
		if q.Refused = true; !r.refused || e.Site == 0 {
			return aside, nil // the site neither answered nor accepted a tunnel
		}
	case e.Site == 0:
		return "heed recorded no site", nil
	}
	client, site := r.clients[e.Client], r.sites[e.Site]
	if client == nil || site.Host == "" {
		return "", errors.New("the record has a decision without its client or its site\nSee `heed audit verify`")
	}
	q.Time, q.Client, q.Scheme, q.Host = time.UnixMicro(e.Time+e.Waited).UTC(), client.Address, site.Scheme, site.Authority()
	q.Method, q.Target, q.Bytes = e.Method, cmp.Or(e.Target, q.Host), o.BytesOut // a tunnel has a host only
	q.Status, q.UserAgent = cmp.Or(o.SiteStatus, o.Status), cmp.Or(client.Sent, client.UserAgent)
	return "", nil
}
