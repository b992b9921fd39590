package lru

// entry is one key in the order of eviction. Entries are ordered by the stamp that was last read
// and, if stamps are equal, by the insertion.
type entry[V any] struct {
	stamp    uint64
	sequence uint64
	value    *V // the key's value, or a predecessor of it
}

func (a *entry[V]) before(b *entry[V]) bool {
	return a.stamp < b.stamp || a.stamp == b.stamp && a.sequence < b.sequence
}

// order is a priority queue of entries. Most entries come in order, above all in a flood of new
// keys, and wait in a list that is sorted as it stands. The others go to a heap.
type order[V any] struct {
	sorted list[V]
	heap   heap[V]
}

func (o *order[V]) len() int { return o.sorted.n + o.heap.n }

// put adds an entry, a new one or one that was taken out.
func (o *order[V]) put(e entry[V]) {
	if o.sorted.n > 0 && e.before(o.sorted.at(o.sorted.n-1)) {
		o.heap.push(e)
		return
	}
	o.sorted.push(e)
}

// first returns the least entry of an order that is not empty.
func (o *order[V]) first() *entry[V] {
	if o.firstIsSorted() {
		return o.sorted.at(0)
	}
	return o.heap.at(0)
}

func (o *order[V]) pop() entry[V] {
	if o.firstIsSorted() {
		return o.sorted.popFirst()
	}
	return o.heap.pop()
}

// firstIsSorted reports whether the first entry is in the list. The comparison is a function of its
// own so that firstIsSorted is inlined: in a flood of new keys the heap is empty.
func (o *order[V]) firstIsSorted() bool { return o.heap.n == 0 || o.sortedIsBefore() }

func (o *order[V]) sortedIsBefore() bool {
	return o.sorted.n > 0 && o.sorted.at(0).before(o.heap.at(0))
}

// heap is a binary min-heap.
type heap[V any] struct{ list[V] }

// push puts e at the end or at an ancestor of it.
func (h *heap[V]) push(e entry[V]) {
	h.list.push(e)
	i := h.n - 1
	for i > 0 && e.before(h.at((i-1)/2)) {
		*h.at(i) = *h.at((i - 1) / 2)
		i = (i - 1) / 2
	}
	*h.at(i) = e
}

// pop puts the last entry in the place of the first one or of a descendant of it.
func (h *heap[V]) pop() entry[V] {
	least := *h.at(0)
	e := h.popLast()
	if h.n == 0 {
		return least
	}
	i := 0
	for child := 1; child < h.n; child = 2*i + 1 {
		if child+1 < h.n && h.at(child+1).before(h.at(child)) {
			child++
		}
		if !h.at(child).before(&e) {
			break
		}
		*h.at(i) = *h.at(child)
		i = child
	}
	*h.at(i) = e
	return least
}

// chunkEntries is the number of entries that are allocated together. With the allocator's
// header of a word, 128 of them take a size class of 3,200 bytes: 25 bytes each.
const chunkEntries = 128

type chunk[V any] [chunkEntries]entry[V]

// list is a list of entries in chunks, of which one may be spare. Unlike a slice it grows and
// shrinks without copying, so no insert waits for a copy.
type list[V any] struct {
	chunks  []*chunk[V]
	head, n int // index of the first entry in the first chunk, and number of entries
}

func (l *list[V]) at(i int) *entry[V] {
	j := uint(l.head + i)
	return &l.chunks[j/chunkEntries][j%chunkEntries]
}

func (l *list[V]) push(e entry[V]) {
	if l.head+l.n == len(l.chunks)*chunkEntries {
		l.chunks = append(l.chunks, new(chunk[V]))
	}
	*l.at(l.n) = e
	l.n++
}

func (l *list[V]) popFirst() entry[V] {
	e := l.at(0).take()
	l.n--
	if l.head++; l.head == chunkEntries { // the chunk becomes the last one
		first := l.chunks[0]
		l.chunks[0] = nil // the array behind the slice would keep it
		l.chunks, l.head = append(l.chunks[1:], first), 0
		l.trim()
	}
	return e
}

func (l *list[V]) popLast() entry[V] {
	l.n--
	e := l.at(l.n).take()
	l.trim()
	return e
}

// take returns an entry, and clears its place so that the value can be collected.
func (a *entry[V]) take() entry[V] {
	e := *a
	*a = entry[V]{}
	return e
}

// trim frees a second spare chunk.
func (l *list[V]) trim() {
	if last := len(l.chunks) - 1; l.head+l.n+chunkEntries <= last*chunkEntries {
		l.chunks[last] = nil
		l.chunks = l.chunks[:last]
	}
}
