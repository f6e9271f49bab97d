package memo

import (
	"errors"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

func TestMap_HoldsNoMoreThanItsBound(t *testing.T) {
	t.Parallel()
	var m Map[int, int]
	_, ok := m.Get(1)
	must.True(t, !ok, "an empty Map returned a value")
	for n := range 1000 {
		m.Put(n, 2*n, 10)
		v, ok := m.Get(n)
		must.Need(t, ok && v == 2*n, "Get(%d) = %d, %v", n, v, ok)
		must.Need(t, len(m.values) <= 10, "%d values", len(m.values))
	}
}

func TestMap_ConcurrentUse(t *testing.T) {
	t.Parallel()
	var m Map[int, int]
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 1000 {
				m.Put(n%20, n%20, 10)
				if v, ok := m.Get(n % 20); ok && v != n%20 {
					t.Errorf("Get(%d) = %d", n%20, v)
				}
			}
		})
	}
	all.Wait()
}

// A value that several goroutines load is counted once, so that a Map that is
// large enough is not emptied.
func TestMap_CountsAValueOnce(t *testing.T) {
	t.Parallel()
	var m Map[int, string]
	m.PutSized(1, "one", 3, 10)
	for range 5 {
		m.PutSized(2, "two", 7, 10)
	}
	must.True(t, len(m.values) == 2, "of two values it has %v", m.values)
	load := func() (string, error) { return "three", nil }
	for range 2 {
		if v, err := m.LoadSized(3, func(s string) int { return len(s) }, 10, load); v != "three" || err != nil || len(m.values) != 1 || m.size != 5 {
			t.Errorf("%q, %v; it was full, and has %v of size %d", v, err, m.values, m.size)
		}
	}
	_, err := m.Load(4, 10, func() (string, error) { return "", errors.New("a test") })
	must.True(t, err != nil && len(m.values) == 1, "%v; a value with an error is remembered: %v", err, m.values)
}

// A full map loses all values, or one of the first by the caller's order.
func TestMakeRoom(t *testing.T) {
	t.Parallel()
	m := map[int]int{}
	less := func(a, b int) bool { return a < b }
	for i := range 12 {
		MakeRoom(m, 10, less)
		m[i] = i
	}
	// 12 values and no more are compared
	must.True(t, len(m) == 10 && m[10] == 10 && m[11] == 11, "by an order it has %v", m)
	_, ok := m[0]
	must.True(t, !ok, "the first one is left: %v", m)
	if MakeRoom(m, 11, nil); len(m) != 10 {
		t.Errorf("there was room, and it has %v", m)
	}
	if MakeRoom(m, 10, nil); len(m) != 0 {
		t.Errorf("without an order it has %v", m)
	}
}

// What is kept is bounded in number and in size, and ends at its time.
func TestKept_IsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct{ size, most, mostSize, kept int }{
		"by number": {1, 10, 100, 10}, "by size": {30, 10, 100, 3}, "larger than all": {101, 10, 100, 1},
	} {
		var m Kept[int, int]
		for i := range 20 {
			m.Put(i, i, now.Add(time.Minute), c.size, c.most, c.mostSize)
			m.Put(i, i+1, now.Add(time.Minute), c.size, c.most, c.mostSize) // in place of the other
		}
		must.True(t, len(m.values) == c.kept && m.size == c.kept*c.size,
			"%s: %d values of size %d", name, len(m.values), m.size)
		v, ok := m.Get(19, now)
		must.True(t, v == 20 && ok, "%s: the last one is %d, %v", name, v, ok)
		v, ok = m.Get(19, now.Add(time.Minute))
		must.True(t, v == 0 && !ok, "%s: after its time it is %d, %v", name, v, ok)
	}
}
