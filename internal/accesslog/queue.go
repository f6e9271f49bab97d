package accesslog

// queue is a heap.
type queue[T any] struct {
	items []T
	less  func(a, b T) bool
}

// top returns the first item; nil when there is none.
func (h *queue[T]) top() *T {
	if len(h.items) == 0 {
		return nil
	}
	return &h.items[0]
}

func (h *queue[T]) push(v T) {
	h.items = append(h.items, v)
	for i := len(h.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(h.items[i], h.items[parent]) {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

// pop removes the first item and returns it.
func (h *queue[T]) pop() T {
	var none T
	first, last := h.items[0], len(h.items)-1
	h.items[0] = h.items[last]
	h.items[last] = none
	h.items = h.items[:last]
	h.fix()
	return first
}

// fix puts the first item, which was changed, in its place.
func (h *queue[T]) fix() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.items); child++ {
			if h.less(h.items[child], h.items[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.items[i], h.items[least] = h.items[least], h.items[i]
		i = least
	}
}
