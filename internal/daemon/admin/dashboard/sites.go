package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"heed/internal/control"
	"heed/internal/pace"
)

// sitesShown is how many sites a page lists.
const sitesShown = 200

// siteRow is a site in the list.
type siteRow struct {
	*control.CacheEntry // nil: no policy is in memory
	Origin              string
	Queue               *pace.SiteStatus // nil: nothing waits, and it is not paused
}

type sitesPage struct {
	Text    string // that was searched for
	Rows    []siteRow
	All     int // that contain Text
	InStore int // policies in memory
	Busiest []busyName
}

func (d *Dashboard) sites(r *http.Request) (*view, error) {
	p := &sitesPage{Text: strings.ToLower(strings.TrimSpace(r.URL.Query().Get("q")))}
	if p.Text == "" {
		p.Busiest = busiest(d.Heed.Status().Busiest.Sites)
	}
	queues := map[string]*pace.SiteStatus{}
	for _, q := range d.Heed.Queues() {
		queues[q.Origin] = &q
	}
	waiting := map[string]bool{} // that have a policy
	add := func(row siteRow) {
		if strings.Contains(row.Origin, p.Text) {
			p.Rows = append(p.Rows, row)
		}
	}
	err := d.Heed.Cache(func(k control.CacheAPI) error {
		return k.List(r.Context(), func(e *control.CacheEntry) error {
			p.InStore++
			waiting[e.Origin] = true
			add(siteRow{e, e.Origin, queues[e.Origin]})
			return nil
		})
	})
	for origin, q := range queues {
		if !waiting[origin] {
			add(siteRow{nil, origin, q})
		}
	}
	slices.SortFunc(p.Rows, func(a, b siteRow) int {
		return cmp.Or(cmp.Compare(b.weight(), a.weight()), cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.For(), b.For()))
	})
	p.All = len(p.Rows)
	p.Rows = p.Rows[:min(len(p.Rows), sitesShown)]
	return &view{Page: "sites", Title: "Sites", Data: p}, err
}

// weight orders sites: those with a queue first, then those whose policy fails.
func (s *siteRow) weight() int {
	switch {
	case s.Queue != nil:
		return 1000 + s.Queue.Waiting
	case s.State == "unreachable":
		return 2
	case s.State == "stale":
		return 1
	}
	return 0
}

// Address is that whose names take the turns of Queue together; empty: it is a site.
func (s *siteRow) Address() string {
	if s.Queue == nil {
		return ""
	}
	return s.Queue.Address
}

// For returns for which clients the policy is; empty: all.
func (s *siteRow) For() string {
	if s.CacheEntry == nil {
		return ""
	}
	return s.CacheEntry.For
}

// sitePage is what the page of one site shows.
type sitePage struct {
	Origin   string
	Queue    *pace.SiteStatus
	Policies []sitePolicy
	Host     string // for the search of its decisions
}

type sitePolicy struct {
	*control.CacheEntry
	Robots *excerpt // nil: none is stored
}

func (d *Dashboard) site(r *http.Request) (*view, error) {
	p := &sitePage{Origin: r.URL.Query().Get("of")}
	for _, q := range d.Heed.Queues() {
		if q.Origin == p.Origin {
			p.Queue = &q
		}
	}
	var all []*control.CacheEntry
	err := d.Heed.Cache(func(k control.CacheAPI) (err error) {
		all, err = k.Show(r.Context(), p.Origin)
		return err
	})
	if err != nil {
		return nil, &shownError{http.StatusNotFound, "That is not a site.\n" + err.Error()}
	}
	for _, e := range all {
		x := sitePolicy{CacheEntry: e}
		if e.Text != nil {
			x.Robots = excerptOf([]byte(*e.Text), 0)
		}
		p.Policies = append(p.Policies, x)
	}
	_, host, _ := strings.Cut(p.Origin, "://")
	if at := strings.LastIndexByte(host, ':'); at > 0 && !strings.HasSuffix(host, "]") {
		host = host[:at]
	}
	p.Host = strings.Trim(host, "[]")
	return &view{Page: "site", Title: p.Origin, Data: p}, nil
}

// act does what a form asks for, and returns to the page that shows the result.
func (d *Dashboard) act(r *http.Request) (*view, error) {
	if !d.MayAct(r.Context()) {
		return nil, errReadOnly
	}
	of := r.PostFormValue("of")
	var err error
	then := "/sites/one?of=" + url.QueryEscape(of)
	switch r.PathValue("action") {
	case "end-exception":
		then, err = "/settings", d.Heed.EndException(of)
	case "end-observing":
		then, err = "/settings", d.Heed.EndObserving()
	case "end-pause":
		err = d.Heed.EndPause(of)
	case "forget": // heed cache purge
		then, err = "/sites", d.Heed.Cache(func(k control.CacheAPI) error { _, err := k.Purge(r.Context(), of); return err })
	case "fetch": // heed cache warm
		err = d.Heed.Cache(func(k control.CacheAPI) error { _, err := k.Warm(r.Context(), of); return err })
	default:
		return nil, errNotFound
	}
	if err != nil {
		return nil, &shownError{http.StatusConflict, err.Error()}
	}
	return &view{Page: redirected, Title: then}, nil
}
