// Package lru is a bounded concurrent map. Look-ups are lock-free and change
// nothing; inserting and removing keys takes one lock, for which no look-up waits.
//
// Recency lives in the values, not in the structure: each value reports a stamp,
// and the table evicts the one with the least. With the time of the last access
// as the stamp that is LRU; another stamp gives another order. There is one order
// for all keys, on the stamps as last seen. A value whose stamp has moved on since
// is found out, and sunk to its new place, when it comes to the top.
//
// The keys are spread over many small concurrent maps. One of them at a time is
// replaced by larger ones, or by a fresh one, while look-ups go on in it: so no
// insert copies the whole table.
package lru

import (
	"math"
	"sync"
	"sync/atomic"
)

// idleDrops is how many idle values an insert drops. Each key is dropped but once, so on
// average that is less than one; but when many have gone idle at once, the table shrinks
// by fifteen with each key that comes.
const idleDrops = 16

// Values is what the table needs to know of its values. The methods are called
// concurrently, some of them under locks: they must not call the table, nor panic.
type Values[V any] interface {
	// Stamp returns v's rank in the order of eviction, least first, and the state of v
	// that it was read from. Of a value that may have been replaced final is true: from
	// then on it changes no more, unless it is retired. A value whose stamp decreases
	// may be evicted later than its turn.
	Stamp(v *V) (stamp, state uint64, final bool)
	// Retire ends v for good if its state is still the one given, and reports whether
	// it did. now is as in Insert.
	Retire(v *V, state, now uint64) bool
}

// Map is a map of at most a given number of keys. Init makes it ready to use; it must
// not be copied.
//
// A value lies in front of its key, in memory of the map. K must not contain
// interfaces, whose values cannot be copied, nor V pointers. Besides its value a key
// takes about 75 bytes and its own size: there is no bound on how long a key may be.
type Map[K comparable, V any] struct {
	table  table[K, V]
	values Values[V]
	refuse bool
	until  atomic.Uint64 // if refuse: a stamp that none was below when the map was full, or 0

	mu    sync.Mutex // of those who insert and remove keys
	order order[V]
	max   int
}

// Init makes m an empty map of at most max keys, max ≥ 1. With refuse, a value whose
// stamp is above now is never evicted: Insert refuses the new key instead.
//
// Init exists so that a Map can be embedded by value, which spares a look-up one
// dereference. It panics if K or V is not as the documentation of Map demands.
func (m *Map[K, V]) Init(max int, refuse bool, values Values[V]) {
	m.table.init(max)
	m.values = values
	m.refuse = refuse
	m.max = max
}

// Load returns the value of key, or nil. It takes no lock and writes nothing.
func (m *Map[K, V]) Load(key K) *V { return m.table.load(key) }

// Len returns the number of keys, never more than the bound.
func (m *Map[K, V]) Len() (n int) {
	m.Pause(func(keys int) { n = keys })
	return n
}

// Pause calls f with the number of keys while none is inserted, evicted or removed.
func (m *Map[K, V]) Pause(f func(keys int)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.table.keys)
}

// Full reports whether Insert would refuse a new key at now, and if so, the least stamp: the
// now at which room can be made. It never waits: while another caller has the lock, it goes
// by what the last insert saw, which may be less.
func (m *Map[K, V]) Full(now uint64) (until uint64, full bool) {
	if until = m.until.Load(); until > 0 && m.mu.TryLock() {
		defer m.mu.Unlock()
		if m.table.keys < m.max { // since just now
			return 0, false
		}
		b := budget{certain: maxLooks, atStake: maxLooksAtStake}
		c := m.least(now, &b)
		m.order.put(c.slot)
		m.note()
		until = c.stamp
	}
	return until, until > now
}

// Outcome is what became of an Insert.
type Outcome int

// The outcomes of an Insert.
const (
	Inserted Outcome = iota
	Found            // the key was in the map already
	Refused          // nothing could be evicted before the instant returned
)

// Insert adds a copy of key, unless it is there already, and a value that set is given to
// make ready. To make room it evicts the value with the least stamp; before that, it
// drops up to 16 values with stamps at or below idle. A value whose stamp is at most now
// has nothing to lose: Insert looks further for one before it evicts another. now is also
// passed on to Retire.
//
// All this, set included, happens under the lock. If the outcome is Refused, until is
// the least stamp: the now at which room can be made. Insert panics if key is not equal to
// itself, like a NaN.
func (m *Map[K, V]) Insert(
	key K, now, idle uint64, set func(*V),
) (v *V, until uint64, outcome Outcome) {
	if key != key { //nolint:gocritic // that is what a NaN is known by
		panic("lru: a key that is not equal to itself")
	}
	if !m.refuse {
		v = m.table.make(key) // while others have the lock
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	hash := m.table.hasher.hash(key)
	found, at := m.table.probe(hash, key)
	if found != nil {
		return nil, 0, Found
	}
	m.dropIdle(now, idle)
	if m.table.keys == m.max {
		if least, ok := m.makeRoom(now); !ok {
			return nil, least, Refused
		}
	}
	if v == nil {
		v = m.table.make(key)
	}
	set(v)
	stamp, _, _ := m.values.Stamp(v)
	m.table.store(hash, at, v)
	m.order.push(stamp, v)
	m.note()
	return v, 0, Inserted
}

func (m *Map[K, V]) dropIdle(now, idle uint64) {
	b := budget{certain: maxLooks, atStake: maxLooks}
	for i := 0; i < idleDrops && m.order.len() > 0 && m.order.first().stamp <= idle; i++ {
		if _, ok := m.evict(idle, now, &b); !ok {
			break
		}
	}
}

// makeRoom evicts the value with the least stamp, or returns that stamp.
func (m *Map[K, V]) makeRoom(now uint64) (least uint64, ok bool) {
	limit := uint64(math.MaxUint64)
	if m.refuse {
		limit = now
	}
	b := budget{certain: maxLooks, atStake: maxLooksAtStake}
	if least, ok = m.evict(limit, now, &b); !ok {
		m.note()
	}
	return least, ok
}

// note makes known what Full returns.
func (m *Map[K, V]) note() {
	switch {
	case !m.refuse:
	case m.table.keys < m.max:
		m.until.Store(0)
	default:
		m.until.Store(m.order.first().stamp)
	}
}

// Replace puts a copy of old, which set is given to make ready, in the place of old if
// old still is the value of key. It returns the copy, or nil if it was not put there.
// Several callers may do so at once; only one of them succeeds. It takes no lock but, for
// a few instructions, that of a bucket of a small map.
func (m *Map[K, V]) Replace(key K, old *V, set func(*V)) *V {
	next := m.table.make(key)
	set(next)
	if !m.table.replace(key, old, next) {
		return nil
	}
	return next
}

// Remove removes key. retire is called with its value, which it must end whatever
// its state; if it panics, so does Remove, and the key stays. The search for its slot takes
// time linear in the number of keys, in which no key is inserted.
func (m *Map[K, V]) Remove(key K, retire func(v *V)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse {
		m.until.Store(0) // from when the key is gone, not later
		defer m.note()
	}
	var failure any
	v := m.table.remove(key, func(v *V) (retired bool) {
		defer func() { failure = recover() }() // for there is a lock to let go of
		if m.table.has(v, key) {
			retire(v)
			retired = true
		}
		return retired
	})
	if failure != nil {
		panic(failure)
	}
	if v == nil {
		return
	}
	if !m.order.remove(func(u *V) bool { return u == v }) {
		// v is a successor, and the slot has one of its predecessors.
		m.order.remove(func(u *V) bool { return m.table.has(u, key) })
	}
}
