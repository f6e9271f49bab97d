package fleet_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// wire leads to a store that is far away: what heed sends arrives after some time.
func wire(t *testing.T, to string, delay time.Duration) (addr string) {
	t.Helper()
	return testkit.RawSite(t, func(c net.Conn) {
		defer c.Close()
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer server.Close()
		go func() {
			io.Copy(c, server)
			c.Close()
		}()
		for buf := make([]byte, 64<<10); ; {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			testkit.Delay(delay)
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}

// Two heeds take turns with the help of a store on another continent. That such a store
// stays in use is proved on a fake clock (budget_test.go): a busy machine may miss it.
func TestHeed_ADistantStoreKeepsTheDelay(t *testing.T) {
	t.Parallel()
	url := "redis://" + wire(t, testkit.NewRedis(t).Addr, 140*time.Millisecond)
	one, log := open(t, url)
	other, otherLog := open(t, url)
	p := one.Policies("space")
	for range 3 {
		v, _, _ := p.Newer(t.Context(), tag, "", 0)
		if end, _ := p.Lease(t.Context(), tag, "", v); end != nil {
			end([]byte("record"), []byte("file"), time.Hour)
		}
	}
	all := []*member{{t, one.Lanes(), tag, "ticket"}, {t, other.Lanes(), tag, "ticket"}}
	starts, _ := startsOf(all, 3, func(error) {}) // or the store is missed
	if log.count(away)+otherLog.count(away) > 0 {
		t.Log("the machine is busy: the store was missed, and the heeds did not take turns")
		return
	}
	apart(t, starts, delay-5*time.Millisecond)
}

// The other heeds report to a store that has lost everything a little later than the
// first. If it goes again before they do, each still has a share of its own.
func TestHeed_AnEmptyStoreLeavesEachHeedItsShare(t *testing.T) {
	t.Parallel()
	for place, other := range []string{"1", "0"} {
		t.Run("place "+fmt.Sprint(place), func(t *testing.T) {
			t.Parallel()
			server := testkit.NewRedis(t)
			server.CLI("hset", "heed:1:heeds", "other", other+" 99999999999999")
			m := lineUp(t, "redis://"+server.Addr, 1)[0]
			testkit.Until(t, "both are counted", func() bool { return m.lanes.Membership().Heeds == 2 })
			server.Kill()
			testkit.Until(t, "it is missed", m.away)
			server.Restart()
			testkit.Until(t, "it has reported to the empty store", func() bool { return m.lanes.Membership().Heeds == 1 })
			is := m.lanes.Membership()
			must.True(t, is.Place == place && is.Size == 2, "it has place %d of %d", is.Place, is.Size)
			late := lineUp(t, "redis://"+server.Addr, 1)[0] // counts as many as the others do
			testkit.Until(t, "both have reported", func() bool { return m.lanes.Membership().Heeds == 2 && late.lanes.Membership().Heeds == 2 })
			one, two := m.lanes.Membership(), late.lanes.Membership()
			must.True(t, one.Size == 2 && two.Size == 2 && one.Place != two.Place, "%+v, %+v", one, two)
		})
	}
}
