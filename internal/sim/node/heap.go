package node

// heap keeps items in order, the first on top. It is written out because a simulation does
// little else.
type heap[T any] struct {
	items []T
	// before is the order, without ties.
	before func(a, b T) bool
	// moved is called with each new place of an item; nil if nobody needs it.
	moved func(item T, place int)
}

func (h *heap[T]) insert(item T) {
	h.items = append(h.items, item)
	h.raise(len(h.items) - 1)
}

// cut takes the item at a place out.
func (h *heap[T]) cut(place int) T {
	item, last := h.items[place], len(h.items)-1
	moved := h.items[last]
	var none T
	h.items[last] = none
	h.items = h.items[:last]
	if place < last {
		h.items[place] = moved
		h.raise(place)
		h.lower(place)
	}
	return item
}

func (h *heap[T]) raise(i int) {
	item := h.items[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(item, h.items[parent]) {
			break
		}
		h.fill(i, h.items[parent])
		i = parent
	}
	h.fill(i, item)
}

func (h *heap[T]) lower(i int) {
	item := h.items[i]
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if other := child + 1; other < len(h.items) && h.before(h.items[other], h.items[child]) {
			child = other
		}
		if !h.before(h.items[child], item) {
			break
		}
		h.fill(i, h.items[child])
		i = child
	}
	h.fill(i, item)
}

func (h *heap[T]) fill(i int, item T) {
	h.items[i] = item
	if h.moved != nil {
		h.moved(item, i)
	}
}
