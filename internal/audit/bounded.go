package audit

// boundedMap is a map that cannot be filled with names by clients.
type boundedMap[K comparable, V any] map[K]*V

// at returns the value of key, which it adds when necessary, or that of other when m
// has limit keys. A new key is cloned, so that it does not retain the memory of a
// request.
func (m *boundedMap[K, V]) at(key, other K, limit int, clone func(K) K) *V {
	if v := (*m)[key]; v != nil {
		return v
	}
	if *m == nil {
		*m = boundedMap[K, V]{}
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

// uncount subtracts one from k's number in m, or from other's when m has no k.
func uncount[K comparable](m boundedMap[K, uint64], k, other K) {
	for _, k := range []K{k, other} {
		if n := m[k]; n != nil {
			if *n--; *n == 0 {
				delete(m, k)
			}
			return
		}
	}
}
