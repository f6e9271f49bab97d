package accesslog

// queue implements heap.Interface, with the least item first.
type queue[T any] struct {
	items   []T
	compare func(a, b T) int
}

// Len implements heap.Interface.
func (h *queue[T]) Len() int { return len(h.items) }

// Less implements heap.Interface.
func (h *queue[T]) Less(i, j int) bool { return h.compare(h.items[i], h.items[j]) < 0 }

// Swap implements heap.Interface.
func (h *queue[T]) Swap(i, j int) { h.items[i], h.items[j] = h.items[j], h.items[i] }

// Push implements heap.Interface.
func (h *queue[T]) Push(v any) { h.items = append(h.items, v.(T)) }

// Pop implements heap.Interface.
func (h *queue[T]) Pop() any {
	last := len(h.items) - 1
	v := h.items[last]
	h.items = h.items[:last]
	return v
}
