// Package memo bounds maps of values that are cheap to compute again, or that may be
// forgotten.
package memo

import "sync"

// Map remembers a bounded number of values by key. The zero value is empty and
// ready for use; a Map is safe for concurrent use and must not be copied.
type Map[K comparable, V any] struct {
	mu     sync.RWMutex
	values map[K]V
	size   int // of the values together
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
func (m *Map[K, V]) Put(key K, value V, most int) { m.PutSized(key, value, 1, most) }

// PutSized is Put of a value that counts as size of most. A value in place of another one
// is not counted again.
func (m *Map[K, V]) PutSized(key K, value V, size, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.values[key]; !known {
		if m.size += size; m.values == nil || m.size > most {
			m.values, m.size = map[K]V{}, size
		}
	}
	m.values[key] = value
}

// Load returns the value of key, which load returns where none is remembered. It is
// remembered as with Put, unless there is an error. Values that are loaded at the same time
// are loaded more than once.
func (m *Map[K, V]) Load(key K, most int, load func() (V, error)) (V, error) {
	return m.LoadSized(key, func(V) int { return 1 }, most, load)
}

// LoadSized is Load of a value that counts as size of most.
func (m *Map[K, V]) LoadSized(key K, size func(V) int, most int, load func() (V, error)) (V, error) {
	value, ok := m.Get(key)
	if ok {
		return value, nil
	}
	value, err := load()
	if err == nil {
		m.PutSized(key, value, size(value), most)
	}
	return value, err
}

// MakeRoom makes room in a map that has most values, for one that the caller adds. Of a few
// values it deletes the one that is first by before, so that a flood of new keys hardly ends
// what others have; with nil it deletes all, which is cheaper than an order of use.
func MakeRoom[K comparable, V any](m map[K]V, most int, before func(a, b V) bool) {
	const few = 16
	switch {
	case len(m) < most:
	case before == nil:
		clear(m)
	default:
		var first K
		seen := 0
		for k, v := range m {
			if seen == 0 || before(v, m[first]) {
				first = k
			}
			if seen++; seen == few {
				break
			}
		}
		delete(m, first)
	}
}
