package pace

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// The operator sees who waits at a site: in the order of the turns, since when, and when
// each is expected to start. The list is bounded, and contains no query.
func TestHeed_TheListHasThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.settings.MaxWait = time.Hour
		send := func(who Who, target string) {
			c.send(&Ask{Settings: &c.settings, Origin: site1, Hints: delay("10"), Client: who.String(), Target: target, Who: who})
			synctest.Wait()
		}
		alice := Who{Address: "192.0.2.7", User: "alice", Name: "newsbot", Listener: "127.0.0.1:3128"}
		send(alice, "GET /first")
		testkit.Advance(2 * time.Second)
		second := time.Now()
		send(alice, "GET /second?token=secret")
		testkit.Advance(time.Second)
		send(Who{Address: "192.0.2.8"}, "GET /"+strings.Repeat("x", 1000))
		got := c.List()[0].Waiters
		must.Need(t, len(got) == 2, "%+v", got)
		if w := got[0]; w.Who != alice || w.Request != "GET /second" || !w.Since.Equal(second) || w.Waited != time.Second || w.Next != 7*time.Second {
			t.Errorf("the first that waits: %+v", w)
		}
		w := got[1]
		must.True(t, w.Address == "192.0.2.8" && len(w.Request) == maxRequest && w.Next == 17*time.Second, "the next: %+v", w)
		for i := range 40 {
			send(Who{Address: fmt.Sprint("192.0.2.", 100+i)}, "GET /")
		}
		s := c.List()[0]
		must.True(t, len(s.Waiters) == maxWaiters && s.Waiting == 42, "%d of %d are listed", len(s.Waiters), s.Waiting)
		c.EndWaits()
		c.wg.Wait()
		s = c.List()[0]
		must.True(t, s.Waiters != nil && len(s.Waiters) == 0, "nothing waits: %+v", s.Waiters)
	})
}

func TestHeed_WhoWaitsIsDescribedForPeople(t *testing.T) {
	for want, w := range map[string]Who{
		"192.0.2.7":                       {Address: "192.0.2.7", Listener: "127.0.0.1:3128"},
		"192.0.2.7 (newsbot)":             {Address: "192.0.2.7", Name: "newsbot"},
		"192.0.2.7 (user alice)":          {Address: "192.0.2.7", User: "alice"},
		"192.0.2.7 (newsbot, user alice)": {Address: "192.0.2.7", User: "alice", Name: "newsbot"},
		"192.0.2.7 (alice)":               {Address: "192.0.2.7", User: "alice", Name: "alice"},
	} {
		must.Equal(t, w.String(), want)
	}
}
