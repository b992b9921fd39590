package replay

import (
	"cmp"
	"container/heap"
	"slices"
)

// maxTracked is how many keys have statistics of their own: about 500 bytes each, a key of
// at most 256 a part, and a levels of up to 8 KiB. That is 36 MB if all of them send
// requests all the time, and 4 MB if they come and go.
const maxTracked = 4096

// tracked is what is known of one key since it is tracked.
type tracked struct {
	key      string
	requests uint64
	refused  uint64
	missed   uint64 // at most so many refusals came before it was tracked
	partial  bool   // it may have been seen before it was tracked
	run      uint64 // how many refusals in a row, up to now
	longest  uint64 // and at most
	peak     peak
	levels   levels

	seen uint64 // the number of its last request, counting those of all keys

	// missed+refused and seen, when the heap last looked. They are corrected only when
	// the entry comes to its top, so that counting a request does not touch the heap.
	weight, since uint64
}

// top finds the keys that are refused most, in bounded memory: the Space-Saving
// algorithm of Metwally, Agrawal and El Abbadi. It tracks max keys. A new one takes
// the place of the one with the fewest refusals, of equals the one not seen for the
// longest time, and is charged with its count: so many refusals it may have had
// before. A key with more than one in max of all refusals is always among them, and
// missed is never above that share.
type top struct {
	max   int
	clock uint64 // requests so far
	byKey map[string]*tracked
	order order
}

func newTop(max int) *top {
	return &top{max: max, byKey: make(map[string]*tracked, max)}
}

// see returns the entry of a key that sent a request.
func (t *top) see(key []byte) *tracked {
	t.clock++
	e := t.byKey[string(key)] // does not allocate
	switch {
	case e != nil:
	case len(t.order) < t.max:
		e = &tracked{key: string(key)}
		t.byKey[e.key] = e
		heap.Push(&t.order, e)
	default:
		e = t.replaceLeast(string(key))
	}
	e.requests++
	e.seen = t.clock
	return e
}

// replaceLeast gives the place of the least refused key to key. Counts and times only
// grow, so those in the heap are too low at worst: a top whose own have not moved
// since is the least of all, and another is put where it belongs by now.
func (t *top) replaceLeast(key string) *tracked {
	for {
		e := t.order[0]
		if weight := e.missed + e.refused; e.weight != weight || e.since != e.seen {
			e.weight, e.since = weight, e.seen
			heap.Fix(&t.order, 0)
			continue
		}
		delete(t.byKey, e.key)
		*e = tracked{key: key, missed: e.weight, partial: true, weight: e.weight, since: t.clock,
			levels: e.levels.emptied()}
		t.byKey[key] = e
		heap.Fix(&t.order, 0)
		return e
	}
}

// most returns the n keys with the most refusals since they are tracked, the most
// refused first and in the order of their keys among equals. There may be fewer.
func (t *top) most(n int) []*tracked {
	var refused []*tracked
	for _, e := range t.order {
		if e.refused > 0 {
			refused = append(refused, e)
		}
	}
	slices.SortFunc(refused, func(a, b *tracked) int {
		return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(a.key, b.key))
	})
	return refused[:min(n, len(refused))]
}

// count adds a decision in a second since 1970 to the statistics of the key.
func (e *tracked) count(second int64, granted bool) {
	e.peak.add(second)
	if granted {
		e.run = 0
		return
	}
	e.refused++
	e.run++
	e.longest = max(e.longest, e.run)
}

// order is the heap behind top: the least refused first, of equals the longest unseen.
type order []*tracked

func (o order) Len() int      { return len(o) }
func (o order) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o order) Less(i, j int) bool {
	a, b := o[i], o[j]
	return a.weight < b.weight || a.weight == b.weight && a.since < b.since
}

// Push and Pop make order a heap.Interface.
func (o *order) Push(e any) { *o = append(*o, e.(*tracked)) }

// Pop is never called: entries are replaced, not removed.
func (o *order) Pop() any { panic("replay: the order of top keys does not shrink") }
