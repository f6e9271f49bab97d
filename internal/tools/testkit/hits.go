package testkit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Hit is one request that nginx answered.
type Hit struct {
	Host, Scheme, Proto, Method, Target, Status string
	Agent                                       string // its User-Agent
	Via                                         string // empty: it did not come through a proxy
}

// Hits are the requests that reached the sites so far, oldest first. Every
// request whose answer was received before the call is in it.
func (o *Origin) Hits() []Hit {
	o.t.Helper()
	return o.log.before(o.mark())
}

// HitsOf are the Hits of one site and target.
func (o *Origin) HitsOf(name, target string) []Hit {
	o.t.Helper()
	var of []Hit
	for _, hit := range o.Hits() {
		if hit.Host == name && hit.Target == target {
			of = append(of, hit)
		}
	}
	return of
}

// mark sends a request of the test's own and waits until nginx has logged it.
// nginx is one process that logs in the order it answers, so all before it is
// in the log then.
func (o *Origin) mark() (at int) {
	o.t.Helper()
	target, logged := o.log.expect()
	resp, err := o.client.Get("http://" + o.sites[0].Name + target)
	if err != nil {
		o.t.Fatalf("asking nginx directly: %v\n%s", err, o.errors())
	}
	resp.Body.Close()
	select {
	case at = <-logged:
	case <-time.After(Patience):
		o.t.Fatalf("nginx did not log %s", target)
	}
	return at
}

// markPrefix begins the targets of the test's own requests.
const markPrefix = "/testkit-mark-"

// hitLog is nginx's access log as it is written.
type hitLog struct {
	mu     sync.Mutex
	hits   []Hit
	marks  int
	logged map[string]chan int // target of a mark -> len(hits) when it was logged
}

// read takes in the log until nginx closes it.
func (l *hitLog) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var hit Hit
		if json.Unmarshal(lines.Bytes(), &hit) == nil {
			l.add(hit)
		}
	}
}

func (l *hitLog) add(hit Hit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !strings.HasPrefix(hit.Target, markPrefix) {
		l.hits = append(l.hits, hit)
		return
	}
	if logged, ok := l.logged[hit.Target]; ok {
		logged <- len(l.hits)
		delete(l.logged, hit.Target)
	}
}

// expect returns the target of a new mark, and a channel that receives its position in
// the log.
func (l *hitLog) expect() (target string, logged <-chan int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks++
	target = fmt.Sprint(markPrefix, l.marks)
	place := make(chan int, 1)
	l.logged[target] = place
	return target, place
}

// before is a copy of the hits up to a place.
func (l *hitLog) before(at int) []Hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Hit(nil), l.hits[:at]...)
}

// never keeps a client from following redirects.
func never(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
