package mutex

// order is a heap of buckets by the instant at which they are full, first inserted
// first among equals.
type order[K comparable] []*bucket[K]

func (o order[K]) Len() int { return len(o) }

func (o order[K]) Less(i, j int) bool {
	return o[i].full < o[j].full || o[i].full == o[j].full && o[i].seq < o[j].seq
}

func (o order[K]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].slot, o[j].slot = i, j
}

func (o *order[K]) Push(x any) {
	b := x.(*bucket[K])
	b.slot = len(*o)
	*o = append(*o, b)
}

func (o *order[K]) Pop() any {
	last := len(*o) - 1
	b := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return b
}
