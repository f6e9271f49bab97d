package memo

import (
	"sync"
	"testing"
)

func TestMap_HoldsNoMoreThanItsBound(t *testing.T) {
	t.Parallel()
	var m Map[int, int]
	if _, ok := m.Get(1); ok {
		t.Error("an empty Map returned a value")
	}
	for n := range 1000 {
		m.Put(n, 2*n, 10)
		if v, ok := m.Get(n); !ok || v != 2*n {
			t.Fatalf("Get(%d) = %d, %v", n, v, ok)
		}
		if len(m.values) > 10 {
			t.Fatalf("%d values", len(m.values))
		}
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
