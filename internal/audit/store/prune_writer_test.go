package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"heed/internal/audit/store"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// TestHeed_PruningGoesOnUnderTraffic: many decide while far more is recorded
// than fits, names come and go, and every moment's record is whole.
func TestHeed_PruningGoesOnUnderTraffic(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	begun := time.Now()
	now := func() time.Time { return begun.Add(2000 * time.Since(begun)) } // an hour in less than two seconds
	w := open(t, path, store.Options{Heed: "test", Keep: time.Hour, Now: now})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var clients sync.WaitGroup
	for client := range 8 {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if n%20 == 0 { // which keeps the writers from outrunning the reader
					_ = w.Complete()
				}
				e := asked(policy(fmt.Sprintf("s%d.test", (n+client)%300)), fmt.Sprintf("/%d", n))
				e.Time = now()
				if err := w.Decided(e); err != nil {
					t.Error(err)
					return
				}
				if n%10 > 0 { // some never end
					w.Ended(e)
				}
				testkit.Delay(5 * time.Millisecond)
			}
		})
	}
	gone := int64(0)
	rounds := 1
	if testkit.Full {
		rounds = 3
	}
	for range rounds {
		gone = waitFor(t, path, func(p *store.Proof) bool { return p.Pruned != nil && p.Pruned.Entries > gone }).Pruned.Entries
	}
	stop()
	clients.Wait()
	must.OK(t, w.Close("the test is over"))
	if proof := verify(t, path); !proof.Whole || proof.Head.Entries != proof.Rows["entry"]+proof.Pruned.Entries {
		t.Errorf("damage %v, head %+v, rows %v, pruned %+v", proof.Damage, proof.Head, proof.Rows, proof.Pruned)
	}
}

func verify(t *testing.T, path string) *store.Proof {
	t.Helper()
	return must.Get(store.Verify(context.Background(), path, nil, nil))(t)
}

// waitFor verifies the record, which has to be whole each time, until it is as
// the test wants it.
func waitFor(t *testing.T, path string, enough func(*store.Proof) bool) *store.Proof {
	t.Helper()
	var proof *store.Proof
	testkit.Until(t, "the record is as the test wants it", func() bool {
		proof = verify(t, path)
		must.Need(t, proof.Whole, "while it is written: %v", proof.Damage)
		return enough(proof)
	})
	return proof
}
