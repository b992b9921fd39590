// Package lru is a bounded concurrent map that evicts by stamp. Look-ups take no lock and write
// nothing. Insert, Len, Pause and Values take the lock of the map, and Refuses takes it
// if it is free. Load and Replace never wait for it.
//
// Each value has a stamp, a number that says how soon the value may go. The map evicts the value
// with the least stamp. If the stamp is the time of the last access, the map is an LRU cache. One
// order holds all keys by the stamps that it last read. A value whose stamp has grown since is
// moved back when it comes to the front.
//
// The keys are spread over many small concurrent maps. When one of them is full, its keys are
// moved to other maps, while look-ups continue. So no insert copies the whole table. DESIGN.md §4
// has the reasons and the proofs.
package lru

import (
	"math"
	"sync"
	"sync/atomic"
)

// idleDrops is the most idle values that one insert drops. So after a flood has gone idle, each
// new key shrinks the table by up to fifteen keys.
const idleDrops = 16

// Values ranks and retires the values of a Map. The map calls the methods under its lock, one at
// a time, while callers use the values. The methods must neither call the map nor panic.
type Values[V any] interface {
	// Stamp returns the stamp of v, and the state from which it read the stamp. The map only hands
	// the state to Retire. The least stamp is evicted first. A value whose stamp decreases may be
	// evicted too late. final reports that v may have been replaced. A final value changes no
	// more, except when it is retired.
	Stamp(v *V) (stamp, state uint64, final bool)
	// Retire ends v for good if its state is still the given one, and reports whether it did. Stamp
	// has returned the stamp and the state. now is as in Insert.
	Retire(v *V, stamp, state, now uint64) bool
}

// Map is a map of a bounded number of keys. Init makes it ready for use. It must not be copied.
//
// The map allocates a value and its key together; see node. K must not contain interfaces, whose
// values cannot be copied. V must not contain pointers, because the allocation with a string key
// has none. A key takes about 75 bytes, its own size, and the size of its value. The map does not
// bound the length of a key.
type Map[K comparable, V any] struct {
	front       front[V]
	table       table[K, V]
	values      Values[V]
	refuseNew   bool
	refuseUntil atomic.Uint64 // see publish

	mu sync.Mutex // guards order, max and table, except its look-ups and replacements

	// inserts is one more than the number of inserts. It grows when the key is in the table: see "A
	// new key is looked up once" in DESIGN.md §4.
	inserts atomic.Uint64

	order order[V]
	max   int
}

// Init makes m an empty map of at most max keys, max ≥ 1. With refuseNew, a value whose stamp
// is above now is never evicted: Insert refuses the new key instead.
//
// Init exists so that a Map can be embedded by value, which spares a look-up one dereference. It
// panics if K contains an interface or V a pointer.
func (m *Map[K, V]) Init(max int, refuseNew bool, values Values[V]) {
	m.front.resize(leastPairs)
	m.table.init(max)
	m.values = values
	m.refuseNew = refuseNew
	m.max = max
	m.inserts.Store(1)
}

// Load returns the value of key, or nil. It takes no lock and writes nothing.
func (m *Map[K, V]) Load(key K) *V {
	v, _ := m.table.probe(m.table.hasher.hash(key), key)
	return v
}

// Len returns the number of keys, never more than the bound.
func (m *Map[K, V]) Len() (n int) {
	m.Pause(func(keys int) { n = keys })
	return n
}

// Max returns the bound.
func (m *Map[K, V]) Max() int { return m.max }

// Pause calls f with the number of keys, under the lock. No key is inserted or evicted meanwhile.
// f must not call the map.
func (m *Map[K, V]) Pause(f func(keys int)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.table.keys)
}

// Refuses reports whether Insert would refuse a new key at now. If so, until is the least
// stamp: from then on there is room. Refuses never waits, but inserts may wait for it. While
// another goroutine holds the lock, Refuses answers from the stamp that was last published. Then
// until may be too low, or too high if a stamp has decreased, and Insert may decide otherwise.
func (m *Map[K, V]) Refuses(now uint64) (until uint64, refuses bool) {
	if until = m.refuseUntil.Load(); until > 0 && m.mu.TryLock() {
		defer m.mu.Unlock()
		if m.table.keys < m.max { // since the load
			return 0, false
		}
		b := budget{toImprove: maxLooksToImprove, toFind: maxLooksToFind}
		c := m.popLeast(now, &b)
		m.order.put(c.entry)
		m.publish()
		until = c.stamp
	}
	return until, until > now
}

// Outcome is the result of an Insert.
type Outcome int

// The outcomes of an Insert.
const (
	Inserted Outcome = iota
	Found            // the key is already in the map
	Refused          // the map is full, and no value may be evicted yet
)

// Insert adds a copy of key and a value that set initializes, unless the map has the key. at is the
// spot at which Recent has not found it, or the zero Spot. A tag other than 0 stands in front of
// the value, which must know whether it has one: see TagOf. Insert first drops up to 16 values
// whose stamp is at most idle. If the map is then full, it evicts the value with the least stamp,
// or refuses the key.
//
// now is the time of the call. A value whose stamp is at most now has nothing to lose. To find
// one, Insert corrects stale stamps. It stops once it has found one and made at least 16
// corrections, and in any case after 1,024. It passes now to Retire.
//
// set is called under the lock, and returns the stamp. v is nil unless the outcome is Inserted. If
// the outcome is Refused, until is the least stamp: from then on there is room. Insert panics if
// key does not equal itself, as a NaN does not.
func (m *Map[K, V]) Insert(
	key K, at Spot, now, idle, tag uint64, set func(*V) (stamp uint64),
) (v *V, until uint64, outcome Outcome) {
	if key != key { // only a NaN differs from itself
		panic("lru: the key does not equal itself")
	}
	hash := at.Hash
	if at.inserts == 0 {
		hash = m.table.hasher.hash(key) // before the lock is taken
	}
	if !m.refuseNew {
		v = m.table.newValue(key, tag)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	stored := hash
	if at.inserts != m.inserts.Load() {
		var found *V
		if found, stored = m.table.probe(hash, key); found != nil {
			return nil, 0, Found
		}
	}
	m.dropIdle(now, idle)
	if m.table.keys == m.max {
		limit := uint64(math.MaxUint64)
		if m.refuseNew {
			limit = now
		}
		b := budget{toImprove: maxLooksToImprove, toFind: maxLooksToFind}
		if least, ok := m.evict(limit, now, &b); !ok {
			m.publish()
			return nil, least, Refused
		}
	}
	if v == nil {
		v = m.table.newValue(key, tag)
	}
	stamp := set(v)
	m.table.store(hash, stored, v)
	m.front.fit(m.table.keys)
	m.order.put(entry[V]{stamp, m.inserts.Add(1), v})
	m.publish()
	return v, 0, Inserted
}

func (m *Map[K, V]) dropIdle(now, idle uint64) {
	b := budget{toImprove: maxLooksToImprove, toFind: maxLooksToImprove}
	for i := 0; i < idleDrops && m.order.len() > 0 && m.order.first().stamp <= idle; i++ {
		if m.refuseNew {
			m.refuseUntil.Store(0) // first, so that Refuses never refuses a key while there is room
		}
		if _, ok := m.evict(idle, now, &b); !ok {
			break
		}
	}
}

// publish sets refuseUntil for callers of Refuses that do not get the lock: to 0 if there is
// room, or else to the least stamp in the order. Without refuseNew it does nothing.
func (m *Map[K, V]) publish() {
	switch {
	case !m.refuseNew:
	case m.table.keys < m.max:
		m.refuseUntil.Store(0)
	default:
		m.refuseUntil.Store(m.order.first().stamp)
	}
}

// Replace replaces old by a new value for the same key, which set makes ready, if old is still
// the value of key. The tag is as in Insert. Replace returns the new value, or nil if old was
// replaced or evicted before. It takes one lock of a small map, for a few instructions. If old was
// in the front, the new value is. The map may keep the memory of old until Insert corrects stamps.
func (m *Map[K, V]) Replace(key K, old *V, tag uint64, set func(*V)) *V {
	next := m.table.newValue(key, tag)
	set(next)
	hash := m.table.hasher.hash(key)
	if !m.table.replace(hash, key, old, next) {
		return nil
	}
	m.front.follow(hash, old, next)
	return next
}

// Values returns the values of all keys that are in the map throughout the call, and of some of
// those that come or go meanwhile. It takes the lock once for each small map, so inserts wait for
// one small map at most. A value may be replaced at any time; KeyOf leads to the one that has
// taken its place.
func (m *Map[K, V]) Values() []*V {
	values := make([]*V, 0, m.Len())
	for slot := 0; slot < len(m.table.slots); {
		m.mu.Lock()
		s := m.table.spans[slot]
		m.table.slots[slot].Load().Range(func(_ uint64, v *V) bool {
			values = append(values, v)
			return true
		})
		slot = s.to
		m.mu.Unlock()
	}
	return values
}

// KeyOf returns the key of a value of the map, without a copy.
func (m *Map[K, V]) KeyOf(v *V) K { return m.table.keyOf(v) }
