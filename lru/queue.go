package lru

// chunkSlots is how many slots are allocated at a time: 128 of them, with the allocator's
// header of a word, take a size class of 3,200 bytes, which is 25 bytes a slot.
const chunkSlots = 128

type chunk[V any] [chunkSlots]slot[V]

// queue is a first-in-first-out queue of slots in chunks, which spare the slack that a
// slice has, and the copying.
type queue[V any] struct {
	chunks     []*chunk[V]
	spare      *chunk[V]
	n          int
	head, tail int // the first slot in the first chunk, and behind the last in the last
}

func (q *queue[V]) first() *slot[V] { return &q.chunks[0][q.head] }

func (q *queue[V]) last() *slot[V] { return &q.chunks[len(q.chunks)-1][q.tail-1] }

func (q *queue[V]) push(s slot[V]) {
	if len(q.chunks) == 0 || q.tail == chunkSlots {
		next := q.spare
		if q.spare = nil; next == nil {
			next = new(chunk[V])
		}
		q.chunks = append(q.chunks, next)
		q.tail = 0
	}
	q.chunks[len(q.chunks)-1][q.tail] = s
	q.tail++
	q.n++
}

func (q *queue[V]) pop() slot[V] {
	first := q.first()
	s := *first
	*first = slot[V]{} // let go of the value
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
