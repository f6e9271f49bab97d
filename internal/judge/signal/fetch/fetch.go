// Package fetch gets the documents in which sites state how their pages may be used, and
// which no page contains: licences and TDMRep files. Each is requested once for all that
// need it at a time, and its content is cached.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/licence"
	"heed/rules"
)

// Site requests documents. A *cache.Cache is one.
type Site interface {
	// Document returns the status of the answer to a request for u and, with 200 and 203,
	// its body, of at most that many octets. An error means that there was no usable answer.
	// It does not follow a redirect for which permit, unless it is nil, returns an error. by is
	// the host that has named u; empty: that of u.
	Document(ctx context.Context, by string, u *url.URL, most int, permit Permit) (status int, body []byte, err error)
}

// Permit returns an error for a URL that may not be requested.
type Permit = func(context.Context, *url.URL) error

// Bounds of a fetch, and of what is cached.
const (
	// MaxTime is how long one fetch may take, redirects and body included.
	MaxTime = 10 * time.Second
	// tdmRepAge is how long a TDMRep file, or the lack of a document, is valid.
	tdmRepAge = 24 * time.Hour
	// robotsAge is how long the policy of a site that has licences of others is valid.
	robotsAge = time.Hour
	// failureAge is how long a site is not asked again that did not answer.
	failureAge = 15 * time.Minute

	maxDocuments = 4096
	maxBytes     = 64 << 20 // of memory, about
	// parsedSize is about how many times its length a document takes once parsed.
	parsedSize = 4
	entrySize  = 512
)

// Documents are the documents of all sites that are reached in one way. Site must be set
// before the first use. It is safe for concurrent use and must not be copied.
type Documents struct {
	Site Site
	Now  func() time.Time // nil: time.Now

	flights singleflight.Group
	cached  memo.Kept[key, *document]
	purges  atomic.Int64 // a fetch that began before one is not cached
}

// Kind is what a document is.
type Kind string

// The kinds.
const (
	TDMRep  Kind = "tdmrep"
	Licence Kind = "licence"
	Robots  Kind = "robots" // of a site that has licences of others
)

// key identifies a document: for a site that has named it, if that is another one.
type key struct {
	kind    Kind
	profile rules.Profile // of Robots
	by      string        // a host; empty: that of the address
	address string
}

// of reports whether a document is one of an origin: it is there, or named there.
func (k key) of(o rules.Origin) bool {
	at, _, err := rules.ParseURL(k.address)
	return k.by == o.Host || err == nil && at == o
}

// Info describes a cached document, for display.
type Info struct {
	Kind    Kind
	By      string // the host that has named it; empty: that of Address
	Address string
	Why     string    // why it cannot be read; empty: it was read, or there is none
	None    bool      // there is none
	At      time.Time // when it was fetched
	Until   time.Time // from then on it is fetched again
	Bytes   int
}

// List returns the cached documents of an origin, those that it names included; of all origins
// for the zero one. They are in no order.
func (d *Documents) List(o rules.Origin) (all []Info) {
	d.cached.Each(func(k key, doc *document, until time.Time) bool {
		if o == (rules.Origin{}) || k.of(o) {
			i := Info{Kind: k.kind, By: k.by, Address: k.address, At: doc.at, Until: until, Bytes: doc.size}
			switch {
			case doc.licence.Err != nil:
				i.Why = doc.licence.Err.Error()
			case k.kind == TDMRep:
				i.None, i.Why = doc.tdmRep == nil, doc.tdmRep.Unread()
			case k.kind == Robots:
				i.None = doc.robots.Source().State == rules.Unavailable
				if err := doc.robots.Source().Err; err != nil {
					i.Why = publicText(err).Error()
				}
			}
			all = append(all, i)
		}
		return true
	})
	return all
}

// Purge forgets the documents of an origin, those that it names on others included, and reports
// whether there were any; of all origins for the zero one.
func (d *Documents) Purge(o rules.Origin) (had bool) {
	d.purges.Add(1)
	return d.cached.Forget(func(k key, _ *document) bool { return o == (rules.Origin{}) || k.of(o) }) > 0
}

// document is the result of one fetch. It is immutable.
type document struct {
	tdmRep  *signal.TDMRep
	licence signal.Licence
	robots  *rules.Policy
	until   time.Time
	at      time.Time
	size    int
}

// TDMRep returns the TDMRep file of an origin; nil when it has none. One that may be there and
// was not had is signal.UnreadTDMRep: it could not be fetched, the site refuses it to heed
// (401, 403), or it did not arrive before ctx ended. permit is asked about redirects.
func (d *Documents) TDMRep(ctx context.Context, o rules.Origin, permit Permit) *signal.TDMRep {
	u := &url.URL{Scheme: o.Scheme, Host: o.Authority(), Path: signal.TDMRepPath}
	got := d.get(ctx, key{kind: TDMRep, address: u.String()}, func(ctx context.Context) *document {
		var denied error // by permit: what robots.txt keeps from the agent is none
		status, body, err := d.Site.Document(ctx, "", u, signal.MaxTDMRep, func(ctx context.Context, to *url.URL) error {
			if permit != nil {
				denied = permit(ctx, to)
			}
			return denied
		})
		doc := &document{until: d.now().Add(tdmRepAge)}
		switch {
		case denied != nil:
		case failed(status, err):
			doc.until = d.now().Add(failureAge)
			doc.tdmRep = signal.UnreadTDMRep(u.String(), whyNot(status, err).Error())
		case status == http.StatusUnauthorized || status == http.StatusForbidden:
			doc.tdmRep = signal.UnreadTDMRep(u.String(), whyNot(status, nil).Error())
		case status == http.StatusOK || status == http.StatusNonAuthoritativeInfo:
			doc.size = len(body)
			doc.tdmRep = signal.ReadTDMRep(u.String(), body)
		}
		return doc
	})
	if err := got.licence.Err; err != nil { // it has none of its own
		return signal.UnreadTDMRep(u.String(), err.Error())
	}
	return got.tdmRep
}

// whyNot returns why a document was not had.
func whyNot(status int, err error) error {
	if err != nil {
		return publicText(err)
	}
	return fmt.Errorf("it was answered with status %d", status)
}

// Robots returns the policy of an origin, read under a profile, for a document that the site
// by names there. It is separate from that of the origin's own pages, since it is fetched
// under the bounds of that document.
func (d *Documents) Robots(ctx context.Context, by string, o rules.Origin, profile rules.Profile) *rules.Policy {
	u := &url.URL{Scheme: o.Scheme, Host: o.Authority(), Path: "/robots.txt"}
	got := d.get(ctx, key{Robots, profile, by, u.String()}, func(ctx context.Context) *document {
		status, body, err := d.Site.Document(ctx, by, u, rules.MaxBytes, nil)
		doc, source := &document{until: d.now().Add(robotsAge), size: len(body)}, rules.Source{Origin: o, Status: status, Err: err}
		switch {
		case failed(status, err):
			doc.until = d.now().Add(failureAge)
		case status == http.StatusOK || status == http.StatusNonAuthoritativeInfo:
			source.State = rules.Available
		case status >= 400:
			source.State = rules.Unavailable
		}
		doc.robots = rules.NewAs(profile, source, body)
		return doc
	})
	if got.robots == nil {
		return rules.NewAs(profile, rules.Source{Origin: o, Err: errLate}, nil)
	}
	return got.robots
}

// Licence returns the licence document at address, an absolute URL, for the site by. It
// returns early when ctx ends. Each site has its own result: what one may not have heed
// fetch, another may. permit is asked about redirects.
func (d *Documents) Licence(ctx context.Context, by, address string, permit Permit) signal.Licence {
	u, err := url.Parse(address)
	if err != nil {
		return signal.Licence{Err: errors.New("its address is not a URL")}
	}
	got := d.get(ctx, key{kind: Licence, by: by, address: address}, func(ctx context.Context) *document { return d.fetchLicence(ctx, by, u, permit) })
	return got.licence
}

var (
	errLate  = errors.New("it did not arrive in time")
	errFault = errors.New("heed failed on it")
)

func (d *Documents) fetchLicence(ctx context.Context, by string, u *url.URL, permit Permit) *document {
	status, body, err := d.Site.Document(ctx, by, u, licence.MaxBytes, permit)
	doc := &document{until: d.now().Add(licence.DefaultAge), size: len(body)}
	switch {
	case failed(status, err):
		doc.until = d.now().Add(failureAge)
		doc.licence.Err = whyNot(status, err)
	case status != http.StatusOK && status != http.StatusNonAuthoritativeInfo:
		doc.licence.Err = whyNot(status, nil)
	default:
		if doc.licence.Document, doc.licence.Err = licence.Parse(body); doc.licence.Err == nil {
			doc.until = d.now().Add(doc.licence.Document.Age())
		}
	}
	return doc
}

// failed reports whether another request may have another result soon.
func failed(status int, err error) bool {
	return err != nil || status >= 500 || status == http.StatusTooManyRequests
}

// publicText returns err without details of heed's network.
func publicText(err error) error {
	switch public := safetext.Public(err); {
	case err == nil:
		return nil
	case public != "":
		return errors.New("it " + public)
	case errors.Is(err, context.DeadlineExceeded):
		return errLate
	}
	return errors.New("it could not be fetched")
}

// get returns the cached document of a key, else the one that fetch returns; one without
// content when ctx ends before. fetch runs once at a time for each key, and does not end with ctx.
func (d *Documents) get(ctx context.Context, k key, fetch func(context.Context) *document) *document {
	if doc, ok := d.cached.Get(k, d.now()); ok {
		return doc
	}
	purges := d.purges.Load()
	flight := fmt.Sprint(purges, k)
	done := d.flights.DoChan(flight, func() (any, error) {
		if doc, ok := d.cached.Get(k, d.now()); ok { // another fetch has ended since
			return doc, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), MaxTime)
		defer cancel()
		doc := d.fetched(ctx, fetch)
		doc.at = d.now()
		if d.purges.Load() == purges {
			d.cached.Put(k, doc, doc.until, parsedSize*doc.size+2*len(k.address+k.by)+entrySize, maxDocuments, maxBytes)
		}
		return doc, nil
	})
	select {
	case r := <-done:
		return r.Val.(*document)
	case <-ctx.Done():
		return &document{licence: signal.Licence{Err: errLate}}
	}
}

// fetched returns the result of fetch. A panic would end the process, since no caller
// recovers it; it must not be the answer to a hostile document.
func (d *Documents) fetched(ctx context.Context, fetch func(context.Context) *document) (doc *document) {
	defer func() {
		if v := recover(); v != nil {
			doc = &document{until: d.now().Add(failureAge), licence: signal.Licence{Err: errFault}}
		}
	}()
	return fetch(ctx)
}

// now returns the time by the wall clock.
func (d *Documents) now() time.Time {
	if d.Now == nil {
		return time.Now().Round(0)
	}
	return d.Now().Round(0)
}
