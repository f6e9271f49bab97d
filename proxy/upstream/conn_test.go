package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// What comes beyond the connections that one site may have waits for one of
// them, and is answered all the same.
func TestConnsPerHost_FurtherRequestsWait(t *testing.T) {
	var mu sync.Mutex
	from := map[string]bool{}
	release := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr] = true
		mu.Unlock()
		<-release
	}))
	t.Cleanup(s.Close)
	transport := newTransport(TransportConfig{ConnsPerHost: 1})
	t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var asked, done sync.WaitGroup
	for range 3 {
		asked.Add(1)
		done.Go(func() {
			r, err := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := transport.Send(&Request{Request: r, Hooks: attempts{NoHooks{}, &asked}})
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	asked.Wait() // all three want a connection before the first gives one back
	for range 3 {
		release <- true
	}
	done.Wait()
	must.True(t, len(from) == 1, "three requests at once came on %d connections, not 1", len(from))
}

// attempts are hooks that count attempts.
type attempts struct {
	NoHooks
	asked *sync.WaitGroup
}

func (a attempts) Attempt() error {
	a.asked.Done()
	return nil
}

// An error that FailureOf does not recognise is a 502 and never a success.
func TestFailureOf_AnUnknownErrorIs502(t *testing.T) {
	for _, err := range []error{errors.New("?"), fmt.Errorf("a: %w", os.ErrClosed), nil} {
		must.Equal(t, FailureOf(err), (Failure{Status: 502, Type: "destination_unavailable"}), err)
	}
}

// The scheme of credentials that authenticate a connection is recognised however a server
// may split them.
func TestConn_CredentialsThatAuthenticateIt(t *testing.T) {
	t.Parallel()
	for v, want := range map[string][2]bool{
		"Negotiate YII": {true, true}, "negotiate  YII": {true, true}, "Negotiate\tYII": {true, true}, " NTLM \t YII": {true, true},
		"NTLM": {true, false}, "NTLM\t": {true, false}, "Basic NTLM": {}, "NTLMX YII": {}, "": {},
	} {
		is, token := connectionScheme(v)
		must.True(t, is == want[0] && token == want[1], "%q: %v %v", v, is, token)
	}
}
