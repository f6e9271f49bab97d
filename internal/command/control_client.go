package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"
)

// errNotRunning says that no heed answers in a state directory.
var errNotRunning = errors.New("heed is not running")

// controlClient talks to the heed of a state directory.
type controlClient struct {
	state string
	http  http.Client
}

// newControlClient returns a client for the heed of the state directory. It
// dials with each request, which fails with errNotRunning when none is there.
func newControlClient(state string) *controlClient {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		path, err := findControl(state)
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &controlClient{state, http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// do sends a request; an answer other than 2xx is an error, a *refusedJoin
// when heed says why. The caller closes the body.
func (c *controlClient) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://heed"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	switch {
	case gone(err):
		return nil, errNotRunning
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		h, _ := readHolder(c.state) // without it, the message has no number
		return nil, fmt.Errorf("the running heed (pid %d) does not answer\nIt may be stopped or hang: end it with `kill -KILL %d`, and start it again", h.PID, h.PID)
	case err != nil:
		return nil, fmt.Errorf("the running heed cannot be reached over its control socket: %w\nEnd it, and start it again", err)
	case resp.StatusCode < 300:
		return resp, nil
	}
	defer resp.Body.Close()
	refused := &refusedJoin{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(refused); err != nil || refused.Message == "" {
		return nil, fmt.Errorf("the running heed answers %s on its control socket\nIs it another version? Stop it and try again", resp.Status)
	}
	return nil, refused
}

// gone reports whether err means that nobody listens, or that who listened has
// just ended without an answer.
func gone(err error) bool {
	return errors.Is(err, errNotRunning) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// readStatus asks the heed of the state directory how it is. The error is
// errNotRunning when there is none.
func readStatus(ctx context.Context, state string) (*Status, error) {
	c := newControlClient(state)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resp, err := c.do(ctx, http.MethodGet, "/status", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	s := &Status{}
	if err := json.NewDecoder(resp.Body).Decode(s); err != nil {
		return nil, fmt.Errorf("the running heed gives a status that cannot be read: %w", err)
	}
	return s, nil
}

// retire asks a heed that nobody uses to end; it reports whether it will.
func (c *controlClient) retire(ctx context.Context) bool {
	resp, err := c.do(ctx, http.MethodPost, "/retire", nil)
	if err != nil {
		return errors.Is(err, errNotRunning)
	}
	resp.Body.Close()
	return true
}

// membership is a run's place at a heed, from the run's side.
type membership struct {
	joined
	client *controlClient
	leave  func() // gives up the stream: the run's proxy ends at once
	lines  *json.Decoder
}

// join joins the heed of the state directory. ctx limits the joining alone;
// the membership lasts until leave.
func (c *controlClient) join(ctx context.Context, j *join) (*membership, error) {
	lasting, leave := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, leave)
	resp, err := c.do(lasting, http.MethodPost, "/runs", j)
	if err != nil {
		leave()
		return nil, err
	}
	m := &membership{client: c, leave: leave, lines: json.NewDecoder(resp.Body)}
	var first streamLine
	if err := m.lines.Decode(&first); err != nil || first.Joined == nil || !stop() {
		leave()
		return nil, errNotRunning // it ended before it had begun to answer
	}
	m.joined = *first.Joined
	return m, nil
}

// next returns the next line; io.EOF or another error when heed has gone.
func (m *membership) next() (*streamLine, error) {
	line := &streamLine{}
	if err := m.lines.Decode(line); err != nil {
		return nil, err
	}
	return line, nil
}

// end asks for the end of the run; the summary arrives as the last line.
func (m *membership) end(ctx context.Context) error {
	resp, err := m.client.do(ctx, http.MethodDelete, "/runs/"+m.ID, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
