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

// order is a binary min-heap of slots. It holds keys rather than values because a
// value may be replaced without the shard's lock.
type order[K comparable] []slot[K]

// push grows the heap by an eighth rather than append's quarter or more: half as many
// bytes a key to spare.
func (o *order[K]) push(s slot[K]) {
	if h := *o; len(h) == cap(h) {
		*o = append(make(order[K], 0, len(h)+len(h)/8+8), h...)
	}
	*o = append(*o, s)
	o.up(len(*o) - 1)
}

func (o *order[K]) pop() slot[K] {
	top := (*o)[0]
	o.remove(0)
	return top
}

func (o *order[K]) remove(i int) {
	h := *o
	last := len(h) - 1
	h[i] = h[last]
	h[last] = slot[K]{} // let go of the key
	*o = h[:last]
	if i < last {
		o.down(i)
		o.up(i)
	}
}

func (o order[K]) up(i int) {
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

func (o order[K]) down(i int) {
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
