package lru

// heap is a binary min-heap in chunks. It grows and shrinks without copying, so no insert waits
// for a copy.
type heap[V any] struct {
	chunks []*chunk[V]
	n      int
}

func (h *heap[V]) entry(i int) *entry[V] { return &h.chunks[i/chunkEntries][i%chunkEntries] }

func (h *heap[V]) push(e entry[V]) {
	if h.n == len(h.chunks)*chunkEntries {
		h.chunks = append(h.chunks, new(chunk[V]))
	}
	h.n++
	h.siftUp(h.n-1, e)
}

func (h *heap[V]) pop() entry[V] {
	least := *h.entry(0)
	h.n--
	last := *h.entry(h.n)
	*h.entry(h.n) = entry[V]{} // so that the value can be collected
	if h.n > 0 {
		*h.entry(h.siftDown(last)) = last
	}
	if full := len(h.chunks) - 1; h.n+chunkEntries <= full*chunkEntries { // keep a spare chunk
		h.chunks[full] = nil
		h.chunks = h.chunks[:full]
	}
	return least
}

// siftUp puts e at index i or at an ancestor of it.
func (h *heap[V]) siftUp(i int, e entry[V]) {
	for i > 0 {
		parent := h.entry((i - 1) / 2)
		if !e.before(parent) {
			break
		}
		*h.entry(i) = *parent
		i = (i - 1) / 2
	}
	*h.entry(i) = e
}

// siftDown makes room for e, which takes the place of the first entry, and returns the index.
func (h *heap[V]) siftDown(e entry[V]) int {
	for i := 0; ; {
		child := 2*i + 1
		if child >= h.n {
			return i
		}
		if child+1 < h.n && h.entry(child+1).before(h.entry(child)) {
			child++
		}
		if !h.entry(child).before(&e) {
			return i
		}
		*h.entry(i) = *h.entry(child)
		i = child
	}
}
