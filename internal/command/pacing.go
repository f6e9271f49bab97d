package command

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"time"

	"heed/internal/pace"
	"heed/proxy"
	"heed/rules"
)

// pacer has the proxies of one reading of the settings take turns.
type pacer struct {
	*pace.Turns
	settings pace.Settings
	observed bool // who is observed only waits, too
	noted    bool // what busy sites ask for is recorded, and not kept
}

func (c *Config) pacer(turns *pace.Turns) *pacer {
	return &pacer{turns, c.Pacing.settings(), c.Pacing.Observed == "wait", c.Pacing.RetryAfter == "observe"}
}

// Paced implements proxy.Pacer.
func (p *pacer) Paced(o rules.Origin, wishes []*rules.Wish) bool {
	return p.Turns.Paced(o, wishes, &p.settings)
}

// Answered implements proxy.Pacer.
func (p *pacer) Answered(o rules.Origin, status int, h http.Header, sent time.Time) string {
	if !p.noted {
		return p.Turns.Answered(o, status, h, sent)
	}
	if asked, ok := pace.RetryAfter(h, time.Now()); ok && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		return fmt.Sprintf("the site asks everybody to wait for %v (Retry-After), which is not kept", asked)
	}
	return ""
}

// Turn implements proxy.Pacer.
func (p *pacer) Turn(ctx context.Context, q *proxy.TurnAsked) proxy.TurnAnswer {
	ask := pace.Ask{
		Settings: p.settings, Origin: q.Origin, Wishes: q.Wishes, Fetched: q.Fetched,
		Agent: q.Agent, Client: q.Client, Name: q.Name, Target: q.Target, NoWait: q.Observe && !p.observed, RobotsTxt: q.RobotsTxt, Rules: q.Rules,
		Waiting: func(place pace.Place) { q.Waiting(turnPlace(&place)) },
	}
	ask.MaxWait = *cmp.Or(q.MaxWait, &p.settings.MaxWait)
	a := p.Take(ctx, &ask)
	answer := proxy.TurnAnswer{
		TurnPlace: turnPlace(&a.Place), Waited: a.Waited, Note: a.Note,
		Refused: a.Refused, Ended: a.Ended, Left: a.Left, Owed: a.Owed, RetryAfter: a.RetryAfter,
	}
	if a.Turn != nil {
		answer.Turn = a.Turn
	}
	return answer
}

func turnPlace(p *pace.Place) proxy.TurnPlace {
	return proxy.TurnPlace{
		Asked: p.Asked, Delay: p.Delay, By: p.By, Wait: p.Wait, Waiting: p.Others + 1, Held: p.Held, Visit: p.Visit, RobotsTxt: p.RobotsTxt,
	}
}

// fetchTells is a way to the sites for heed's own fetches, each of which is a turn
// that waits for nobody.
type fetchTells struct {
	http.RoundTripper
	turns *pace.Turns
	noted bool // what busy sites ask for is not kept
}

// RoundTrip implements http.RoundTripper.
func (f fetchTells) RoundTrip(r *http.Request) (*http.Response, error) {
	o, err := rules.OriginOf(r.URL)
	if err != nil {
		return f.RoundTripper.RoundTrip(r) // which says what is wrong
	}
	trace := &httptrace.ClientTrace{WroteHeaders: func() { f.turns.Fetches(o) }}
	sent := time.Now()
	resp, err := f.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err == nil && !f.noted {
		f.turns.Answered(o, resp.StatusCode, resp.Header, sent)
	}
	return resp, err
}
