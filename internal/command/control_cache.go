package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// On the control socket, `heed cache` asks:
//
//	GET    /cache           what memory holds: a stream of lines
//	GET    /cache/one?of=   one host or origin, with the text
//	GET    /cache/text?of=  the text alone
//	DELETE /cache/one?of=   forget it
//	POST   /cache/one?of=   have an origin's policy at hand
func (d *daemon) cacheRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /cache", d.atDesk(listCache))
	mux.HandleFunc("GET /cache/one", d.atDesk(func(k cacheDesk, w http.ResponseWriter, r *http.Request) error {
		lines, err := k.show(r.Context(), r.FormValue("of"))
		return answerUnless(w, err, lines)
	}))
	mux.HandleFunc("GET /cache/text", d.atDesk(func(k cacheDesk, w http.ResponseWriter, r *http.Request) error {
		text, err := k.text(r.Context(), r.FormValue("of"))
		return answerUnless(w, err, text)
	}))
	mux.HandleFunc("DELETE /cache/one", d.atDesk(func(k cacheDesk, w http.ResponseWriter, r *http.Request) error {
		origins, err := k.purge(r.Context(), r.FormValue("of"))
		return answerUnless(w, err, origins)
	}))
	mux.HandleFunc("POST /cache/one", d.atDesk(func(k cacheDesk, w http.ResponseWriter, r *http.Request) error {
		line, err := k.warm(r.Context(), r.FormValue("of"))
		return answerUnless(w, err, line)
	}))
}

// answerUnless answers with body when there is no error.
func answerUnless(w http.ResponseWriter, err error, body any) error {
	if err == nil {
		answer(w, http.StatusOK, body)
	}
	return err
}

// atDesk hands a request to the desk for all ways that are open.
func (d *daemon) atDesk(work func(cacheDesk, http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ways := d.current().ways
		out, err := ways.take(way{})
		if err != nil {
			answer(w, http.StatusServiceUnavailable, &refusedJoin{Message: err.Error()})
			return
		}
		defer ways.give(out)
		k := &waysDesk{ways: []*egress{out}}
		for _, e := range ways.all() {
			if e != out {
				k.ways = append(k.ways, e)
			}
		}
		if err := work(k, w, r); err != nil {
			answer(w, http.StatusUnprocessableEntity, &refusedJoin{Message: err.Error()})
		}
	}
}

// listCache streams the list. An error in its middle can be told by the end of
// the stream alone: the last line is null when it is whole.
func listCache(k cacheDesk, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "application/jsonl")
	lines := json.NewEncoder(w)
	if k.list(r.Context(), func(line *heldLine) error { return lines.Encode(line) }) == nil {
		_ = lines.Encode(nil) // the caller left: nobody to tell
	}
	return nil
}

// controlDesk is the desk of the running heed, from the other end.
type controlDesk struct{ client *controlClient }

var errCutShort = errors.New("the running heed ended in the middle of its answer\nTry again")

func (k controlDesk) list(ctx context.Context, each func(*heldLine) error) error {
	resp, err := k.client.do(ctx, http.MethodGet, "/cache", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for lines := json.NewDecoder(resp.Body); ; {
		var line *heldLine
		switch err := lines.Decode(&line); {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return errCutShort
		case err != nil:
			return fmt.Errorf("the running heed gives a list that cannot be read: %w", err)
		case line == nil:
			return nil
		}
		if err := each(line); err != nil {
			return err
		}
	}
}

func (k controlDesk) show(ctx context.Context, what string) (lines []*heldLine, err error) {
	err = k.ask(ctx, http.MethodGet, "/cache/one", what, &lines)
	return lines, err
}

func (k controlDesk) text(ctx context.Context, what string) (text []byte, err error) {
	err = k.ask(ctx, http.MethodGet, "/cache/text", what, &text)
	return text, err
}

func (k controlDesk) purge(ctx context.Context, what string) (origins []string, err error) {
	err = k.ask(ctx, http.MethodDelete, "/cache/one", what, &origins)
	return origins, err
}

func (k controlDesk) warm(ctx context.Context, origin string) (line *heldLine, err error) {
	err = k.ask(ctx, http.MethodPost, "/cache/one", origin, &line)
	return line, err
}

// ask asks about what and reads the answer into body.
func (k controlDesk) ask(ctx context.Context, method, path, what string, body any) error {
	resp, err := k.client.do(ctx, method, path+"?of="+url.QueryEscape(what), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(body); err != nil {
		return fmt.Errorf("the running heed gives an answer that cannot be read: %w", err)
	}
	return nil
}
