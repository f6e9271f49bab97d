package pace

import "time"

// plan works out when each ticket's turn will be. The start of a turn that has
// been given is taken to be now.
func (s *site) plan(now time.Time) {
	for _, l := range s.lanes {
		free := l.next
		if l.held != nil {
			free = now.Add(l.delay)
		}
		l.plan = gap{from: free, free: free}
	}
	for _, k := range s.queue {
		if s.planBetween(k, now) {
			continue
		}
		k.due = s.possible(k, now)
		for _, st := range k.steps {
			k.due = later(k.due, st.plan.free)
		}
		for _, st := range k.steps {
			after := k.due.Add(time.Duration(1+st.others)*st.delay + s.lag)
			switch g := &st.plan; {
			case k.due.After(g.free):
				*g = gap{from: g.free, until: k.due, free: after}
			case g.until.IsZero():
				*g = gap{from: after, free: after}
			default:
				g.free = after
			}
		}
	}
}

// possible returns when k may start as far as no other ticket of this heed is in
// its way.
func (s *site) possible(k *ticket, now time.Time) time.Time {
	at := s.earliest(k, now)
	if len(s.shares) > 0 {
		if sh := s.shares[k.lanes]; sh != nil {
			at = later(at, sh.due)
		}
	}
	return at
}

// planBetween plans a turn that is over before another one's, which is planned
// already: who waits for several lanes leaves room in the quicker ones.
func (s *site) planBetween(k *ticket, now time.Time) (fits bool) {
	due := s.possible(k, now)
	for _, st := range k.steps {
		due = later(due, st.plan.from)
	}
	for _, st := range k.steps {
		if g := st.plan; !g.until.IsZero() {
			fits = true
			if due.Add(time.Duration(1+st.others)*st.delay + s.lag).After(g.until) {
				return false
			}
		}
	}
	if !fits {
		return false
	}
	k.due = due
	for _, st := range k.steps {
		g := &st.plan
		g.from = due.Add(time.Duration(1+st.others)*st.delay + s.lag)
		if g.until.IsZero() {
			g.free = g.from
		}
	}
	return true
}

// earliest returns when k may start by what holds for the whole site.
func (s *site) earliest(k *ticket, now time.Time) time.Time {
	at := later(later(now, k.from), s.pause.until)
	for _, st := range k.steps {
		if !s.moved.IsZero() {
			at = later(at, s.moved.Add(st.delay))
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
