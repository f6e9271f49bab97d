package memo

// Bounded counts by names that clients and sites choose, which cannot fill it. The zero value
// is empty and ready for use; it is not safe for concurrent use.
type Bounded[K comparable, V any] map[K]*V

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
