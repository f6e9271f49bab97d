// Package memo remembers values that are cheap to compute again.
package memo

import "sync"

// Map remembers a bounded number of values by key. The zero value is empty and
// ready for use; a Map is safe for concurrent use and must not be copied.
type Map[K comparable, V any] struct {
	mu     sync.RWMutex
	values map[K]V
}

// Get returns the value of key; ok is false when none is remembered.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	value, ok = m.values[key]
	return value, ok
}

// Put remembers the value of key. A Map that holds most values already forgets
// all of them first, which is cheaper than an order of use.
func (m *Map[K, V]) Put(key K, value V, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil || len(m.values) >= most {
		m.values = map[K]V{}
	}
	m.values[key] = value
}
