package usage

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"heed/internal/judge/signal"
	"heed/internal/judge/signal/page"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// visit is one request for a page, and the answer to it.
type visit struct {
	agents    string // separated by spaces
	reference string
	later     time.Duration
	fields    string // of the request and of the answer: "ETag: x"
	status    int
	head      string
}

// purposes are refused by noindex, and by a licence that asks for something.
var purposes = []signal.Purpose{signal.PurposeSearch}

// answer returns the verdict of j about the answer to a visit.
func (v visit) answer(t *testing.T, j *Judge) *signal.Verdict {
	t.Helper()
	o := rules.Origin{Scheme: "http", Host: "site.example", Port: 80}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).Add(v.later)
	q := &Request{
		Settings: &Settings{}, URL: "http://site.example/page", Origin: o, Target: rules.NewTarget("/page"), Purposes: purposes, Reference: v.reference,
		Policy: rules.New(rules.Source{Origin: o}, []byte("User-agent: *\nAllow: /\n")), Now: now,
	}
	for agent := range strings.FieldsSeq(v.agents) {
		q.Agents = append(q.Agents, rules.Identify(agent))
	}
	r := httptest.NewRequest("GET", q.URL, nil)
	resp := &http.Response{StatusCode: v.status, Header: http.Header{"Content-Type": {"text/html"}}}
	for line := range strings.SplitSeq(v.fields, "; ") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			r.Header.Set(name, value)
			resp.Header.Set(name, value)
		}
	}
	return j.Answer(t.Context(), q, r, resp, &Body{Site: io.NopCloser(strings.NewReader(v.head))})
}

// An answer with status 304 confirms a page. What the page states is judged again: for the
// agents, by the contracts and at the time of the request that it answers.
func TestJudge_AConfirmedPageIsJudgedForItsRequest(t *testing.T) {
	t.Parallel()
	const (
		dated    = `<head><meta name="robots" content="unavailable_after: 2026-11-23 13:00"></head>`
		named    = `<head><meta name="otherbot" content="noindex"></head>`
		licensed = `<head><script type="application/rsl+xml"><rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license><permits type="usage">search</permits><payment type="crawl"/></license></content></rsl></script></head>`
	)
	for name, c := range map[string]struct {
		first, second visit
		page          string // what is known of the second
		refused       bool
	}{
		"the same":                  {visit{head: `<head><meta name=robots content=noindex></head>`}, visit{}, "whole", true},
		"nothing is stated":         {visit{head: "<head></head>"}, visit{}, "whole", false},
		"its date has passed since": {visit{head: dated}, visit{later: 2 * time.Hour}, "whole", true},
		"before its date":           {visit{head: dated}, visit{later: time.Minute}, "whole", false},
		"another agent":             {visit{head: named}, visit{agents: "OtherBot/1"}, string(page.Unmodified), false},
		"an agent more":             {visit{head: named}, visit{agents: "ExampleBot/1 OtherBot/1"}, string(page.Unmodified), false},
		"the other agent again":     {visit{agents: "OtherBot/1", head: named}, visit{agents: "OtherBot/1"}, "whole", true},
		"a contract":                {visit{head: licensed}, visit{reference: "42"}, "whole", false},
		"without a contract":        {visit{reference: "42", head: licensed}, visit{}, "whole", true},
		"a field of the first":      {visit{fields: "ETag: 1; X-Robots-Tag: noindex", head: "<head></head>"}, visit{}, "whole", true},
		"a field of the second":     {visit{head: "<head></head>"}, visit{fields: "ETag: 1; X-Robots-Tag: noindex"}, "whole", true},
		"another version":           {visit{head: "<head></head>"}, visit{fields: "ETag: 2"}, string(page.Unmodified), false},
		"without a version":         {visit{head: "<head></head>"}, visit{fields: "X: y"}, string(page.Unmodified), false},
		"a head that is not known":  {visit{head: "no markup"}, visit{}, string(page.Unmodified), false},
		"a long page":               {visit{head: "<head><meta name=robots content='" + strings.Repeat("x", maxHeld) + "'></head>"}, visit{}, string(page.Unmodified), false},
	} {
		var j Judge
		for i, v := range []visit{c.first, c.second} {
			v.status = []int{http.StatusOK, http.StatusNotModified}[i]
			if v.agents == "" {
				v.agents = "ExampleBot/1"
			}
			if v.fields == "" {
				v.fields = "ETag: 1"
			}
			got := v.answer(t, &j)
			if i == 0 {
				continue
			}
			if _, refused := got.Refuses(purposes...); refused != c.refused || got.Page != c.page {
				t.Errorf("%s: refused %v, page %q; want %v, %q: %+v", name, refused, got.Page, c.refused, c.page, got.Statements)
			}
		}
	}
}

// leaving is documents of a site whose client leaves while one of them is fetched: the nth.
type leaving struct {
	left    chan struct{}
	nth     int
	fetched []string
}

// fetch notes that a document is fetched.
func (l *leaving) fetch(name string) {
	if l.fetched = append(l.fetched, name); len(l.fetched) == l.nth {
		close(l.left)
	}
}

func (l *leaving) TDMRep(context.Context, rules.Origin, Permit) *signal.TDMRep {
	l.fetch("tdmrep")
	return signal.ReadTDMRep("u", []byte(`[{"location": "/", "tdm-reservation": 0}]`))
}

func (l *leaving) Licence(_ context.Context, _, address string, _ Permit) signal.Licence {
	l.fetch(address)
	return signal.Licence{}
}

func (l *leaving) Robots(context.Context, string, rules.Origin, rules.Profile) *rules.Policy {
	return nil
}

// The documents of a client that has left are neither fetched nor judged.
func TestJudge_AClientThatHasLeftEndsTheJudging(t *testing.T) {
	t.Parallel()
	o := rules.Origin{Scheme: "http", Host: "site.example", Port: 80}
	robots := "License: http://site.example/1\nLicense: http://site.example/2\n"
	all := []string{"tdmrep", "http://site.example/1", "http://site.example/2"}
	for nth := range 5 { // the last one does not leave
		l := &leaving{left: make(chan struct{}), nth: nth}
		switch nth {
		case 0: // before the first
			close(l.left)
		case 4:
			l.nth = -1
		}
		target := rules.NewTarget("/page")
		v, whole := new(Judge).Request(t.Context(), &Request{
			Settings: &Settings{Documents: l}, URL: "http://site.example/page", Origin: o, Target: target,
			Agents:   []*rules.Agent{rules.Identify("ExampleBot/1"), rules.Identify("OtherBot/1")},
			Purposes: []signal.Purpose{signal.PurposeTraining}, Policy: rules.New(rules.Source{Origin: o, State: rules.Available}, []byte(robots)), Left: l.left,
		})
		if nth == 4 {
			l.fetched = l.fetched[:len(all)] // for the first agent; for the other one again
		}
		if want := all[:min(nth, len(all))]; v == nil || !slices.Equal(l.fetched, want) || whole != (nth == 4) {
			t.Errorf("left at document %d: fetched %q, whole %v", nth, l.fetched, whole)
		}
	}
}

// A field and a URL are parts of the texts of a whole answer and a whole request.
func TestJudge_ARememberedPageHoldsNoHead(t *testing.T) {
	head := strings.Repeat("x", 1<<10) + "http://site.example/page" + `"v1"` + "noindex"
	held := weak.Make(unsafe.StringData(head))
	address, etag, field := head[1<<10:len(head)-11], head[len(head)-11:len(head)-7], head[len(head)-7:]
	j := &Judge{}
	j.remember(&Request{Settings: &Settings{}, URL: address}, version{status: 200, header: http.Header{"Etag": {etag}, "X-Robots-Tag": {field}}, head: &page.Head{}})
	_, ok := j.confirmed(&Request{Settings: &Settings{}, URL: strings.Clone(address)}, &http.Request{}, http.Header{"Etag": {`"v1"`}})
	must.Need(t, ok, "the page is not remembered")
	head, address, etag, field = "", "", "", ""
	runtime.GC()
	must.True(t, held.Value() == nil, "the text of a head is still held")
	runtime.KeepAlive(j)
}
