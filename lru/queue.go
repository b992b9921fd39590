package lru

// chunkEntries is the number of entries that are allocated together. With the allocator's
// header of a word, 128 of them take a size class of 3,200 bytes: 25 bytes each.
const chunkEntries = 128

type chunk[V any] [chunkEntries]entry[V]

// queue is a first-in-first-out queue in chunks. Unlike a slice it has little slack, and its
// entries are never copied.
type queue[V any] struct {
	chunks     []*chunk[V]
	spare      *chunk[V]
	n          int
	head, tail int // the first entry in the first chunk, and one past the last in the last chunk
}

func (q *queue[V]) first() *entry[V] { return &q.chunks[0][q.head] }

func (q *queue[V]) last() *entry[V] { return &q.chunks[len(q.chunks)-1][q.tail-1] }

func (q *queue[V]) push(e entry[V]) {
	if len(q.chunks) == 0 || q.tail == chunkEntries {
		next := q.spare
		if q.spare = nil; next == nil {
			next = new(chunk[V])
		}
		q.chunks = append(q.chunks, next)
		q.tail = 0
	}
	q.chunks[len(q.chunks)-1][q.tail] = e
	q.tail++
	q.n++
}

func (q *queue[V]) pop() entry[V] {
	first := q.first()
	e := *first
	*first = entry[V]{} // so that the value can be collected
	q.head++
	q.n--
	if q.head == chunkEntries || q.n == 0 {
		q.spare = q.chunks[0]
		q.chunks[0] = nil // the array behind the slice would keep it
		q.chunks = q.chunks[1:]
		q.head = 0
	}
	return e
}
