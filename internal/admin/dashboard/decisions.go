package dashboard

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/reason"
	"heed/internal/why"
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
	Waited          string // for a turn; empty: it did not
}

// rowOf returns what a list shows of a decision.
func rowOf(d *replay.Decision) row {
	final, failed := &d.Verdict, false
	if d.Late != nil {
		final = d.Late
	}
	r := row{ID: d.ID, Method: d.Method, URL: d.URL, Time: d.Time, Client: d.Client, Agent: d.Agent, Why: inWords(why.ReasonText(&d.Verdict)+why.ResultText(d), d)}
	if wait := time.Duration(d.Waited * float64(time.Second)); wait >= 10*time.Millisecond {
		r.Waited = wait.Round(10 * time.Millisecond).String()
	}
	if o := d.Outcome; o != nil {
		r.Status, failed = o.Status, !o.FromSite && reason.FailedStatus(o.Status)
	}
	if r.Class = classOf(final, failed); final.Verdict == rules.WouldRefuse.String() {
		r.Verdict = "only observed"
	}
	return r
}

// inWords returns a text without the codes of the reasons of a decision, which are words for
// programs; the search has a field for them.
func inWords(text string, d *replay.Decision) string {
	text = strings.Replace(text, " ["+d.Reason+"]", "", 1)
	if d.Late != nil {
		text = strings.Replace(text, " ["+d.Late.Reason+"]", "", 1)
	}
	return text
}

// search is the form of the page, as it was sent.
type search struct {
	Text, Class, Reason, Client, Host, Within string
	From, To                                  string // with Within "between"
	Before                                    int64
}

// within are the windows of time that can be chosen.
var within = []struct {
	Value, Name string
	length      time.Duration // 0: no bound
}{
	{"1h", "last hour", time.Hour}, {"24h", "last 24 hours", oneDay}, {"7d", "last 7 days", 7 * oneDay}, {"30d", "last 30 days", 30 * oneDay}, {"all", "the whole record", 0},
}

func searchOf(r *http.Request) search {
	q := r.URL.Query()
	s := search{
		Text: strings.TrimSpace(q.Get("q")), Class: q.Get("class"), Reason: q.Get("reason"), Client: strings.TrimSpace(q.Get("client")),
		Host: strings.ToLower(strings.TrimSpace(q.Get("host"))), Within: q.Get("within"), From: q.Get("from"), To: q.Get("to"),
	}
	s.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64) // 0: from the last one
	if s.Within == "" && s.From == "" && s.To == "" {
		s.Within = "24h"
	}
	return s
}

// Plain reports whether the search selects all of the last 24 hours.
func (s search) Plain() bool { return s == search{Within: "24h"} }

// Link returns the address of the page with this search.
func (s search) Link() string {
	q := url.Values{}
	for name, value := range map[string]string{"q": s.Text, "class": s.Class, "reason": s.Reason, "client": s.Client, "host": s.Host, "within": s.Within, "from": s.From, "to": s.To} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if s.Before > 0 {
		q.Set("before", strconv.FormatInt(s.Before, 10))
	}
	return "/decisions?" + q.Encode()
}

// And returns the search with another class.
func (s search) And(class string) search {
	s.Class, s.Before = class, 0
	return s
}

// store returns the search of the record, at a time.
func (s *search) store(now time.Time) (q replay.Search, err error) {
	q.Client, q.Host, q.Text, q.Reason, q.Before, q.Limit = s.Client, s.Host, s.Text, s.Reason, s.Before, perPage
	q.Most = wideMost
	for _, w := range within {
		if w.Value == s.Within && w.length > 0 {
			q.From = now.Add(-w.length)
			if w.length <= oneDay && s.Before == 0 {
				q.Most = dayMost
			}
		}
	}
	for _, c := range reason.Classes() {
		if c.Key() == s.Class {
			q.Class, q.ByClass = c, true
		}
	}
	if s.Class != "" && !q.ByClass {
		return q, &shownError{http.StatusBadRequest, "There is no such class of decisions.\nChoose one from the list."}
	}
	for text, at := range map[string]*time.Time{s.From: &q.From, s.To: &q.To} {
		if text == "" {
			continue
		}
		if *at, err = parseTime(text); err != nil {
			return q, err
		}
	}
	if o, target, err := rules.ParseRecorded(s.Text); err == nil { // it is a whole URL
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
	if id, ok := decisionID(s.Text); ok {
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
		next := s
		next.Before = found.Next
		p.Next = next.Link()
	} else if s.Within != "all" && s.Within != "" {
		wider := s
		wider.Within, wider.Before = "all", 0
		p.Wider = wider.Link()
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
