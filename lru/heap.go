package lru

// heap is a binary min-heap of slots in chunks: it grows and shrinks without copying, and
// so without holding up an insert.
type heap[V any] struct {
	chunks []*chunk[V]
	n      int
}

func (h *heap[V]) at(i int) *slot[V] { return &h.chunks[i/chunkSlots][i%chunkSlots] }

func (h *heap[V]) push(s slot[V]) {
	if h.n == len(h.chunks)*chunkSlots {
		h.chunks = append(h.chunks, new(chunk[V]))
	}
	h.n++
	h.up(h.n-1, s)
}

func (h *heap[V]) remove(i int) slot[V] {
	removed := *h.at(i)
	h.n--
	last := *h.at(h.n)
	*h.at(h.n) = slot[V]{} // let go of the value
	if i < h.n {
		h.up(h.down(i, last), last)
	}
	if full := len(h.chunks) - 1; h.n+chunkSlots <= full*chunkSlots { // keep one to spare
		h.chunks[full] = nil
		h.chunks = h.chunks[:full]
	}
	return removed
}

// up puts s at i, or above it.
func (h *heap[V]) up(i int, s slot[V]) {
	for i > 0 {
		parent := h.at((i - 1) / 2)
		if !s.before(parent) {
			break
		}
		*h.at(i) = *parent
		i = (i - 1) / 2
	}
	*h.at(i) = s
}

// down returns where s belongs, at i or below it, and makes room there.
func (h *heap[V]) down(i int, s slot[V]) int {
	for {
		child := 2*i + 1
		if child >= h.n {
			return i
		}
		if child+1 < h.n && h.at(child+1).before(h.at(child)) {
			child++
		}
		if !h.at(child).before(&s) {
			return i
		}
		*h.at(i) = *h.at(child)
		i = child
	}
}
