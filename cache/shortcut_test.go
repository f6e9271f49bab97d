package cache

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"heed/rules"
)

// Shortcuts are a hint: with them as without, a look-up finds what is there,
// and never what was given up.
func TestHeed_ShortcutsLeadToWhatIsThere(t *testing.T) {
	const names, bound = 3000, 1000
	s := newStore(bound, 1<<40)
	e := after(said(404))
	for range 20_000 {
		put(s, numbered(rand.IntN(names)), e, start)
	}
	places, shorter := s.places(), 0
	there := map[*place]bool{}
	for _, p := range places {
		there[p] = true
		if s.shortcuts.of([]byte(p.key)).Load() == p {
			shorter++
		}
	}
	for n := range names {
		o := numbered(n)
		v, held := s.items.Get(string(appendKey(nil, o)))
		if p := s.find(o); held && p != v.(*place) || !held && p != nil {
			t.Fatalf("%s: found %p, go-cache has %v, %v", o, p, v, held)
		}
	}
	all := *s.shortcuts.all.Load()
	for i := range all {
		if p := all[i].Load(); p != nil && !there[p] {
			t.Errorf("a shortcut leads to %q, which was given up", p.key)
		}
	}
	if len(places) != bound || shorter < bound*8/10 {
		t.Errorf("%d places, %d of them by a shortcut", len(places), shorter)
	}
	if n := len(all); n < shortcutsPerPlace*bound || n*8 > shortcutBytes*bound {
		t.Errorf("%d shortcuts for %d places", n, bound)
	}
}

// Who looks while an entry is replaced gets the old policy within the old
// times, the new one within the new times, or nothing: never a mixture.
func TestHeed_WhatIsShownIsOfOneEntry(t *testing.T) {
	now := start
	old, young := after(said(404)), next(nil, said(404), start.Add(48*time.Hour), 0, rules.Standard)
	entries := map[int64]*rules.Policy{now.UnixNano(): old.policy, now.Add(48 * time.Hour).UnixNano(): young.policy}
	var s shown
	s.show(old)
	for at, policy := range entries {
		if got := s.at(at); got != policy && policy == old.policy || got == old.policy && policy != got {
			t.Errorf("at %d: %p", at, got)
		}
	}
	var looking sync.WaitGroup
	stop := make(chan struct{})
	for at, policy := range entries {
		looking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := s.at(at); got != nil && got != policy {
					t.Error("a policy was shown outside of its times")
					return
				}
			}
		})
	}
	for range 50_000 {
		s.show(young)
		s.show(old)
	}
	s.hide()
	close(stop)
	looking.Wait()
	if s.at(now.UnixNano()) != nil {
		t.Error("something is shown that was hidden")
	}
}

// A site that may tell each client something else shows nothing to all.
func TestHeed_APersonalAnswerIsNotShownToAll(t *testing.T) {
	for name, e := range map[string]*entry{"denied": after(said(403)), "varies": after(said(200, "Vary", "User-Agent"))} {
		var s shown
		s.show(after(said(404)))
		s.show(e)
		if s.at(start.UnixNano()) != nil {
			t.Errorf("%s: shown", name)
		}
	}
}
