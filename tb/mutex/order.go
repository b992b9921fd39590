package mutex

// order is a heap of buckets by the instant at which they will be full, first inserted first
// among equals.
type order[K comparable] []*bucket[K]

func (o order[K]) Len() int { return len(o) }

func (o order[K]) Less(i, j int) bool {
	return o[i].full < o[j].full || o[i].full == o[j].full && o[i].sequence < o[j].sequence
}

func (o order[K]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].index, o[j].index = i, j
}

func (o *order[K]) Push(x any) {
	b := x.(*bucket[K])
	b.index = len(*o)
	*o = append(*o, b)
}

func (o *order[K]) Pop() any {
	last := len(*o) - 1
	b := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return b
}
