package proof

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
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
// refusals of it, are answered as before.
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
	asked := 0
	testkit.Until(t, "the loop is slowed for three seconds", func() bool {
		honest.ask(other, fmt.Sprint("http://proof.test/page/", asked))
		honest.ask(other, fmt.Sprint("http://proof.test/private/", asked))
		asked++
		return time.Since(begun) > 3*time.Second && n.statuses()[http.StatusTooManyRequests] >= 5
	})
	close(ended)
	loops.Wait()
	lasted := time.Since(begun).Seconds()
	most, refused := int(13*(1+lasted)), int(61+lasted/10) // six refusals a minute beyond the first sixty
	if got := n.statuses(); got[http.StatusForbidden] < 60 || got[http.StatusForbidden] > refused || got[http.StatusTooManyRequests] > most {
		t.Errorf("the loop was answered %v", got)
	}
	for _, a := range honest.all {
		must.True(t, a.status == 200 || a.status == 403, "%s beside the loop was answered %d", a.target, a.status)
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
