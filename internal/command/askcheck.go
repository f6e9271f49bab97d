package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"time"

	"heed/rules"
)

// checkLine is the body of POST /check: one question to the running heed.
type checkLine struct {
	Agent string `json:"agent"`
	URL   string `json:"url"`
}

// maxCheckLine bounds the body of POST /check, in bytes.
const maxCheckLine = 1 << 20

// postCheck judges a URL as a request of its agent would be judged now, with
// the policies this heed has. It sends nothing but the fetch of a robots.txt.
func (d *daemon) postCheck(w http.ResponseWriter, r *http.Request) {
	var q checkLine
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCheckLine)).Decode(&q); err != nil {
		answer(w, http.StatusBadRequest, &refusedJoin{Message: "this is no question"})
		return
	}
	out, err := d.egresses.take(way{})
	if err != nil {
		answer(w, http.StatusServiceUnavailable, &refusedJoin{Message: err.Error()})
		return
	}
	defer d.egresses.give(out)
	j := judge{now: d.now}
	got, err := j.ask(r.Context(), q.Agent, q.URL, func(ctx context.Context, o rules.Origin, userAgent string) (*rules.Policy, string) {
		return out.policies.Policy(ctx, o, userAgent), o.RobotsURL()
	})
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, &refusedJoin{Message: err.Error()})
		return
	}
	answer(w, http.StatusOK, got)
}

// check asks the heed at the other end.
func (c *controlClient) check(ctx context.Context, agent, address string) (*judgement, error) {
	resp, err := c.do(ctx, http.MethodPost, "/check", &checkLine{agent, address})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got := &judgement{}
	if err := json.NewDecoder(resp.Body).Decode(got); err != nil {
		return nil, fmt.Errorf("the running heed gives an answer that cannot be read: %w", err)
	}
	got.By = "heed"
	return got, nil
}

// heedHere returns a client for the heed that serves this user's state
// directory; nil when there is none, or it belongs to somebody else.
func heedHere(ctx context.Context) (*controlClient, error) {
	if foreign, err := foreignState(); foreign != "" || err != nil {
		return nil, nil // no place for a state: no heed
	}
	stateDir, err := statePath(os.Getenv, os.UserHomeDir, runtime.GOOS)
	if err != nil {
		return nil, nil
	}
	status, err := readStatus(ctx, stateDir)
	if errors.Is(err, errNotRunning) || err == nil && len(status.Listeners) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newControlClient(stateDir), nil
}

// asker answers one question of check.
type asker func(ctx context.Context, agent, address string) (*judgement, error)

// asker returns who answers: the running heed, so that what it has and how it
// is set decide, unless the flags say otherwise; else this process.
func (c *CheckCmd) asker(a *App) (asker, error) {
	if c.Robots == "" && c.Config == "" && !c.Local && !c.Fresh {
		client, err := heedHere(context.Background())
		if err != nil {
			return nil, err
		}
		if client != nil {
			return client.check, nil
		}
	}
	policy, err := c.policies(a)
	if err != nil {
		return nil, err
	}
	j := &judge{now: a.Now}
	return func(ctx context.Context, agent, address string) (*judgement, error) {
		return j.ask(ctx, agent, address, policy)
	}, nil
}

// age is how old the rules are, for people.
func (a *judgement) age() time.Duration {
	return time.Duration(a.Age * float64(time.Second)).Round(time.Second)
}
