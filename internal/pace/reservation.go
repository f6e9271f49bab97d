package pace

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Bounds of the reservations at one site; allReservations is for all sites.
const (
	maxReservations       = 256
	maxClientReservations = 64               // of one client
	allReservations       = 1 << 18          // at all sites
	minReservation        = 30 * time.Second // how long after its time a reservation is kept, at least
	earlyReturn           = time.Second      // before its time that a client may come
	returnSlack           = 3 * time.Second  // that clients with reservations in the same second may wait for each other
)

// reservation is a place in the queue for a request that was refused with the time to
// come back: then it goes before all others of its client, and before those of other
// clients without a reservation. Clients that keep Retry-After (curl --retry, crawlers) are
// served when they return; without it those that wait on their connections would always be
// served first, and a site whose delay is longer than max_wait would serve no one else.
type reservation struct {
	due     time.Time
	expires time.Time
	client  uint64
}

// reservations are those of one site. They are guarded by its lock.
type reservations struct {
	kept  map[uint64]reservation // by the key of the request
	total *atomic.Int64          // those of all sites
}

// seed prevents clients from choosing values whose keys collide.
var seed = maphash.MakeSeed()

// key identifies a request, and its client.
func (k *ticket) key() (request, client uint64) {
	a := k.ask
	return maphash.Comparable(seed, [3]string{a.Client, a.Name, a.Target}), maphash.String(seed, a.Client)
}

// claim reports whether k comes at the time of its reservation, which it removes.
func (rs *reservations) claim(k *ticket, now time.Time) bool {
	if len(rs.kept) == 0 {
		return false
	}
	key, _ := k.key()
	r, ok := rs.kept[key]
	if !ok || now.Before(r.due.Add(-earlyReturn)) {
		return false
	}
	rs.drop(key)
	return now.Before(r.expires)
}

// reserve returns when k is to come back, and reserves that time if there is room. When
// its client has n reservations, the time is after at most n+1 reservations of each
// other client, and two delays later for each of the n: between them there is time for
// other requests of the client.
func (rs *reservations) reserve(k *ticket, now time.Time) time.Time {
	key, client := k.key()
	all := rs.live(now)
	if r, ok := all[key]; ok && r.due.After(now) {
		return r.due
	}
	count := map[uint64]int{}
	for _, r := range all {
		if r.due.After(now) {
			count[r.client]++
		}
	}
	own, before := count[client], 0
	for other, n := range count {
		if other != client {
			before += min(n, 1+own)
		}
	}
	apart := afterPause
	for _, st := range k.steps {
		apart = max(apart, st.delay)
	}
	due := k.due.Add(time.Duration(before+2*own) * apart)
	if own >= maxClientReservations || rs.total.Load() >= allReservations || len(all) >= maxReservations && !rs.evict(count, 1+own) {
		return due
	}
	if all == nil {
		rs.kept = map[uint64]reservation{}
	}
	rs.drop(key)
	rs.total.Add(1)
	rs.kept[key] = reservation{due: due, expires: due.Add(max(minReservation, k.ask.patience())), client: client}
	return due
}

// evict makes room for a client's n-th reservation: it drops the latest one of the client
// that has most, if that is more than n, and reports whether it did.
func (rs *reservations) evict(count map[uint64]int, n int) bool {
	var latest uint64
	most := n
	for key, r := range rs.kept {
		if c := count[r.client]; c > most || c == most && c > n && r.due.After(rs.kept[latest].due) {
			latest, most = key, c
		}
	}
	if most > n {
		rs.drop(latest)
	}
	return most > n
}

// live drops the reservations that have expired and returns the others.
func (rs *reservations) live(now time.Time) map[uint64]reservation {
	for key, r := range rs.kept {
		if !now.Before(r.expires) {
			rs.drop(key)
		}
	}
	if len(rs.kept) == 0 {
		rs.kept = nil
	}
	return rs.kept
}

// wholeSeconds returns d in whole seconds, for a client that waits exactly that long: it comes
// slightly early, before others that could take its turn.
func wholeSeconds(d time.Duration) time.Duration { return max(time.Second, d.Truncate(time.Second)) }

// drop drops a reservation, if there is one.
func (rs *reservations) drop(key uint64) {
	if _, ok := rs.kept[key]; ok {
		delete(rs.kept, key)
		rs.total.Add(-1)
	}
}
