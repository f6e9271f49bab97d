package pace

import (
	"hash/maphash"
	"slices"
	"time"
)

// Bounds of what is booked, at one site but for allBooked.
const (
	maxBooked    = 256
	maxOwnBooked = 64               // of one client
	allBooked    = 1 << 18          // at all sites
	leastKept    = 30 * time.Second // how long after its time a booking is kept, at least
	early        = time.Second      // before its time that a client may come
	jostle       = 3 * time.Second  // that clients which were told the same second may have to wait for each other
)

// booking is a place in the queue for a request that was told when to come back:
// then it goes before all others of its client, and before those of others that
// were told nothing.
type booking struct {
	due     time.Time
	expires time.Time
	client  uint64
}

// seed keeps what clients choose from colliding on purpose.
var seed = maphash.MakeSeed()

// key tells a request from others, and its client from others.
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

// comesBack reports whether k comes when it was told to, and ends its booking.
func (s *site) comesBack(k *ticket, now time.Time) bool {
	if len(s.booked) == 0 {
		return false
	}
	key, _ := k.key()
	b, ok := s.booked[key]
	if !ok || now.Before(b.due.Add(-early)) {
		return false
	}
	s.unkeep(key)
	return now.Before(b.expires)
}

// refuse ends a wait that would be in vain, and says when to come back.
func (s *site) refuse(k *ticket, now time.Time) {
	i := slices.Index(s.queue, k)
	if i < 0 {
		return
	}
	if k.unheard() {
		k.place = s.placeOf(k, now)
	}
	s.remove(i)
	k.refused, k.retry = true, shortly(s.book(k, now).Sub(now))
	close(k.ready)
}

// book returns when k is to come back: after a booking of each other client for
// each that its own has, and with room between its own for what else it asks.
func (s *site) book(k *ticket, now time.Time) time.Time {
	key, client := k.key()
	all := s.live(now)
	if b, ok := all[key]; ok && b.due.After(now) {
		return b.due
	}
	count := map[uint64]int{}
	for _, b := range all {
		if b.due.After(now) {
			count[b.client]++
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
	if own >= maxOwnBooked || s.turns.booked.Load() >= allBooked || len(all) >= maxBooked && !s.unbook(count, 1+own) {
		return due
	}
	if all == nil {
		s.booked = map[uint64]booking{}
	}
	s.unkeep(key)
	s.turns.booked.Add(1)
	s.booked[key] = booking{due: due, expires: due.Add(max(leastKept, k.ask.MaxWait)), client: client}
	return due
}

// unbook makes room for a client's n-th booking: the latest goes of the client that
// has most, if it has more than that.
func (s *site) unbook(count map[uint64]int, n int) bool {
	var latest uint64
	most := n
	for key, b := range s.booked {
		if c := count[b.client]; c > most || c == most && c > n && b.due.After(s.booked[latest].due) {
			latest, most = key, c
		}
	}
	if most > n {
		s.unkeep(latest)
	}
	return most > n
}

// live drops the bookings that have expired and returns the others.
func (s *site) live(now time.Time) map[uint64]booking {
	for key, b := range s.booked {
		if !now.Before(b.expires) {
			s.unkeep(key)
		}
	}
	if len(s.booked) == 0 {
		s.booked = nil
	}
	return s.booked
}

// shortly is d in whole seconds, for a client that waits exactly that long: it
// comes a little early, before others that would take its turn.
func shortly(d time.Duration) time.Duration { return max(time.Second, d.Truncate(time.Second)) }

// unkeep drops a booking, if there is one.
func (s *site) unkeep(key uint64) {
	if _, ok := s.booked[key]; ok {
		delete(s.booked, key)
		s.turns.booked.Add(-1)
	}
}
