package lru

import (
	"fmt"

	"github.com/seed-181794aa/ratelimit/internal/interleave"
)

// Expose names the variables of m for the scheduler, before which it may be divided
// into shards anew. A key is in the shard of its last byte, so that it is in the same one
// in every run, and it is easy to see in which.
func (m *Map[K, V]) Expose(max, shards int) {
	if shards > 1 {
		m.init(max, m.keep, m.values, shards)
	}
	m.hash = func(key K, _ uint64) uint64 {
		s := fmt.Sprint(key)
		return uint64(s[len(s)-1]) * (1<<32 + 1) // in the low bits of either half
	}
	m.count.Label("count")
	m.entries.Label("map")
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Label(fmt.Sprintf("lock %d", i))
		s.mu.Guards(s.digest)
	}
}

// digest is that of the order as a set: how it lies in memory makes no difference.
func (s *shard[K, V]) digest() uint64 {
	sum := interleave.Hash(s.next)
	for _, e := range s.order.slots() {
		sum += interleave.Hash(e)
	}
	return sum
}

func (o *order[K]) slots() []slot[K] {
	slots := append([]slot[K](nil), o.heap...)
	for range o.run.n { // once around
		s := o.run.pop()
		o.run.push(s)
		slots = append(slots, s)
	}
	return slots
}

// Bounded implements subject.Limiter.
func (m *Map[K, V]) Bounded() error {
	keys, places := m.entries.Len(), int(m.count.Load())
	if keys > places || places > int(m.max) {
		return fmt.Errorf("%d keys, %d places taken of %d", keys, places, m.max)
	}
	return nil
}

// Agrees implements subject.Limiter.
func (m *Map[K, V]) Agrees(undone bool) error {
	inOrder := make(map[K]int)
	slots := 0
	for i := range m.shards {
		for _, e := range m.shards[i].order.slots() {
			inOrder[e.key]++
			slots++
			if v, ok := m.entries.Load(e.key); ok && !undone {
				if stamp, _ := m.values.Stamp(v); stamp < e.stamp {
					return fmt.Errorf("the order has %v at %d, above %d", e.key, e.stamp, stamp)
				}
			}
		}
	}
	keys := 0
	for k, n := range inOrder {
		if _, ok := m.entries.Load(k); ok && n == 1 {
			keys++
		}
	}
	if n := m.entries.Len(); n != keys || n != slots || n != int(m.count.Load()) {
		return fmt.Errorf("%d keys, %d counted, %d of them among %d in the order",
			n, m.count.Load(), keys, slots)
	}
	return nil
}
