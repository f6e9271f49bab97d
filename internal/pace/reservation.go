package pace

import (
	"hash/maphash"
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
// clients without a reservation.
type reservation struct {
	due     time.Time
	expires time.Time
	client  uint64
}

// seed keeps what clients choose from colliding on purpose.
var seed = maphash.MakeSeed()

// key identifies a request, and its client.
func (k *ticket) key() (request, client uint64) {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(k.ask.Client)
	client = h.Sum64()
	h.WriteByte(0)
	h.WriteString(k.ask.Name)
	h.WriteByte(0)
	h.WriteString(k.ask.Target)
	return h.Sum64(), client
}

// claim reports whether k comes at the time of its reservation, which it removes.
func (s *site) claim(k *ticket, now time.Time) bool {
	if len(s.reservations) == 0 {
		return false
	}
	key, _ := k.key()
	r, ok := s.reservations[key]
	if !ok || now.Before(r.due.Add(-earlyReturn)) {
		return false
	}
	s.dropReservation(key)
	return now.Before(r.expires)
}

// reserve returns when k is to come back, and reserves that time if there is room. When
// its client has n reservations, the time is after at most n+1 reservations of each
// other client, and two delays later for each of the n: between them there is time for
// other requests of the client.
func (s *site) reserve(k *ticket, now time.Time) time.Time {
	key, client := k.key()
	all := s.liveReservations(now)
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
	if own >= maxClientReservations || s.scheduler.reserved.Load() >= allReservations || len(all) >= maxReservations && !s.evictReservation(count, 1+own) {
		return due
	}
	if all == nil {
		s.reservations = map[uint64]reservation{}
	}
	s.dropReservation(key)
	s.scheduler.reserved.Add(1)
	s.reservations[key] = reservation{due: due, expires: due.Add(max(minReservation, k.ask.patience())), client: client}
	return due
}

// evictReservation makes room for a client's n-th reservation: it drops the latest one of
// the client that has most, if that is more than n, and reports whether it did.
func (s *site) evictReservation(count map[uint64]int, n int) bool {
	var latest uint64
	most := n
	for key, r := range s.reservations {
		if c := count[r.client]; c > most || c == most && c > n && r.due.After(s.reservations[latest].due) {
			latest, most = key, c
		}
	}
	if most > n {
		s.dropReservation(latest)
	}
	return most > n
}

// liveReservations drops the reservations that have expired and returns the others.
func (s *site) liveReservations(now time.Time) map[uint64]reservation {
	for key, r := range s.reservations {
		if !now.Before(r.expires) {
			s.dropReservation(key)
		}
	}
	if len(s.reservations) == 0 {
		s.reservations = nil
	}
	return s.reservations
}

// wholeSeconds is d in whole seconds, for a client that waits exactly that long: it
// comes a little early, before others that would take its turn.
func wholeSeconds(d time.Duration) time.Duration { return max(time.Second, d.Truncate(time.Second)) }

// dropReservation drops a reservation, if there is one.
func (s *site) dropReservation(key uint64) {
	if _, ok := s.reservations[key]; ok {
		delete(s.reservations, key)
		s.scheduler.reserved.Add(-1)
	}
}
