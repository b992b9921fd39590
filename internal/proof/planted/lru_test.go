package planted

const (
	evictGo = "lru/evict.go"
	heapGo  = "lru/heap.go"
	mapGo   = "lru/map.go"
	nodeGo  = "lru/node.go"
	orderGo = "lru/order.go"
)

var lruBugs = []bug{
	// heap
	{
		"the last entry of a heap only sinks to its place", heapGo,
		"h.siftUp(h.siftDown(i, last), last)",
		"*h.entry(h.siftDown(i, last)) = last",
	},
	{
		"a heap keeps the value of a removed entry", heapGo,
		"*h.entry(h.n) = entry[V]{} // so that the value can be collected\n",
		"",
	},
	{
		"a heap looks for a child behind its last entry", heapGo,
		"if child+1 < h.n && h.entry",
		"if h.entry",
	},
	{
		"a heap compares with the entry that is removed", heapGo,
		"if !h.entry(child).before(&e) {",
		"if !h.entry(child).before(h.entry(i)) {",
	},
	// evict
	{
		"a search has no end", evictGo,
		"\tb.toFind--\n",
		"",
	},
	{
		"a successor has the state of its predecessor", evictGo,
		"\t\tc.stamp, c.state, _ = m.values.Stamp(c.value)\n",
		"",
	},
	{
		"a successor is retired for its predecessor", evictGo,
		"return v == c.value && m",
		"return m",
	},
	{
		"a debt is forgiven after sixteen looks", evictGo,
		"b.spend(best.stamp <= now)",
		"b.spend(true)",
	},
	// order
	{
		"an entry out of order goes to the sorted queue", orderGo,
		"if o.sorted.n > 0 && e.before(o.sorted.last()) {",
		"if false {",
	},
	{
		"a queue is left half rotated", orderGo,
		"!matches(e.value) {\n\t\t\to.sorted.push(e)\n\t\t}",
		"!matches(e.value) {\n\t\t\to.sorted.push(e)\n\t\t} else {\n\t\t\tbreak\n\t\t}",
	},
	{
		"all entries have the same number", orderGo,
		"\to.sequence++\n",
		"",
	},
	{
		"an entry that is put back is a new one", orderGo,
		"func (o *order[V]) put(e entry[V]) {\n",
		"func (o *order[V]) put(e entry[V]) {\n\te.sequence = o.sequence\n\to.sequence++\n",
	},
	// map
	{
		"a stamp is read before its value is set", mapGo,
		"set(v)\n\tstamp, _, _ := m.values.Stamp(v)",
		"stamp, _, _ := m.values.Stamp(v)\n\tset(v)",
	},
	{
		"a small map of several slots is listed several times", mapGo,
		"slot = s.to",
		"_, slot = s, slot+1",
	},
	{
		"a successor is in the table before it is set", mapGo,
		"set(next)\n\tif !m.table.replace(key, old, next) {\n\t\treturn nil\n\t}",
		"if !m.table.replace(key, old, next) {\n\t\treturn nil\n\t}\n\tset(next)",
	},
	// move
	{
		"a rebuilt map forgets how many keys it has", "lru/move.go",
		"buckets: buckets, keys: s.keys})",
		"buckets: buckets})",
	},
	{
		"the same map is rebuilt each time", "lru/move.go",
		"\tt.nextRebuild = s.to\n",
		"",
	},
	// node
	{
		"a key with strings shares the memory of the caller", nodeGo,
		"strings.Clone(*s)",
		"strings.TrimPrefix(*s, \"\")",
	},
	{
		"a long key is cut", nodeGo,
		"PutUint64(bytes[1:], uint64(len(text)))",
		"PutUint64(bytes[1:], uint64(min(len(text), longText)))",
	},
}
