package dashboard

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/check/why"
	"heed/internal/judge/reason"
	"heed/rules"
)

// perPage is how many decisions a page lists.
const perPage = 50

// row is a decision in a list.
type row struct {
	ID, Method, URL string
	Time            time.Time
	Class           reason.Class
	Verdict         string // in words, when it is not that of Class
	Client, Agent   string
	Why             string
	Status          int    // 0: none yet
	Waited          string // for the rules and for turns; empty: less than 10 ms
}

// rowOf returns what a list shows of a decision.
func rowOf(d *replay.Decision) row {
	final, failed := &d.Verdict, false
	if d.Late != nil {
		final = d.Late
	}
	r := row{ID: d.ID, Method: d.Method, URL: d.URL, Time: d.Time, Client: d.Client, Agent: d.Agent, Why: why.ReasonText(&d.Verdict, why.Words) + why.ResultText(d, why.Words)}
	if wait := time.Duration(d.Waited * float64(time.Second)); wait >= 10*time.Millisecond {
		r.Waited = wait.Round(10 * time.Millisecond).String()
	}
	if o := d.Outcome; o != nil {
		r.Status, failed = o.Status, !o.FromSite && reason.FailedStatus(o.Status)
	}
	if r.Class = reason.ClassOf(rules.ParseVerdict(final.Verdict), rules.Reason(final.Reason), failed); final.Verdict == rules.WouldRefuse.String() {
		r.Verdict = "only observed"
	}
	return r
}

// search is the form of the page, as it was sent: its fields that are not empty.
type search struct{ url.Values }

// searchFields are the fields of the form, and the number of the decision from which on earlier
// ones are listed.
var searchFields = []string{"q", "class", "reason", "client", "host", "within", "from", "to", "before"}

// within are the windows of time that can be chosen.
var within = []struct {
	Value, Name string
	length      time.Duration // 0: no bound
}{
	{"1h", "last hour", time.Hour}, {"24h", "last 24 hours", oneDay}, {"7d", "last 7 days", 7 * oneDay}, {"30d", "last 30 days", 30 * oneDay}, {"all", "the whole record", 0},
}

func searchOf(r *http.Request) search {
	s := search{url.Values{}}
	for _, name := range searchFields {
		s = s.with(name, strings.TrimSpace(r.URL.Query().Get(name)))
	}
	if s.Get("within")+s.Get("from")+s.Get("to") == "" {
		s = s.with("within", "24h")
	}
	return s.with("host", strings.ToLower(s.Get("host")))
}

// with returns the search with another value of a field.
func (s search) with(name, value string) search {
	s.Values = maps.Clone(s.Values)
	if s.Set(name, value); value == "" {
		s.Del(name)
	}
	return s
}

// Plain reports whether the search selects all of the last 24 hours.
func (s search) Plain() bool { return len(s.Values) == 1 && s.Get("within") == "24h" }

// Link returns the address of the page with this search.
func (s search) Link() string { return "/decisions?" + s.Encode() }

// store returns the search of the record, at a time.
func (s search) store(now time.Time) (q replay.Search, err error) {
	q.Client, q.Host, q.Text, q.Reason, q.Limit, q.Most = s.Get("client"), s.Get("host"), s.Get("q"), s.Get("reason"), perPage, wideMost
	q.Before, _ = strconv.ParseInt(s.Get("before"), 10, 64) // 0: from the last one
	for _, w := range within {
		if w.Value == s.Get("within") && w.length > 0 {
			q.From = now.Add(-w.length)
			if w.length <= oneDay && q.Before == 0 {
				q.Most = dayMost
			}
		}
	}
	for _, c := range reason.Classes() {
		if c.Key() == s.Get("class") {
			q.Class, q.ByClass = c, true
		}
	}
	if s.Get("class") != "" && !q.ByClass {
		return q, &shownError{http.StatusBadRequest, "There is no such class of decisions.\nChoose one from the list."}
	}
	for text, at := range map[string]*time.Time{s.Get("from"): &q.From, s.Get("to"): &q.To} {
		if text == "" {
			continue
		}
		if *at, err = parseTime(text); err != nil {
			return q, err
		}
	}
	if o, target, err := rules.ParseRecorded(q.Text); err == nil { // it is a whole URL
		q.Text, q.URL = "", &store.Address{Origin: o, Target: target}
	}
	return q, nil
}

// parseTime parses the value of a field for a time, in UTC.
func parseTime(text string) (time.Time, error) {
	for _, form := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, &shownError{http.StatusBadRequest, "A time cannot be read.\nWrite it as 2026-05-03T14:00, in UTC."}
}

// decisionsPage is what the page of decisions shows.
type decisionsPage struct {
	Search  search
	Rows    []row
	Found   *replay.Found
	Next    string // the address of the next page; empty: there is none
	Wider   string // the address of the same search without a bound of time; empty: it has none
	Live    bool
	Within  any
	Classes []reason.Class
	Reasons []reason.Info
}

func (d *Dashboard) decisions(r *http.Request) (*view, error) {
	s := searchOf(r)
	if id, ok := decisionID(s.Get("q")); ok {
		return &view{Page: redirected, Title: "/decisions/" + id}, nil
	}
	q, err := s.store(d.Now())
	if err != nil {
		return nil, err
	}
	record, release, err := d.record.acquire(r.Context())
	if err != nil {
		return nil, err
	}
	defer release()
	found, err := replay.Latest(r.Context(), record, q)
	if err != nil {
		return nil, err
	}
	p := &decisionsPage{Search: s, Found: found, Live: s.Plain(), Within: within, Classes: reason.Classes(), Reasons: reason.All()}
	for _, x := range found.Decisions {
		p.Rows = append(p.Rows, rowOf(x))
	}
	if found.Next > 0 {
		p.Next = s.with("before", strconv.FormatInt(found.Next, 10)).Link()
	} else if within := s.Get("within"); within != "all" && within != "" {
		p.Wider = s.with("within", "all").with("before", "").Link()
	}
	return &view{Page: "decisions", Title: "Decisions", Data: p}, nil
}

// decisionsLive renders the list of the last decisions.
func (d *Dashboard) decisionsLive(ctx context.Context) ([]byte, error) {
	rows, err := d.latest(ctx, perPage)
	if err != nil {
		return nil, err
	}
	return fragment("decisions", "rows", rows)
}

// decisionID returns text as the id of a decision, if it is one.
func decisionID(text string) (string, bool) {
	digits, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(digits) != 16 {
		return "", false
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", digits[:4], digits[4:6], digits[6:8], digits[8:10], digits[10:]), true
}
