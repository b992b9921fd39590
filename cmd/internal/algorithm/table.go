package algorithm

import (
	"container/list"
	"unsafe"
)

// state is the state S of an algorithm for one key. The zero value is a new key.
type state[S any] interface {
	*S
	// take decides a request. The instants never step back.
	take(l *Limit, now, cost uint64) Result
	// idle reports whether the state decides as a new key from now on.
	idle(l *Limit, now uint64) bool
	// heap returns the bytes that the state has outside of S.
	heap() int
}

// table has a state for each of at most max keys. A new key in a full table takes the place of the
// key that was not used for the longest time.
type table[S any, P state[S]] struct {
	limit  *Limit
	max    int
	places map[string]*list.Element // each has an *entry[S]
	used   list.List                // the key used last is in front
	stats  Stats
}

type entry[S any] struct {
	key    string
	latest uint64 // instant
	state  S
}

func newTable[S any, P state[S]](l *Limit, maxKeys int) *table[S, P] {
	return &table[S, P]{limit: l, max: maxKeys, places: make(map[string]*list.Element)}
}

// Take implements Limiter.
func (t *table[S, P]) Take(key string, now, cost uint64) Result {
	place := t.places[key]
	if place == nil {
		place = t.add(key, now)
	} else {
		t.used.MoveToFront(place)
	}
	e := place.Value.(*entry[S])
	e.latest = max(e.latest, now)
	s := P(&e.state)
	before := s.heap()
	result := s.take(t.limit, e.latest, cost)
	result.Leaves = e.latest + uint64(result.Delay)
	after := s.heap()
	t.stats.Bytes += after - before
	t.stats.MostBytes = max(t.stats.MostBytes, size[S]()+after)
	return result
}

// add adds a new key, and removes another one if the table is full.
func (t *table[S, P]) add(key string, now uint64) *list.Element {
	if len(t.places) == t.max {
		last := t.used.Remove(t.used.Back()).(*entry[S])
		delete(t.places, last.key)
		s := P(&last.state)
		t.stats.Bytes -= size[S]() + s.heap()
		if !s.idle(t.limit, now) {
			t.stats.Forgotten++
		}
	}
	t.stats.Bytes += size[S]()
	place := t.used.PushFront(&entry[S]{key: key})
	t.places[key] = place
	return place
}

// Stats implements Limiter.
func (t *table[S, P]) Stats() Stats {
	t.stats.Keys = len(t.places)
	return t.stats
}

func size[S any]() int {
	var s S
	return int(unsafe.Sizeof(s))
}
