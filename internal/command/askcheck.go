package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"

	"heed/internal/terms"
	"heed/rules"
)

// checkLine is the body of POST /check: one question to the running heed.
type checkLine struct {
	Agent   string `json:"agent"`
	URL     string `json:"url"`
	Profile string `json:"profile,omitempty"` // to judge under; empty: that of its settings
	Explain bool   `json:"explain,omitempty"` // the road to the verdict is wanted
	Client  string `json:"client,omitempty"`  // the [[client]] that asks; empty: whom the agent alone tells
}

// maxCheckLine bounds the body of POST /check, in bytes.
const maxCheckLine = 1 << 20

// postCheck judges a URL as a request of its agent would be judged now, with
// the policies this heed has and under the terms it keeps to. It sends nothing but the fetch of a robots.txt.
func (d *daemon) postCheck(w http.ResponseWriter, r *http.Request) {
	var q checkLine
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCheckLine)).Decode(&q); err != nil {
		answer(w, http.StatusBadRequest, &refusedJoin{Message: "this is no question"})
		return
	}
	book := d.book.now()
	if q.Client != "" && book.ClientNamed(q.Client) == nil {
		answer(w, http.StatusUnprocessableEntity, &refusedJoin{Message: fmt.Sprintf("the running heed has no [[client]] called %s\nSee `heed config show`", quoted(q.Client))})
		return
	}
	ways := d.current().ways
	out, err := ways.take(way{Profile: q.Profile})
	if err != nil {
		answer(w, http.StatusServiceUnavailable, &refusedJoin{Message: err.Error()})
		return
	}
	defer ways.give(out)
	j := judge{now: d.now, explain: q.Explain, book: book, client: q.Client}
	got, err := j.ask(r.Context(), q.Agent, q.URL, func(ctx context.Context, o rules.Origin, userAgent string) (*rules.Policy, string, string) {
		return out.policies.Policy(ctx, o, userAgent), o.RobotsURL(), byHeed
	})
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, &refusedJoin{Message: err.Error()})
		return
	}
	answer(w, http.StatusOK, got)
}

// check asks the heed at the other end.
func (c *controlClient) check(ctx context.Context, q *checkLine) (*judgement, error) {
	resp, err := c.do(ctx, http.MethodPost, "/check", q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got := &judgement{}
	if err := json.NewDecoder(resp.Body).Decode(got); err != nil {
		return nil, fmt.Errorf("the running heed gives an answer that cannot be read: %w", err)
	}
	return got, nil
}

// storedKey is the body of POST /stored: one key of one way to the sites.
type storedKey struct {
	Way string `json:"way"`
	Key []byte `json:"key"` // any octets
}

// storedCopy is the answer.
type storedCopy struct {
	Found    bool   `json:"found"`
	Record   []byte `json:"record,omitempty"`
	Snapshot []byte `json:"snapshot,omitempty"`
}

// postStored hands out what lies under a key.
func (d *daemon) postStored(w http.ResponseWriter, r *http.Request) {
	var q storedKey
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCheckLine)).Decode(&q); err != nil {
		answer(w, http.StatusBadRequest, &refusedJoin{Message: "this is no question"})
		return
	}
	var c storedCopy
	if d.file != nil {
		c.Record, c.Snapshot, c.Found = d.file.Way(q.Way).Load(string(q.Key))
	}
	answer(w, http.StatusOK, &c)
}

// stored asks the heed at the other end what it stored.
func (c *controlClient) stored(ctx context.Context, q *storedKey) (*storedCopy, error) {
	resp, err := c.do(ctx, http.MethodPost, "/stored", q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got := &storedCopy{}
	return got, json.NewDecoder(resp.Body).Decode(got)
}

// ownState returns this user's state directory, without making it; ok is false
// when there is none, or it belongs to somebody else.
func ownState() (path string, ok bool) {
	if foreign, err := foreignState(); foreign != "" || err != nil {
		return "", false
	}
	path, err := statePath(os.Getenv, os.UserHomeDir, runtime.GOOS)
	return path, err == nil
}

// heedHere returns a client for the heed that serves this user's state
// directory; nil when there is none, or it belongs to somebody else.
func heedHere(ctx context.Context) (*controlClient, error) {
	stateDir, ok := ownState()
	if !ok {
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
			return func(ctx context.Context, agent, address string) (*judgement, error) {
				return client.check(ctx, &checkLine{agent, address, c.Profile, c.Explain, c.Client})
			}, nil
		}
	}
	policy, err := c.policies(a)
	if err != nil {
		return nil, err
	}
	j := &judge{now: a.Now, explain: c.Explain, client: c.Client}
	if c.Robots == "" {
		if j.book, err = c.book(a); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, agent, address string) (*judgement, error) {
		return j.ask(ctx, agent, address, policy)
	}, nil
}

// book returns what the settings here say of clients and hosts.
func (c *CheckCmd) book(a *App) (*terms.Book, error) {
	cfg, err := Load(c.Config, a.Defaults)
	if err != nil {
		return nil, err
	}
	cfg.Access = AccessConfig{} // who may use a proxy is nothing to a question
	b, err := cfg.book(a.Now)
	if err == nil && c.Client != "" && b.ClientNamed(c.Client) == nil {
		err = fmt.Errorf("--client: there is no [[client]] called %s in %s", quoted(c.Client), cfg.source())
	}
	return b, err
}
