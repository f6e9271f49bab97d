package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// grantAsk is the body of POST /breaks and POST /exceptions.
type grantAsk struct {
	For     time.Duration `json:"for_ns"`
	Reason  string        `json:"reason"`
	Client  string        `json:"client,omitempty"`
	Host    string        `json:"host,omitempty"`    // of a break: a host pattern
	Pattern string        `json:"pattern,omitempty"` // of an exception: host and path
	Refuse  bool          `json:"refuse,omitempty"`  // of an exception: it refuses; For 0: until it is ended
}

// On the control socket, `heed mode`, `heed allow` and `heed refuse` ask:
//
//	GET    /granted          what is in force
//	POST   /breaks           begin to observe only
//	DELETE /breaks           end all breaks
//	POST   /exceptions       grant an exception
//	DELETE /exceptions/{id}  end it
func (d *daemon) grantRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /granted", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, d.grants.list()) })
	mux.HandleFunc("POST /breaks", func(w http.ResponseWriter, r *http.Request) {
		granting(w, r, func(q *grantAsk) (any, error) { return d.postBreak(q) })
	})
	mux.HandleFunc("DELETE /breaks", func(w http.ResponseWriter, _ *http.Request) {
		n, err := d.grants.enforce()
		answerGrant(w, n, err)
	})
	mux.HandleFunc("POST /exceptions", func(w http.ResponseWriter, r *http.Request) {
		granting(w, r, func(q *grantAsk) (any, error) { return d.postException(q) })
	})
	mux.HandleFunc("DELETE /exceptions/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		known, err := d.grants.end(id)
		if err == nil && !known {
			err = fmt.Errorf("there is no exception with the id %s\nSee `heed allow`", quoted(id))
		}
		answerGrant(w, id, err)
	})
}

// granting reads the question and answers with what grant makes of it.
func granting(w http.ResponseWriter, r *http.Request, grant func(*grantAsk) (any, error)) {
	var q grantAsk
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCheckLine)).Decode(&q); err != nil {
		answer(w, http.StatusBadRequest, &refusedJoin{Message: "this is no question"})
		return
	}
	made, err := grant(&q)
	answerGrant(w, made, err)
}

func answerGrant(w http.ResponseWriter, body any, err error) {
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, &refusedJoin{Message: err.Error()})
		return
	}
	answer(w, http.StatusOK, body)
}

// check finds what holds for both kinds of grants.
func (q *grantAsk) check(d *daemon, most time.Duration) error {
	if err := checkReason(q.Reason); err != nil {
		return err
	}
	if q.For <= 0 && !q.Refuse || q.For > most {
		return fmt.Errorf("--for: it can be at most %d days", most/(24*time.Hour))
	}
	if q.Client != "" && q.Client != runName && d.book.now().ClientNamed(q.Client) == nil {
		return fmt.Errorf("--client: the running heed has no [[client]] called %s\nSee `heed config show`", quoted(q.Client))
	}
	return nil
}

func (d *daemon) postBreak(q *grantAsk) (*grantedBreak, error) {
	if err := q.check(d, maxBreak); err != nil {
		return nil, err
	}
	now := d.now()
	b := terms.Break{Mode: terms.Observe, Client: q.Client, Since: now, Until: now.Add(q.For), Reason: q.Reason}
	if q.Host != "" {
		var err error
		if b.Host, err = terms.ParseHostPattern(q.Host); err != nil {
			return nil, fmt.Errorf("--host: %w", err)
		}
	}
	return d.grants.observe(b)
}

func (d *daemon) postException(q *grantAsk) (*grantedException, error) {
	if q.Client == "" && !q.Refuse {
		return nil, fmt.Errorf("--client is needed: the name of the [[client]] that the exception is for")
	}
	if err := q.check(d, maxGrant); err != nil {
		return nil, err
	}
	host, path, err := parsePattern(q.Pattern)
	if err != nil {
		return nil, err
	}
	now := d.now()
	if o, err := rules.ParseOrigin("https", host.String()); err == nil && !q.Refuse && d.book.now().For(nil, o, now).Site.NeverAllow {
		return nil, fmt.Errorf("the settings let no exception allow anything at %s (never_allow)\nAsk whoever wrote that", host)
	}
	e := grantedException{Host: host, Path: path, Refuse: q.Refuse, Client: q.Client, Reason: q.Reason, Since: now}
	if q.For > 0 {
		e.Expires = now.Add(q.For)
	}
	return d.grants.allow(e)
}

// granted returns what is in force at the heed at the other end.
func (c *controlClient) granted(ctx context.Context) (g granted, err error) {
	return g, c.grant(ctx, http.MethodGet, "/granted", nil, &g)
}

// grant asks the heed at the other end and reads its answer into body.
func (c *controlClient) grant(ctx context.Context, method, path string, q *grantAsk, body any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	resp, err := c.do(ctx, method, path, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(body); err != nil {
		return fmt.Errorf("the running heed gives an answer that cannot be read: %w", err)
	}
	return nil
}
