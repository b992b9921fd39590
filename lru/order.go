package lru

// slot is a key's place in the order: by stamp as last seen, and first inserted first
// among equals.
type slot[V any] struct {
	stamp uint64
	seq   uint64
	value *V // or one that it has replaced since
}

func (a *slot[V]) before(b *slot[V]) bool {
	return a.stamp < b.stamp || a.stamp == b.stamp && a.seq < b.seq
}

// order is a priority queue of slots. Most of them come in order, above all in a flood
// of new keys, and wait in a queue that is sorted as it stands; the others go to a
// heap.
type order[V any] struct {
	run  queue[V]
	heap heap[V]
	next uint64 // sequence number of the next push
}

func (o *order[V]) len() int { return o.run.n + o.heap.n }

// push adds a value that was not in the order before.
func (o *order[V]) push(stamp uint64, v *V) {
	o.put(slot[V]{stamp, o.next, v})
	o.next++
}

// put adds a slot, or puts it back.
func (o *order[V]) put(s slot[V]) {
	if o.run.n > 0 && s.before(o.run.last()) {
		o.heap.push(s)
		return
	}
	o.run.push(s)
}

// first returns the least slot of an order that is not empty.
func (o *order[V]) first() *slot[V] {
	if o.run.n > 0 && (o.heap.n == 0 || o.run.first().before(o.heap.at(0))) {
		return o.run.first()
	}
	return o.heap.at(0)
}

func (o *order[V]) pop() slot[V] {
	if first := o.first(); o.run.n > 0 && first == o.run.first() {
		return o.run.pop()
	}
	return o.heap.remove(0)
}

// remove removes the one slot whose value matches and reports whether there was one. It
// takes time linear in the number of slots.
func (o *order[V]) remove(matches func(*V) bool) bool {
	for i := range o.heap.n {
		if matches(o.heap.at(i).value) {
			o.heap.remove(i)
			return true
		}
	}
	n := o.run.n
	for range n { // once around
		if s := o.run.pop(); !matches(s.value) {
			o.run.push(s)
		}
	}
	return o.run.n < n
}
