package memo

import (
	"sync"
	"time"
)

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

func (m *Kept[K, V]) dropLocked(key K) {
	m.size -= m.values[key].size
	delete(m.values, key)
}
