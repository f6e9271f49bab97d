package dashboard

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"heed/internal/audit/counts"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/pace"
)

// Heed is the running heed. Its functions are called by several goroutines.
type Heed struct {
	// Status returns what `heed status` prints.
	Status func() *control.Status
	// Recent returns the counts of the last minute, and those of the last 24 hours by
	// period, without the time before the start.
	Recent func() (minute counts.Counts, day []counts.Period)
	// Check judges URLs as `heed check` does. It sends no request except a fetch of
	// robots.txt, to addresses only that the settings allow.
	Check func(context.Context, *control.CheckRequest) ([]*control.Judgement, error)
	// Cache calls do with the policies in memory.
	Cache func(do func(control.CacheAPI) error) error
	// Queues returns the sites where requests wait, or that are paused.
	Queues func() []pace.SiteStatus
	// Config returns the settings in use, which are not changed.
	Config func() *config.Config

	// What an operator may change on the dashboard, beside the policies. Each corresponds to a
	// command of heed, and writes the same line to the log.
	EndException func(id string) error     // heed allow --end, heed refuse --end
	EndObserving func() error              // heed mode enforce
	EndPause     func(origin string) error // heed pace release
}

// Options are the options of New.
type Options struct {
	Heed Heed
	// MayAct reports whether the request of a context may change something.
	MayAct func(context.Context) bool
	// Admitted reports whether the request of a context may still read: a stream that it
	// does not admit any more ends.
	Admitted func(context.Context) bool
	Record   string // the path of the record; empty: decisions are not recorded
	Now      func() time.Time
	Log      *slog.Logger // takes faults

	Defaults *config.Config // the built-in settings; nil: what was changed is not marked
	BuiltIn  []byte         // their text, for the manual
}

// Dashboard is the handler of the pages. Its paths are absolute: it is the handler of the
// root. It refuses requests of other origins that change something, but leaves it to
// its caller who may connect and under which names.
type Dashboard struct {
	Options
	handler http.Handler
	record  *record
	tries   limiter

	viewers atomic.Int64    // of streams
	closed  context.Context // ends with Close
	end     context.CancelFunc
}

// New returns the dashboard of a running heed.
func New(o Options) *Dashboard {
	d := &Dashboard{Options: o, record: openedRecord(o.Record, o.Now)}
	d.closed, d.end = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	page := func(pattern string, view func(*http.Request) (*view, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { d.serve(w, r, view) })
	}
	page("GET /{$}", d.overview)
	page("GET /decisions", d.decisions)
	page("GET /decisions/{id}", d.decision)
	mux.HandleFunc("GET /decisions/{id}/robots.txt", d.decisionRobots)
	page("GET /sites", d.sites)
	page("GET /sites/one", d.site)
	page("GET /clients", d.clients)
	page("GET /try", d.try)
	page("POST /try", d.tryNow)
	page("GET /settings", d.settings)
	page("GET /manual", d.manualList)
	page("GET /manual/{topic}", d.manualTopic)
	page("POST /actions/{action}", d.act)
	page("/", func(*http.Request) (*view, error) { return nil, errNotFound })
	mux.HandleFunc("GET /live/overview", d.stream(d.overviewLive))
	mux.HandleFunc("GET /live/decisions", d.stream(d.decisionsLive))
	mux.HandleFunc("GET /assets/{name}", serveAsset)
	d.handler = http.NewCrossOriginProtection().Handler(mux)
	return d
}

// ServeHTTP serves a page.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a form has no usable Origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	d.handler.ServeHTTP(w, r)
}

// Close ends the streams of all viewers, which a server that shuts down would wait for.
// Further streams are refused.
func (d *Dashboard) Close() { d.end() }

// view is a page: the name of its template, its title and what the template shows.
type view struct {
	Page   string // of pages
	Title  string
	Status int // of the answer; 0: 200
	Retry  time.Duration
	Data   any

	// Set by serve.
	Nav     []navItem
	Actions bool
	Version string
}

// navItem is a link to one of the pages.
type navItem struct {
	Path, Name string
	Here       bool
}

var navigation = []navItem{
	{Path: "/", Name: "Overview"}, {Path: "/decisions", Name: "Decisions"}, {Path: "/sites", Name: "Sites"}, {Path: "/clients", Name: "Clients"},
	{Path: "/try", Name: "Try it"}, {Path: "/settings", Name: "Settings"}, {Path: "/manual", Name: "Manual"},
}

// serve writes the page that make returns.
func (d *Dashboard) serve(w http.ResponseWriter, r *http.Request, make func(*http.Request) (*view, error)) {
	v, err := make(r)
	if err != nil {
		v = failure(err)
	}
	if v.Page == redirected {
		http.Redirect(w, r, v.Title, http.StatusSeeOther)
		return
	}
	v.Version, v.Actions = d.Heed.Status().Version, d.MayAct(r.Context())
	for _, n := range navigation {
		n.Here = r.URL.Path == n.Path || n.Path != "/" && len(r.URL.Path) > len(n.Path) && r.URL.Path[:len(n.Path)+1] == n.Path+"/"
		v.Nav = append(v.Nav, n)
	}
	var out bytes.Buffer
	if err := pages()[v.Page].ExecuteTemplate(&out, "layout", v); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int((v.Retry+time.Second-1)/time.Second))))
	}
	w.WriteHeader(max(v.Status, http.StatusOK))
	_, _ = w.Write(out.Bytes()) // the client may have left
}

// redirected is the Page of a view that leads to the page whose path is its Title.
const redirected = "redirected"

// shownError is an error with the status of its answer.
type shownError struct {
	status int
	text   string
}

// Error returns the text for the operator.
func (e *shownError) Error() string { return e.text }

var (
	errNotFound = &shownError{http.StatusNotFound, "There is no such page.\nThe pages are listed above."}
	errNoRecord = &shownError{http.StatusNotFound, "This heed does not record decisions.\nSet enabled = true under [audit] in proxy.toml, and restart heed."}
	errReadOnly = &shownError{http.StatusForbidden, "This page may not change anything.\nSet actions = true and a token under [admin] in proxy.toml, and use the token here; or use the commands of heed."}
	errTime     = &shownError{http.StatusServiceUnavailable, "It took too long.\nAsk for less, such as a shorter time."}
	errBusy     = &shownError{http.StatusServiceUnavailable, "Too many pages read the record at the moment.\nLoad the page again."}
)

// failure is the page that shows an error. Its first line is what was wrong, the others what
// to do.
func failure(err error) *view {
	var shown *shownError
	switch {
	case errors.As(err, &shown):
	case errors.Is(err, context.DeadlineExceeded):
		shown = errTime
	default:
		shown = &shownError{http.StatusInternalServerError, err.Error()}
	}
	v := &view{Page: "error", Title: "Not possible", Status: shown.status, Data: strings.Split(shown.text, "\n")}
	if v.Status == http.StatusNotFound {
		v.Title = "Not found"
	}
	return v
}
