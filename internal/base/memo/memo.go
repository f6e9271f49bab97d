// Package memo remembers what was computed: in bounded maps of values that are cheap to
// compute again, or that may be forgotten, and expressions that few programs use.
package memo

import (
	"maps"
	"regexp"
	"sync"
	"time"
)

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

// Each calls each with every key and value, in no order, until it returns false. each must not
// use m.
func (m *Map[K, V]) Each(each func(K, V) bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for k, v := range m.values {
		if !each(k, v) {
			return
		}
	}
}

// Forget forgets the values for which forget returns true, and returns how many there were. They
// go on counting as PutSized has counted them until the Map forgets all.
func (m *Map[K, V]) Forget(forget func(K, V) bool) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.values)
	maps.DeleteFunc(m.values, forget)
	return before - len(m.values)
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

// Kept keeps values until a time, as many as fit: others make room for a new one, in no
// order. The zero value is empty and ready for use; a Kept is safe for concurrent use and must
// not be copied.
type Kept[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]kept[V]
	size   int // of the values together
}

type kept[V any] struct {
	value V
	size  int
	until time.Time
}

// Get returns the value of key; ok is false when none is kept that is valid at now.
func (m *Kept[K, V]) Get(key K, now time.Time) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, known := m.values[key]; known && now.Before(k.until) {
		return k.value, true
	}
	return value, false
}

// Put keeps the value of key until a time. It counts as size; at most most values are kept, of
// mostSize together.
func (m *Kept[K, V]) Put(key K, value V, until time.Time, size, most, mostSize int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[K]kept[V]{}
	}
	m.dropLocked(key)
	for other := range m.values {
		if len(m.values) < most && m.size+size <= mostSize {
			break
		}
		m.dropLocked(other)
	}
	m.values[key] = kept[V]{value, size, until}
	m.size += size
}

// Each calls each with every key, value and time, in no order, until it returns false. each must
// not use m.
func (m *Kept[K, V]) Each(each func(key K, value V, until time.Time) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, k := range m.values {
		if !each(key, k.value, k.until) {
			return
		}
	}
}

// Forget forgets the values for which forget returns true, and returns how many there were.
func (m *Kept[K, V]) Forget(forget func(K, V) bool) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, k := range m.values {
		if forget(key, k.value) {
			m.dropLocked(key)
			n++
		}
	}
	return n
}

func (m *Kept[K, V]) dropLocked(key K) {
	m.size -= m.values[key].size
	delete(m.values, key)
}

// Bounded counts by names that clients and sites choose, which cannot fill it. The zero value
// is empty and ready for use; it is not safe for concurrent use.
type Bounded[K comparable, V any] map[K]*V

// Set sets the value of key in *m, which is made for its first value.
func Set[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}

// At returns the value of key, which it adds when necessary, or that of other when m
// has limit keys. A new key is cloned, so that it does not retain the memory of a
// request.
func (m *Bounded[K, V]) At(key, other K, limit int, clone func(K) K) *V {
	if v := (*m)[key]; v != nil {
		return v
	}
	if *m == nil {
		*m = Bounded[K, V]{}
	}
	if len(*m) >= limit {
		key = other
	}
	v := (*m)[key]
	if v == nil {
		v = new(V)
		(*m)[clone(key)] = v
	}
	return v
}

// At returns the value of key in a map, which it adds when necessary.
func At[K comparable, V any](m map[K]*V, key K) *V {
	v := m[key]
	if v == nil {
		v = new(V)
		m[key] = v
	}
	return v
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

// Expression returns a function that returns the regular expression of a text. It is
// compiled when it is first asked for; a wrong one panics.
func Expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
