package fleet_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/fleet"
	"heed/internal/testkit"
)

// wire leads to a store that is far away: what heed sends arrives after some time.
type wire struct {
	addr  string
	delay atomic.Int64
}

func newWire(t *testing.T, to string, delay time.Duration) *wire {
	t.Helper()
	w := &wire{}
	w.set(delay)
	w.addr = testkit.RawSite(t, func(c net.Conn) {
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
			testkit.Delay(time.Duration(w.delay.Load()))
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	return w
}

func (w *wire) set(delay time.Duration) { w.delay.Store(int64(delay)) }

// A store on another continent answers everything, and nothing fast. Where a busy machine
// was the reason that it was missed, another heed does not miss it.
func TestHeed_ADistantStoreStaysInUse(t *testing.T) {
	t.Parallel()
	w := newWire(t, testkit.NewRedis(t).Addr, 140*time.Millisecond)
	testkit.Until(t, "the store stays in use", func() bool {
		one, log := open(t, "redis://"+w.addr)
		other, otherLog := open(t, "redis://"+w.addr)
		p := one.Policies("space")
		for range 3 {
			v, _, _ := p.Newer(t.Context(), tag, "", 0)
			if end, _ := p.Lease(t.Context(), tag, "", v); end != nil {
				end([]byte("record"), []byte("file"), time.Hour)
			}
		}
		var mu sync.Mutex
		var starts []time.Time
		var running sync.WaitGroup
		for _, s := range []*fleet.Store{one, other} {
			m := &member{t, s.Lanes(), tag, "ticket"}
			running.Go(func() {
				for range 3 {
					m.take(of("group"))
					mu.Lock()
					starts = append(starts, time.Now())
					mu.Unlock()
					_ = m.turns.Started(t.Context(), m.host, m.ticket, of("group"), 0) // or it is missed
				}
			})
		}
		running.Wait()
		if log.count(away)+otherLog.count(away) > 0 {
			return false
		}
		for i := 1; i < len(starts); i++ {
			if gap := starts[i].Sub(starts[i-1]); gap < delay-5*time.Millisecond {
				t.Errorf("start %d came %v after the one before it", i, gap)
			}
		}
		return true
	})
}

// Fast answers to other questions do not make up for slow ones.
func TestHeed_AStoreThatIsAlwaysSlowCostsASecondInAll(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	for name, between := range map[string]time.Duration{"all": 900 * time.Millisecond, "every other": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.Until(t, "a request waits about a second at most", func() bool {
				w := newWire(t, server.Addr, 0)
				s, _ := open(t, "redis://"+w.addr)
				p, turns := s.Policies("space"), s.Lanes()
				request(t, p, turns)
				fast := func() {
					w.set(between)
					p.Newer(t.Context(), "https://other.test", "", 0)
					w.set(900 * time.Millisecond)
				}
				waited := time.Duration(0)
				ask := func(question func()) {
					asked := time.Now()
					question()
					waited += time.Since(asked)
				}
				w.set(900 * time.Millisecond)
				ask(func() { p.Newer(t.Context(), tag, "", 0) })
				fast()
				ask(func() { p.Lease(t.Context(), tag, "", 0) })
				fast()
				ask(func() { turns.Ask(t.Context(), tag, "ticket", of("group")) })
				return s.Health().Away && waited < 1500*time.Millisecond
			})
		})
	}
}

// All heeds have to notice at about the same time that a store is back: who does not
// starts requests on its own while others take turns.
func TestHeed_AStoreThatOftenGoesIsNoticedAsSoonAsItIsBack(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	m := lineUp(t, "redis://"+server.Addr, 1)[0]
	settled(m)
	for range 5 {
		m.ask(of("group"))
		server.Kill()
		testkit.Until(t, "it is missed", m.away)
		server.Restart()
		testkit.Until(t, "it is back", func() bool { return !m.away() })
	}
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
			testkit.Until(t, "both are counted", func() bool { return m.turns.Heeds() == 2 })
			server.Kill()
			testkit.Until(t, "it is missed", m.away)
			server.Restart()
			testkit.Until(t, "it has reported to the empty store", func() bool { return m.turns.Heeds() == 1 })
			if is := m.turns.Membership(); is.Place != place || is.Size != 2 {
				t.Errorf("it has place %d of %d", is.Place, is.Size)
			}
			late := lineUp(t, "redis://"+server.Addr, 1)[0] // counts as many as the others do
			testkit.Until(t, "both have reported", func() bool { return m.turns.Heeds() == 2 && late.turns.Heeds() == 2 })
			if one, two := m.turns.Membership(), late.turns.Membership(); one.Size != 2 || two.Size != 2 || one.Place == two.Place {
				t.Errorf("%+v, %+v", one, two)
			}
		})
	}
}
