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
// keys, and wait in a queue that is sorted as it stands. The others go to a heap.
type order[V any] struct {
	sorted   queue[V]
	heap     heap[V]
	sequence uint64 // of the next new entry
}

func (o *order[V]) len() int { return o.sorted.n + o.heap.n }

// add adds a new entry.
func (o *order[V]) add(stamp uint64, v *V) {
	o.put(entry[V]{stamp, o.sequence, v})
	o.sequence++
}

// put adds an entry, or puts it back.
func (o *order[V]) put(e entry[V]) {
	if o.sorted.n > 0 && e.before(o.sorted.last()) {
		o.heap.push(e)
		return
	}
	o.sorted.push(e)
}

// first returns the least entry of an order that is not empty.
func (o *order[V]) first() *entry[V] {
	if o.firstIsSorted() {
		return o.sorted.first()
	}
	return o.heap.entry(0)
}

func (o *order[V]) pop() entry[V] {
	if o.firstIsSorted() {
		return o.sorted.pop()
	}
	return o.heap.pop()
}

func (o *order[V]) firstIsSorted() bool {
	return o.sorted.n > 0 && (o.heap.n == 0 || o.sorted.first().before(o.heap.entry(0)))
}
