package dashboard

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"heed/internal/check/why"
	"heed/internal/control"
)

// Bounds of the page that tries URLs out.
const (
	tryEvery  = time.Second      // at most one for all viewers
	tryTime   = 30 * time.Second // for one
	tryLength = 8 << 10          // octets of a field
)

type tryPage struct {
	URL, Agent, Client string
	Clients            []string // names of [[client]]
	Result             *control.Judgement
	Steps              []why.Step
	Error              []string
}

func (d *Dashboard) try(r *http.Request) (*view, error) {
	q := r.URL.Query()
	return &view{Page: "try", Title: "Try it", Data: d.tryForm(q.Get("url"), q.Get("agent"), "")}, nil
}

func (d *Dashboard) tryForm(url, agent, client string) *tryPage {
	p := &tryPage{URL: strings.TrimSpace(url), Agent: strings.TrimSpace(agent), Client: client}
	for _, c := range d.Heed.Config().Clients {
		p.Clients = append(p.Clients, c.Name)
	}
	return p
}

// tryNow judges the URL of the form.
func (d *Dashboard) tryNow(r *http.Request) (*view, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, 4*tryLength)
	if err := r.ParseForm(); err != nil {
		return nil, &shownError{http.StatusBadRequest, "The form cannot be read.\n" + err.Error()}
	}
	p := d.tryForm(r.PostForm.Get("url"), r.PostForm.Get("agent"), r.PostForm.Get("client"))
	v := &view{Page: "try", Title: "Try it", Data: p}
	wrong := func(status int, text string) (*view, error) {
		v.Status, p.Error = status, strings.Split(text, "\n")
		return v, nil
	}
	switch {
	case p.URL == "":
		return wrong(http.StatusBadRequest, "The URL is missing.\nWrite one with http:// or https://.")
	case len(p.URL) > tryLength || len(p.Agent) > tryLength:
		return wrong(http.StatusBadRequest, "That is too long.\nA URL and a User-Agent can have 8,192 octets.")
	case p.Agent == "" && p.Client == "":
		return wrong(http.StatusBadRequest, "The User-Agent is missing: the answer depends on the client's name.\nWrite what the client sends, or only its product token.")
	}
	if wait := d.tries.take(d.Now()); wait > 0 {
		v.Retry = wait
		return wrong(http.StatusTooManyRequests, "One URL a second can be tried.\nTry it again in a moment.")
	}
	ctx, cancel := context.WithTimeout(r.Context(), tryTime)
	defer cancel()
	all, err := d.Heed.Check(ctx, &control.CheckRequest{Agent: p.Agent, URLs: [][]byte{[]byte(p.URL)}, Client: p.Client, Explain: true, Delay: true})
	if err != nil {
		return wrong(http.StatusUnprocessableEntity, err.Error())
	}
	p.Result, p.Steps = all[0], why.Judgement(all[0], nil)
	return v, nil
}

// limiter allows one event in each tryEvery. The zero value is ready.
type limiter struct {
	mu   sync.Mutex
	next time.Time
}

// take returns 0 when an event may happen now, else how long it has to wait.
func (l *limiter) take(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.next.Sub(now); wait > 0 && wait <= tryEvery {
		return wait
	}
	l.next = now.Add(tryEvery)
	return 0
}
