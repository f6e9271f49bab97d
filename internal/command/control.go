package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"heed/cache"
	"heed/internal/audit"
	"heed/internal/fleet"
	"heed/internal/pace"
	"heed/proxy"
)

// The control socket speaks HTTP:
//
//	GET    /status     the Status
//	POST   /runs       join: a stream of lines that lives as long as the run
//	DELETE /runs/{id}  end a run; the last line of its stream is its summary
//	POST   /retire     end a heed that `heed run` started and nobody uses
//	POST   /reload     read the settings anew
//	POST   /check      judge a URL as a request for it would be judged
//	POST   /stored     what is stored of a site, as it lies there
//
// Only processes of the same user get through: the socket has mode 0600, and
// where the system tells who is calling, it is checked as well.

// join is the body of POST /runs: what a run asks for.
type join struct {
	Version   string `json:"version"`              // of the caller; must be that of the heed it joins
	Config    string `json:"config"`               // Config.JoinHash of the caller
	Asked     bool   `json:"asked"`                // the caller named a file: another configuration will not do
	Way       way    `json:"way"`                  // to the sites
	Agent     string `json:"agent,omitempty"`      // declared product token; empty: each request by its own User-Agent
	UserAgent string `json:"user_agent,omitempty"` // sent in place of the client's; empty: the client's
	Log       bool   `json:"log,omitempty"`        // decision lines are wanted on the stream

	Audit *runAudit `json:"audit,omitempty"` // the record of the run alone; nil: none is wanted

	Observe  bool     `json:"observe,omitempty"`  // nothing is to be refused to the run
	Services []string `json:"services,omitempty"` // host patterns of what it calls and does not crawl
}

// streamLine is one line of the answer to POST /runs. Exactly one of the first
// four members is set.
type streamLine struct {
	Joined  *joined         `json:"joined,omitempty"`  // the first line
	Log     json.RawMessage `json:"log,omitempty"`     // a decision
	Notice  string          `json:"notice,omitempty"`  // a sentence for whoever looks on
	Summary *audit.Summary  `json:"summary,omitempty"` // the last line

	// Dropped is how many log lines were not sent, since the run did not read
	// them in time; with the summary only.
	Dropped uint64 `json:"dropped,omitempty"`
}

// joined tells a run where its proxy is.
type joined struct {
	ID     string      `json:"id"`
	Listen string      `json:"listen"` // host:port of the run's own listener
	CA     HTTPSConfig `json:"ca"`     // where it is, for openCA
	CADays int         `json:"ca_days"`
	Own    []string    `json:"own"` // all addresses this heed listens on

	Unjudged []string `json:"unjudged,omitempty"` // what passes without being judged by its path, a sentence each

	Daemon heedInfo `json:"heed"`
}

// heedInfo says which heed it is.
type heedInfo struct {
	Version    string `json:"version"`
	PID        int    `json:"pid"`
	Background bool   `json:"background"`            // started by `heed run`
	ConfigFile string `json:"config_file,omitempty"` // empty: the built-in settings
	ConfigHash string `json:"config_hash"`
}

// refusedJoin is the body of an answer other than 200.
type refusedJoin struct {
	Message string `json:"error"`
	Again   bool   `json:"again,omitempty"`  // that heed is ending: start or join the next
	Retire  bool   `json:"retire,omitempty"` // nobody uses that heed: it may be asked to end
}

// Error returns what to tell the user.
func (r *refusedJoin) Error() string { return r.Message }

// Status is what a running heed says of itself.
type Status struct {
	heedInfo
	Since  time.Time `json:"since"`
	Ending bool      `json:"ending"`              // it drains and lets nobody join
	Log    string    `json:"log_error,omitempty"` // why decisions cannot be logged; empty when they can

	Record     string   `json:"record_error,omitempty"` // why decisions cannot be recorded; empty when they can
	Unrecorded int64    `json:"unrecorded,omitempty"`   // decisions that took effect all the same, since the start
	Listeners  []string `json:"listeners"`              // the shared one; none for a background heed
	Runs       []string `json:"runs"`                   // listeners of the runs that joined
	Mode       string   `json:"mode"`
	Profile    string   `json:"profile"`
	Unjudged   []string `json:"unjudged,omitempty"` // what passes without being judged by its path, a sentence each
	CA         CAStatus `json:"ca"`

	Breaks     []grantedBreak     `json:"breaks"`     // what is only observed for a while
	Exceptions []grantedException `json:"exceptions"` // that were granted while heed runs

	Fleet *fleet.Health     `json:"fleet,omitempty"`         // nil: there are no other heeds
	Kept  *cache.FileHealth `json:"policies_file,omitempty"` // nil: policies end with the process

	Load     proxy.LoadStatus `json:"load"`
	Turns    pace.Counts      `json:"turns"` // at sites that want delays between requests
	Hour     audit.Counts     `json:"last_hour"`
	Troubles []audit.Trouble  `json:"policies_in_trouble"`
}

// CAStatus says which authority signs and until when.
type CAStatus struct {
	Path     string    `json:"path"`
	NotAfter time.Time `json:"not_after"`
	DaysLeft int       `json:"days_left"`
}

// controlServer answers on the control socket for d.
type controlServer struct {
	http.Server
	listener net.Listener
	path     string
}

// listenControl opens the control socket of the state directory. The caller
// holds the lock of that directory, so that a socket which is there already is
// a dead one's.
func listenControl(state string, d *daemon) (*controlServer, error) {
	path, err := controlPath(state)
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
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", d.getStatus)
	mux.HandleFunc("POST /runs", d.postRun)
	mux.HandleFunc("DELETE /runs/{id}", d.deleteRun)
	mux.HandleFunc("POST /retire", d.postRetire)
	mux.HandleFunc("POST /reload", d.postReload)
	mux.HandleFunc("POST /check", d.postCheck)
	mux.HandleFunc("POST /stored", d.postStored)
	d.cacheRoutes(mux)
	d.grantRoutes(mux)
	d.paceRoutes(mux)
	s := &controlServer{listener: sameUser{l}, path: path}
	s.Handler = mux
	s.ReadHeaderTimeout = 10 * time.Second
	return s, nil
}

// serve answers until stop.
func (s *controlServer) serve() error {
	if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// stop lets running answers end within limit, the streams of runs among them.
// It removes the socket.
func (s *controlServer) stop(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		s.Close()
	}
}

// sameUser accepts connections of this user's processes and of root's only.
type sameUser struct{ net.Listener }

// Accept waits for a connection of the same user and closes all others.
func (l sameUser) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || peerAllowed(c) {
			return c, err
		}
		c.Close()
	}
}

func (d *daemon) getStatus(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, d.status())
}

func (d *daemon) deleteRun(w http.ResponseWriter, r *http.Request) {
	if !d.endRun(r.PathValue("id")) {
		answer(w, http.StatusNotFound, &refusedJoin{Message: "there is no such run"})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (d *daemon) postRetire(w http.ResponseWriter, _ *http.Request) {
	if !d.background {
		answer(w, http.StatusConflict, &refusedJoin{Message: "this heed was started by hand: stop it where it was started"})
		return
	}
	if !d.retire() {
		answer(w, http.StatusConflict, &refusedJoin{Message: "runs are using this heed"})
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller left: nobody to tell
}
