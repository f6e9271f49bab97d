package bypass

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"heed/internal/base/safetext"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/http1"
	"heed/rules"
)

// witness is a reverse proxy before a server: it passes octets on as they come, terminates
// TLS, and notes every request that heed sends.
type witness struct {
	http, https string // where heed finds the site

	server string // the server's own address
	open   sync.WaitGroup

	leaked atomic.Int64 // lines of canaries in the server's answers to heed

	mu      sync.Mutex
	arrived map[string][]string // User-Agent -> "METHOD scheme://host/target", in order
	broken  []string            // what could not be read as a request
}

func newWitness(t testing.TB, server, name string, ca *testkit.CA) *witness {
	t.Helper()
	w := &witness{server: server, arrived: map[string][]string{}}
	cert := must.Get(tls.LoadX509KeyPair(ca.Leaf(t, name)))(t)
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}
	w.http = w.listen(t, "http", func(c net.Conn) net.Conn { return c })
	w.https = w.listen(t, "https", func(c net.Conn) net.Conn { return tls.Server(c, config) })
	return w
}

func (w *witness) listen(t testing.TB, scheme string, wrap func(net.Conn) net.Conn) string {
	t.Helper()
	return testkit.RawSite(t, func(c net.Conn) {
		w.open.Add(1)
		w.pass(wrap(c), scheme)
	})
}

// pass joins a connection of heed's with one to the server.
func (w *witness) pass(heed net.Conn, scheme string) {
	defer w.open.Done()
	defer heed.Close()
	site, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		seen := canaryCounter{found: &w.leaked}
		io.Copy(heed, io.TeeReader(site, &seen))
		heed.Close()
		io.Copy(&seen, site) // an answer that heed does not wait for
	}()
	w.watch(io.TeeReader(heed, site), scheme)
	site.(*net.TCPConn).CloseWrite()
	<-answers
	site.Close()
}

// watch reads requests until the connection ends.
func (w *witness) watch(from io.Reader, scheme string) {
	in := http1.Reader{From: from}
	for {
		if in.Fill() != nil && len(in.Buffered()) == 0 {
			return
		}
		if in.Buffered()[0] == 0x16 { // where a trick asks for https at http's port
			io.Copy(io.Discard, &in)
			return
		}
		r, err := readRequest(&in)
		w.note(r, err, scheme)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil {
			io.Copy(io.Discard, &in)
			return
		}
	}
}

// readRequest reads a request, whatever its target is.
func readRequest(in *http1.Reader) (*http.Request, error) {
	var head http1.Head
	var body http1.Body
	if err := in.ReadRequest(&head); err != nil {
		return nil, err
	}
	body.Reset(in, &head)
	return head.Request(context.Background(), rules.EscapePercents(head.Target), &body)
}

func (w *witness) note(r *http.Request, err error, scheme string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.broken = append(w.broken, err.Error())
		return
	}
	agent := r.Header.Get("User-Agent")
	url := safetext.Octets(scheme + "://" + r.Host + r.RequestURI) // as the log has it
	w.arrived[agent] = append(w.arrived[agent], r.Method+" "+url)
}

// arrivals waits for the end of all connections and returns what was noted.
func (w *witness) arrivals() (byAgent map[string][]string, broken []string) {
	w.open.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arrived, w.broken
}

// canaryCounter counts the canary's lines in a stream of answers.
type canaryCounter struct {
	found *atomic.Int64
	tail  []byte // what may be the beginning of one
}

// Write implements io.Writer.
func (c *canaryCounter) Write(b []byte) (int, error) {
	text := append(c.tail, b...)
	for {
		_, rest, found := bytes.Cut(text, []byte(canaryToken))
		if !found {
			c.tail = bytes.Clone(text[max(0, len(text)-len(canaryToken)+1):])
			return len(b), nil
		}
		c.found.Add(1)
		text = rest
	}
}
