package proof

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"heed/internal/testkit"
)

// statuses counts the answers so far.
func (n *notes) statuses() map[int]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	statuses := map[int]int{}
	for _, a := range n.all {
		statuses[a.status]++
	}
	return statuses
}

// A client in a loop that asks for one refused address with eight connections, as
// fast as it can, leaves the record a few rows; what it is allowed, and the other
// refusals of it, come as fast as before.
func TestHeed_ALoopingClientDoesNotFillTheRecord(t *testing.T) {
	t.Parallel()
	s, dir := newSite(t), t.TempDir()
	path := filepath.Join(dir, "audit.db")
	h := withRecord(t, s, path, "")
	c, n, honest := client(t, h), &notes{}, &notes{}
	c.Timeout = time.Minute
	begun, ended := time.Now(), make(chan struct{})
	var loops sync.WaitGroup
	for range 8 {
		loops.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					n.ask(c, "http://proof.test/private/again")
				}
			}
		})
	}
	other := client(t, h)
	asked, long := 0, 0 // a busy machine delays a few
	testkit.Until(t, "the loop is slowed for three seconds", func() bool {
		began := time.Now()
		honest.ask(other, fmt.Sprint("http://proof.test/page/", asked))
		honest.ask(other, fmt.Sprint("http://proof.test/private/", asked))
		if asked++; time.Since(began) > 2*time.Second {
			long++
		}
		return time.Since(begun) > 3*time.Second && n.statuses()[http.StatusTooManyRequests] >= 5
	})
	if long > asked/2 {
		t.Errorf("%d of %d times, two requests beside the loop took longer than two seconds", long, asked)
	}
	close(ended)
	loops.Wait()
	most := int(13 * (1 + time.Since(begun).Seconds()))
	if got := n.statuses(); got[http.StatusForbidden] != 60 || got[http.StatusTooManyRequests] > most {
		t.Errorf("the loop was answered %v", got)
	}
	for _, a := range honest.all {
		if a.status != 200 && a.status != 403 {
			t.Errorf("%s beside the loop was answered %d", a.target, a.status)
		}
	}
	h.Signal(os.Interrupt)
	h.Exit()
	verify(t, path)
	rows, _ := rowsAfter(t, path, 0)
	agree(t, rows, append(n.all, honest.all...), s.requests())
	if most := len(honest.all) + len(n.all); len(rows) > most {
		t.Errorf("%d rows of %d answers", len(rows), most)
	}
}
