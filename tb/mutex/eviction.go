package mutex

import (
	"container/heap"
	"reflect"
	"strings"

	"github.com/seed-181794aa/ratelimit/tb"
)

// makeRoom makes room for one key. If there is no room, it returns the instant at which there will
// be. With spend false it evicts nothing.
func (l *Limiter[K]) makeRoom(now uint64, spend bool) (until uint64, ok bool) {
	for range idleDrops {
		if spend && len(l.order) > 0 && l.order[0].full <= now-min(now, idleTime) {
			l.evict(now)
		}
	}
	if len(l.buckets) == l.settings.MaxKeys {
		least := l.order[0].full
		if least > now && l.settings.Overflow == tb.RefuseNew {
			return least, false
		}
		if spend {
			l.evict(now)
		}
	}
	return 0, true
}

// add makes room for a key and returns its bucket, or nil if there is no room. The bucket is in the
// table from the first put on.
func (l *Limiter[K]) add(now uint64, key K) *bucket[K] {
	if _, ok := l.makeRoom(now, true); !ok {
		l.stats.RefusedNew++
		return nil
	}
	return &bucket[K]{key: key}
}

// evict removes the bucket that is, or will soonest be, full. A full bucket counts as evicted at
// the instant at which it became full. A bucket in debt is evicted now, and its debt is forgiven.
// If a reading from the future has set its time ahead of now, the supply until that time is
// forgiven too, up to the capacity.
func (l *Limiter[K]) evict(now uint64) {
	b := l.order[0]
	l.remove(b)
	l.earliest = max(l.earliest, min(now, b.full))
	if b.full <= now {
		l.stats.EvictedFull++
		return
	}
	was := b.present()
	m := was.limit
	now = max(now, b.until) // the time of a hold is no debt
	l.stats.EvictedInDebt++
	most := m.capacity - was.tokens + m.capacity
	if was.inDebt { // its time is a slot, and not a reading from the future
		most = m.capacity + deepestDebt*m.scale
	}
	missing := min(m.missing(was, now), most)
	l.forgiven = l.forgiven.plus(uint64(m.micros(missing)))
}

// put gives b a state, and adds a new bucket to the table.
func (l *Limiter[K]) put(b *bucket[K], s *state) {
	s.noteDebt()
	b.state = *s
	l.rank(b)
}

// rank puts b where it belongs in the order. It adds a new bucket to the table.
func (l *Limiter[K]) rank(b *bucket[K]) {
	s := b.present()
	m := s.limit
	b.full = m.timeOf(s.time.plus(uint64(m.capacity - s.tokens)))
	if b.sequence > 0 {
		heap.Fix(&l.order, b.index)
		return
	}
	copyStrings(reflect.ValueOf(&b.key).Elem())
	l.inserts++
	b.sequence = l.inserts
	l.buckets[b.key] = b
	heap.Push(&l.order, b)
}

func (l *Limiter[K]) remove(b *bucket[K]) {
	delete(l.buckets, b.key)
	heap.Remove(&l.order, b.index)
}

// copyStrings replaces the strings in a key, also in fields and elements, by copies. The caller
// may reuse the memory of its strings.
func copyStrings(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		s := reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem() // v may be unexported
		s.SetString(strings.Clone(s.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			copyStrings(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			copyStrings(v.Index(i))
		}
	}
}

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
