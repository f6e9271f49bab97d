package proof

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

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
	stop := time.After(3 * time.Second)
	ended := make(chan struct{})
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
	for i := 0; ; i++ {
		began := time.Now()
		honest.ask(other, fmt.Sprint("http://proof.test/page/", i))
		honest.ask(other, fmt.Sprint("http://proof.test/private/", i))
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("two requests beside the loop took %v", took)
		}
		select {
		case <-stop:
		case <-time.After(20 * time.Millisecond):
			continue
		}
		break
	}
	close(ended)
	loops.Wait()
	statuses := map[int]int{}
	for _, a := range n.all {
		statuses[a.status]++
	}
	if statuses[http.StatusForbidden] != 60 || statuses[http.StatusTooManyRequests] < 5 || statuses[http.StatusTooManyRequests] > 40 {
		t.Errorf("the loop was answered %v", statuses)
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
