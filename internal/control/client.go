// Package control is the control socket of a running heed as its callers see it: the
// types on the wire, and a client. The socket speaks HTTP; package daemon holds the
// server and lists its requests.
//
// Only processes of the same user reach it: the socket has mode 0600, and where the
// system reports the caller's user, that is checked as well.
package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"heed/internal/base/ownfile"
	"heed/internal/base/state"
	"heed/internal/output/console"
	"heed/rules"
)

// ErrNotRunning is the error of a request to a state directory without a running heed.
var ErrNotRunning = errors.New("heed is not running")

// Client sends requests to the control socket of the heed of a state directory.
type Client struct {
	state string
	http  http.Client
}

// socketsKey is the context key of the files that a request passes.
type socketsKey struct{}

// NewClient returns a client for the heed of the state directory. It
// dials with each request, which fails with ErrNotRunning when none is there.
func NewClient(dir string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		h, err := state.ReadHolder(dir) // since SocketPath depends on the environment
		if err != nil || h.Socket == "" {
			return nil, ErrNotRunning
		}
		conn, err := new(net.Dialer).DialContext(ctx, "unix", h.Socket)
		if files, _ := ctx.Value(socketsKey{}).([]*os.File); err == nil && len(files) > 0 {
			return passFiles(conn, files)
		}
		return conn, err
	}
	return &Client{dir, http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// do sends a request. A response other than 2xx is an error, a *Refusal when its body
// is one. The caller closes the body.
func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://heed"+path, bytes.NewReader(console.MustJSON(body)))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	switch {
	case gone(err):
		return nil, ErrNotRunning
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		h, _ := state.ReadHolder(c.state) // without it, the message has no number
		return nil, fmt.Errorf("the running heed (pid %d) does not respond\nIt may be stopped or hang: end it with `kill -KILL %d`, and start it again", h.PID, h.PID)
	case err != nil:
		return nil, fmt.Errorf("the running heed cannot be reached over its control socket: %w\nEnd it, and start it again", err)
	case resp.StatusCode < 300:
		return resp, nil
	}
	defer resp.Body.Close()
	refused := &Refusal{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(refused); err != nil || refused.Message == "" {
		return nil, fmt.Errorf("the running heed responds with %s on its control socket\nIs it another version? Stop it and try again", resp.Status)
	}
	return nil, refused
}

// gone reports whether err means that no process listens on the socket, or that the
// listener ended before it responded.
func gone(err error) bool {
	return errors.Is(err, ErrNotRunning) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// call sends a request and returns the JSON response as an A.
func call[A any](ctx context.Context, c *Client, method, path string, body any) (answer A, err error) {
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("the response of the running heed cannot be parsed: %w", err)
	}
	return answer, nil
}

// ReadStatus requests the status of the heed of the state directory. The error is
// ErrNotRunning when there is none.
func ReadStatus(ctx context.Context, state string) (*Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return call[*Status](ctx, NewClient(state), http.MethodGet, "/status", nil)
}

// Serving is ReadStatus of a heed that serves other clients than runs; nil when there is none.
func Serving(ctx context.Context, state string) (*Status, error) {
	status, err := ReadStatus(ctx, state)
	if errors.Is(err, ErrNotRunning) || err == nil && len(status.Listeners) == 0 {
		return nil, nil
	}
	return status, err
}

// Retire requests that a background heed without runs end, and reports whether it will
// (or has ended already).
func (c *Client) Retire(ctx context.Context) bool {
	resp, err := c.do(ctx, http.MethodPost, "/retire", nil)
	if err != nil {
		return errors.Is(err, ErrNotRunning)
	}
	resp.Body.Close()
	return true
}

// RunClient is the client side of a run that joined.
type RunClient struct {
	JoinReply
	Client *Client
	Leave  func() // closes the stream: the run's proxy ends immediately
	lines  *json.Decoder
}

// Join joins the heed of the state directory. ctx applies only until the first line of
// the stream has arrived; the run lasts until Leave or End. The error is ErrNotRunning
// when there is no heed, or a *Refusal.
func (c *Client) Join(ctx context.Context, j *JoinRequest) (*RunClient, error) {
	lasting, leave := context.WithCancel(context.WithValue(context.Background(), socketsKey{}, j.Sockets))
	stop := context.AfterFunc(ctx, leave)
	resp, err := c.do(lasting, http.MethodPost, "/runs", j)
	if err != nil {
		leave()
		return nil, err
	}
	m := &RunClient{Client: c, Leave: leave, lines: json.NewDecoder(resp.Body)}
	var first StreamLine
	if err := m.lines.Decode(&first); err != nil || first.Joined == nil || !stop() {
		leave()
		return nil, ErrNotRunning // it ended before it responded
	}
	m.JoinReply = *first.Joined
	return m, nil
}

// Next returns the next line of the stream, or an error when the stream has ended.
func (m *RunClient) Next() (*StreamLine, error) {
	line := &StreamLine{}
	return line, m.lines.Decode(line)
}

// RunEnd is the request to end a run.
type RunEnd struct {
	// Bypassed is what bypassed heed, an estimate, for the record of the run.
	Bypassed []Bypassed `json:"bypassed,omitempty"`
}

// Bypassed is what a program of a run sent without heed.
type Bypassed struct {
	Program string `json:"program"`
	Count   int64  `json:"count"`  // connections; 0: none was seen of a program that ignores proxies
	Detail  string `json:"detail"` // where to, or why it is assumed
}

// End requests the end of the run; the summary is the last line of the stream.
func (m *RunClient) End(ctx context.Context, end *RunEnd) error {
	resp, err := m.Client.do(ctx, http.MethodDelete, "/runs/"+m.ID, end)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Reload makes the running heed reload its settings.
func (c *Client) Reload(ctx context.Context) (*ReloadReply, error) {
	return call[*ReloadReply](ctx, c, http.MethodPost, "/reload", nil)
}

// Check makes the running heed judge URLs of one site, in their order. Only the first
// Judgement has what is the same for all of them: URL, Agent, Robots, By, Age, State, Profile,
// Delay and Sitemaps.
func (c *Client) Check(ctx context.Context, q *CheckRequest) ([]*Judgement, error) {
	return call[[]*Judgement](ctx, c, http.MethodPost, "/judge", q)
}

// maxSocketPath is the longest path a Unix socket may have: 104 octets with the
// final zero on BSD and macOS, 108 on Linux.
const maxSocketPath = 103

// SocketPath returns the path for the control socket of the state directory: inside it
// or, when that path is too long for a socket, in a private directory of this user,
// which it creates with mode 0700.
func SocketPath(state string) (string, error) {
	path := filepath.Join(state, "control.sock")
	if len(path) <= maxSocketPath {
		return path, nil
	}
	sum := sha256.Sum256([]byte(state))
	name := filepath.Join("heed-"+strconv.Itoa(os.Geteuid()), hex.EncodeToString(sum[:10])+".sock")
	for _, base := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if path := filepath.Join(base, name); filepath.IsAbs(base) && len(path) <= maxSocketPath {
			return path, ownDir(filepath.Dir(path))
		}
	}
	return "", fmt.Errorf("the path %s is too long for a socket\nSet HEED_STATE to a shorter one", path)
}

// ownDir creates dir with mode 0700, or checks that it is a directory of this user that
// no other user may enter: in a world-writable directory another user may have created
// a link or a directory of that name first.
func ownDir(dir string) error {
	var info fs.FileInfo
	err := os.Mkdir(dir, 0o700)
	if err == nil || os.IsExist(err) {
		info, err = os.Lstat(dir)
	}
	if err != nil {
		return fmt.Errorf("no place for the control socket: %w\nSet HEED_STATE to a shorter path", err)
	}
	if err := ownfile.Check(ownfile.SocketDir, "the directory of the control socket", dir, info); err != nil {
		return fmt.Errorf("%w\nOr set HEED_STATE to a shorter path", err)
	}
	return nil
}

// RemoteCache implements CacheAPI over the control socket.
type RemoteCache struct{ Client *Client }

var errCutShort = errors.New("the running heed ended in the middle of its answer\nTry again")

// List implements CacheAPI.
func (k RemoteCache) List(ctx context.Context, each func(*CacheEntry) error) error {
	resp, err := k.Client.do(ctx, http.MethodGet, "/cache", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for lines := json.NewDecoder(resp.Body); ; {
		var line *CacheEntry
		switch err := lines.Decode(&line); {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return errCutShort
		case err != nil:
			return fmt.Errorf("the list of the running heed cannot be parsed: %w", err)
		case line == nil:
			return nil
		}
		if err := each(line); err != nil {
			return err
		}
	}
}

// Show implements CacheAPI.
func (k RemoteCache) Show(ctx context.Context, what string) ([]*CacheEntry, error) {
	return call[[]*CacheEntry](ctx, k.Client, http.MethodGet, cachePath("one", what), nil)
}

// Text implements CacheAPI.
func (k RemoteCache) Text(ctx context.Context, what string) ([]byte, error) {
	return call[[]byte](ctx, k.Client, http.MethodGet, cachePath("text", what), nil)
}

// Purge implements CacheAPI.
func (k RemoteCache) Purge(ctx context.Context, what string) ([]string, error) {
	return call[[]string](ctx, k.Client, http.MethodDelete, cachePath("one", what), nil)
}

// Warm implements CacheAPI.
func (k RemoteCache) Warm(ctx context.Context, origin string) (*CacheEntry, error) {
	return call[*CacheEntry](ctx, k.Client, http.MethodPost, cachePath("one", origin), nil)
}

// cachePath returns the path of a request about a host or an origin.
func cachePath(name, what string) string { return "/cache/" + name + "?of=" + url.QueryEscape(what) }

// CacheEntry describes the cached policy of one origin, for one kind of client, as
// printed by `heed cache`.
type CacheEntry struct {
	Origin    string    `json:"origin"`         // with Kind, the URL
	Kind      string    `json:"kind,omitempty"` // empty: robots.txt; tdmrep, licence, robots (of a licence's site), page
	For       string    `json:"for,omitempty"`  // which clients; empty: all
	Route     string    `json:"way,omitempty"`  // the route to the site; empty: that of the settings
	State     string    `json:"state"`          // available, stale, unavailable or unreachable
	Why       string    `json:"why"`
	Status    int       `json:"status,omitempty"`
	FetchedAt time.Time `json:"fetched_at"` // fetched, revalidated or attempted
	NextAt    time.Time `json:"next_at"`    // from then on, the next request causes a fetch
	WaitAt    time.Time `json:"wait_at"`    // from then on, that request waits for the fetch
	Failures  int       `json:"failures,omitempty"`
	Bytes     int       `json:"bytes"` // of memory
	Shared    bool      `json:"shared,omitempty"`

	// Set by Show only. Text is the received content, decoded.
	Snapshot *rules.Snapshot `json:"snapshot,omitempty"`
	Text     *string         `json:"text,omitempty"` // nil: not stored
	Cut      bool            `json:"text_cut,omitempty"`
}

// MaxShown is the greatest length of CacheEntry.Text, in bytes.
const MaxShown = 512 << 10

// CacheAPI is the interface behind `heed cache`.
type CacheAPI interface {
	// List calls each with every entry in memory, in no order, until it fails.
	List(ctx context.Context, each func(*CacheEntry) error) error
	// Show returns the entries of a host or an origin, with their text.
	Show(ctx context.Context, what string) ([]*CacheEntry, error)
	// Text returns the robots.txt of an origin, or of the first origin of a host
	// that has one, decoded; nil when none is stored.
	Text(ctx context.Context, what string) ([]byte, error)
	// Purge removes a host or an origin and returns the origins it removed.
	Purge(ctx context.Context, what string) ([]string, error)
	// Warm fetches the policy of an origin unless it is fresh, and returns its entry.
	Warm(ctx context.Context, origin string) (*CacheEntry, error)
}
