package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heed/internal/control"
	"heed/internal/pace"
	"heed/internal/sealed"
)

// controlServer is the server on the control socket.
type controlServer struct {
	http.Server
	listener net.Listener
	path     string
}

// listenControl opens the control socket of the state directory. The caller
// holds the lock of that directory, so that an existing socket is stale.
func listenControl(state string, d *daemon) (*controlServer, error) {
	path, err := control.SocketPath(state)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the control socket cannot be made: %w\nRemove %s", err, path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the control socket cannot be made: %w\nSet HEED_STATE to a directory on a local file system", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("the control socket %s cannot be protected: %w", filepath.Base(path), err)
	}
	s := &controlServer{listener: sameUser{l}, path: path}
	s.Handler = d.withoutSealed(d.routes())
	s.ReadHeaderTimeout = 10 * time.Second
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		pid, _ := peer(c)
		return context.WithValue(ctx, callerKey{}, &caller{conn: c, pid: pid})
	}
	return s, nil
}

// callerKey is the context key of the *caller of a request.
type callerKey struct{}

// caller is the client of a connection on the control socket.
type caller struct {
	conn net.Conn
	pid  int // of the process that connected; 0: not known
}

// callerOf returns the caller of a request.
func callerOf(r *http.Request) *caller {
	c, _ := r.Context().Value(callerKey{}).(*caller)
	if c == nil {
		c = &caller{}
	}
	return c
}

// files returns the files that the caller passed with its request. They belong to the
// function's caller.
func (c *caller) files() []*os.File {
	if conn, ok := c.conn.(*control.ReceivingConn); ok {
		return conn.Files()
	}
	return nil
}

// withoutSealed refuses the requests of processes of sealed runs, which need nothing here:
// a run joins from outside of its namespaces.
func (d *daemon) withoutSealed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sealed.InSeal(callerOf(r).pid, d.runs.networks()) {
			writeJSON(w, http.StatusForbidden, &control.Refusal{Message: "this process is in a sealed run, or in another user namespace than the running heed, which takes no commands from there\nRun the command outside"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// routes returns the handlers of the control socket:
//
//	GET    /status           the control.Status
//	POST   /runs             join: a stream of lines that lasts as long as the run
//	DELETE /runs/{id}        end a run; the last line of its stream is its summary
//	POST   /retire           end a heed that heed run started and no run uses
//	POST   /reload           reload the settings
//	POST   /judge            judge URLs of a site as requests for them would be judged
//	GET    /cache            the entries in memory: a stream of lines
//	GET    /cache/one?of=    entries of a host or origin, with the text
//	GET    /cache/text?of=   the text only
//	DELETE /cache/one?of=    remove them
//	POST   /cache/one?of=    fetch the policy of an origin unless it is fresh
//	GET    /granted          the current mode overrides and exceptions
//	POST   /breaks           begin a mode override (observe mode)
//	DELETE /breaks           end all mode overrides
//	POST   /exceptions       add an exception
//	DELETE /exceptions/{id}  end it
//	GET    /pace             the sites where requests wait or that are paused, with counts
//	DELETE /pace?of=         end the pause of a host
func (d *daemon) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", jsonHandler(func(*http.Request) (any, error) { return d.status(), nil }))
	mux.HandleFunc("POST /runs", d.postRun)
	mux.HandleFunc("DELETE /runs/{id}", d.deleteRun)
	mux.HandleFunc("POST /retire", jsonHandler(d.postRetire))
	mux.HandleFunc("POST /reload", jsonHandler(func(*http.Request) (any, error) { return d.reload() }))
	mux.HandleFunc("POST /judge", bodyHandler(d.check))
	mux.HandleFunc("GET /cache", d.listCache)
	mux.HandleFunc("GET /cache/one", cacheHandler(d, control.CacheAPI.Show))
	mux.HandleFunc("GET /cache/text", cacheHandler(d, control.CacheAPI.Text))
	mux.HandleFunc("DELETE /cache/one", cacheHandler(d, control.CacheAPI.Purge))
	mux.HandleFunc("POST /cache/one", cacheHandler(d, control.CacheAPI.Warm))
	mux.HandleFunc("GET /granted", jsonHandler(func(*http.Request) (any, error) { return d.grants.list(), nil }))
	mux.HandleFunc("POST /breaks", bodyHandler(d.grants.postBreak))
	mux.HandleFunc("DELETE /breaks", jsonHandler(func(*http.Request) (any, error) { return d.grants.enforce() }))
	mux.HandleFunc("POST /exceptions", bodyHandler(d.grants.postException))
	mux.HandleFunc("DELETE /exceptions/{id}", jsonHandler(func(r *http.Request) (any, error) {
		id := r.PathValue("id")
		return id, d.grants.end(id, "See `heed allow` and `heed refuse`")
	}))
	mux.HandleFunc("GET /pace", jsonHandler(func(*http.Request) (any, error) { return d.waits(), nil }))
	mux.HandleFunc("DELETE /pace", jsonHandler(func(r *http.Request) (any, error) { return d.Turns.Release(r.FormValue("of")), nil }))
	return mux
}

// waits returns the sites where requests wait or that are paused, with the requests of
// runs marked.
func (d *daemon) waits() []pace.SiteStatus {
	list, runs := d.Turns.List(), d.runs.addresses()
	for _, s := range list {
		for i := range s.Waiters {
			s.Waiters[i].Run = slices.Contains(runs, s.Waiters[i].Listener)
		}
	}
	return list
}

// maxBody is the greatest size of a request body, in octets, except for POST /runs.
const maxBody = 1 << 20

// jsonHandler returns a handler that responds with the result of do as JSON, or with a
// control.Refusal for an error.
func jsonHandler(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := do(r)
		if err != nil {
			writeJSON(w, http.StatusUnprocessableEntity, &control.Refusal{Message: err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, body)
	}
}

// bodyHandler returns a handler that responds with the result of do for the JSON in the
// body of the request.
func bodyHandler[Q, A any](do func(context.Context, *Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := new(Q)
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(q); err != nil {
			writeJSON(w, http.StatusBadRequest, &control.Refusal{Message: "the request on the control socket cannot be parsed: " + err.Error()})
			return
		}
		jsonHandler(func(r *http.Request) (any, error) { return do(r.Context(), q) })(w, r)
	}
}

// cacheHandler returns a handler that responds with the result of do for the host or
// origin in the query, over all open routes.
func cacheHandler[A any](d *daemon, do func(control.CacheAPI, context.Context, string) (A, error)) http.HandlerFunc {
	return jsonHandler(func(r *http.Request) (body any, err error) {
		err = d.withCache(func(k control.CacheAPI) (err error) {
			body, err = do(k, r.Context(), r.FormValue("of"))
			return err
		})
		return body, err
	})
}

// serve serves until stop.
func (s *controlServer) serve() error {
	if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// stop waits up to timeout for responses in progress, those of runs included, and
// removes the socket.
func (s *controlServer) stop(timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		s.Close()
	}
}

// sameUser accepts connections only from processes of this user and of root.
type sameUser struct{ net.Listener }

// Accept waits for an allowed connection and closes all others.
func (l sameUser) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if _, allowed := peer(c); allowed {
			return control.NewReceivingConn(c), nil
		}
		c.Close()
	}
}

func (d *daemon) postRetire(*http.Request) (any, error) {
	switch {
	case !d.background:
		return nil, errors.New("this heed runs in the foreground: stop it where it was started")
	case !d.retire():
		return nil, errors.New("runs are using this heed")
	}
	return nil, nil
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has disconnected
}
