package lru

// slot is a key's place in the order of its shard: by stamp as last seen, and first
// inserted first among equals.
type slot[K comparable] struct {
	stamp uint64
	seq   uint64
	key   K
}

func (a *slot[K]) before(b *slot[K]) bool {
	return a.stamp < b.stamp || a.stamp == b.stamp && a.seq < b.seq
}

// order is a priority queue of slots. Most of them come in order, above all in a flood
// of new keys, and wait in a queue that is sorted as it stands; the others go to a
// heap. Slots hold keys rather than values because a value may be replaced without the
// shard's lock.
type order[K comparable] struct {
	run  queue[K]
	heap heap[K]
}

func (o *order[K]) len() int { return o.run.n + len(o.heap) }

func (o *order[K]) push(s slot[K]) {
	if o.run.n > 0 && s.before(o.run.last()) {
		o.heap.push(s)
		return
	}
	o.run.push(s)
}

// first returns the least slot of an order that is not empty.
func (o *order[K]) first() *slot[K] {
	if o.run.n > 0 && (len(o.heap) == 0 || o.run.first().before(&o.heap[0])) {
		return o.run.first()
	}
	return &o.heap[0]
}

func (o *order[K]) pop() slot[K] {
	if first := o.first(); o.run.n > 0 && first == o.run.first() {
		return o.run.pop()
	}
	return o.heap.remove(0)
}

// remove removes the slot of key, in time linear in the number of slots.
func (o *order[K]) remove(key K) {
	for i := range o.heap {
		if o.heap[i].key == key {
			o.heap.remove(i)
			return
		}
	}
	for range o.run.n { // once around
		if s := o.run.pop(); s.key != key {
			o.run.push(s)
		}
	}
}

// chunkSlots is how many slots of string keys, and the allocator's header of a word, are
// two kilobytes. One more would take the next size class.
const chunkSlots = 63

// queue is a first-in-first-out queue of slots in chunks, which spare the slack that a
// slice has.
type queue[K comparable] struct {
	chunks     []*[chunkSlots]slot[K]
	spare      *[chunkSlots]slot[K]
	n          int
	head, tail int // the first slot in the first chunk, and behind the last in the last
}

func (q *queue[K]) first() *slot[K] { return &q.chunks[0][q.head] }

func (q *queue[K]) last() *slot[K] { return &q.chunks[len(q.chunks)-1][q.tail-1] }

func (q *queue[K]) push(s slot[K]) {
	if len(q.chunks) == 0 || q.tail == chunkSlots {
		next := q.spare
		if q.spare = nil; next == nil {
			next = new([chunkSlots]slot[K])
		}
		q.chunks = append(q.chunks, next)
		q.tail = 0
	}
	q.chunks[len(q.chunks)-1][q.tail] = s
	q.tail++
	q.n++
}

func (q *queue[K]) pop() slot[K] {
	at := q.first()
	s := *at
	*at = slot[K]{} // let go of the key
	q.head++
	q.n--
	if q.head == chunkSlots || q.n == 0 {
		q.spare = q.chunks[0]
		q.chunks[0] = nil // or the array behind the slice would keep it
		q.chunks = q.chunks[1:]
		q.head = 0
	}
	return s
}

// heap is a binary min-heap of slots.
type heap[K comparable] []slot[K]

// push grows the heap by an eighth rather than append's quarter or more.
func (o *heap[K]) push(s slot[K]) {
	if h := *o; len(h) == cap(h) {
		*o = append(make(heap[K], 0, len(h)+len(h)/8+8), h...)
	}
	*o = append(*o, s)
	o.up(len(*o) - 1)
}

func (o *heap[K]) remove(i int) slot[K] {
	h := *o
	s := h[i]
	last := len(h) - 1
	h[i] = h[last]
	h[last] = slot[K]{} // let go of the key
	*o = h[:last]
	if i < last {
		o.down(i)
		o.up(i)
	}
	return s
}

func (o heap[K]) up(i int) {
	s := o[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !s.before(&o[parent]) {
			break
		}
		o[i] = o[parent]
		i = parent
	}
	o[i] = s
}

func (o heap[K]) down(i int) {
	s := o[i]
	for {
		child := 2*i + 1
		if child >= len(o) {
			break
		}
		if child+1 < len(o) && o[child+1].before(&o[child]) {
			child++
		}
		if !o[child].before(&s) {
			break
		}
		o[i] = o[child]
		i = child
	}
	o[i] = s
}
