// Package lru is a bounded concurrent map. Look-ups are lock-free and change
// nothing; only inserting and removing keys locks, and only a shard.
//
// Recency lives in the values, not in the structure: each value reports a stamp,
// and the table evicts the one with the least. With the time of the last access
// as the stamp that is LRU; another stamp gives another order. The order is a heap
// per shard on the stamps as last seen. A value whose stamp has moved on since is
// found out, and sunk to its new place, when it comes to the top.
package lru

import (
	"hash/maphash"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"
)

const (
	// maxFixes bounds the stale stamps that one insert corrects, and so what one
	// insert can cost: so many to drop idle values, and so many to make room. After
	// that many it evicts the best it has seen.
	maxFixes = 16

	// idleDrops is how many idle values an insert drops. It is above one so that
	// the table shrinks while keys come in slower than they go idle.
	idleDrops = 2

	// keysPerShard is the least share of the bound that a shard is given: below it a
	// single lock and one exact order for all keys are worth more.
	keysPerShard = 4096
)

// Values is what the table needs to know of its values. The methods are called
// concurrently and must not call the table.
type Values[V any] interface {
	// Stamp returns v's place in the order of eviction, least first, and the
	// state of v that it was read from. A value whose stamp decreases may be
	// evicted later than its turn.
	Stamp(v V) (stamp, state uint64)
	// Retire ends v for good if its state is still the one given, and says
	// whether it did. now is as in Insert.
	Retire(v V, state, now uint64) bool
}

// Map is a map of at most a given number of keys. Init makes it ready to use; it must
// not be copied.
type Map[K comparable, V comparable] struct {
	entries *xsync.MapOf[K, V]
	values  Values[V]
	keep    bool
	max     int64
	count   atomic.Int64                    // places taken, never above max
	hash    func(key K, seed uint64) uint64 // for the shards
	shards  []shard[K, V]
}

// shard orders the keys whose hash falls to it. Its lock is held by whoever
// inserts or removes one of them.
type shard[K comparable, V comparable] struct {
	mu    sync.Mutex
	order order[K]
	next  uint64   // sequence number of the next insert
	_     [32]byte // to two cache lines
}

// Init makes m an empty map of at most max keys, max ≥ 1. With keep, a value whose
// stamp is above now is never evicted: Insert refuses the new key instead.
//
// It is a method, rather than a function that returns a map, for the sake of those who
// keep the map in a structure of theirs: a pointer less to follow on every look-up.
func (m *Map[K, V]) Init(max int, keep bool, values Values[V]) {
	shards := 1
	if !keep { // who may be refused deserves an answer from all keys, not from a share
		// As many as there are processors to insert at a time. More would scatter what
		// an evicted key has in memory: in a flood of new keys, 16 shards on 2
		// processors took 1.4 times as long as 2.
		shards = 1 << bits.Len(uint(min(runtime.GOMAXPROCS(0), max/keysPerShard))/2)
	}
	m.init(max, keep, values, shards)
}

func (m *Map[K, V]) init(max int, keep bool, values Values[V], shards int) {
	m.values = values
	m.keep = keep
	m.max = int64(max)
	m.shards = make([]shard[K, V], shards)
	if m.hash = hasher[K](); m.hash != nil {
		m.entries = xsync.NewMapOfWithHasher[K, V](m.hash)
		return
	}
	m.entries = xsync.NewMapOf[K, V]()
	s := maphash.MakeSeed()
	m.hash = func(key K, seed uint64) uint64 { return maphash.Comparable(s, key) ^ seed }
}

// Load returns the value of key. It takes no lock and writes nothing.
func (m *Map[K, V]) Load(key K) (V, bool) { return m.entries.Load(key) }

// Len returns the number of keys, never more than the bound.
func (m *Map[K, V]) Len() int { return int(m.count.Load()) }

// Outcome is what became of an Insert.
type Outcome int

// The outcomes of an Insert.
const (
	Inserted Outcome = iota
	Found            // the key was in the map already
	Refused          // nothing could be evicted before the instant returned
)

// Insert adds key, unless it is there already, with the value that create returns and
// the key that it returns, a copy if the caller's memory must not be kept. To make room
// it evicts the value with the least stamp; before that, it drops up to two values with
// stamps at or below idle. now is passed on to Retire.
//
// All this, create included, happens under the lock of the key's shard, except that a
// shard without keys makes room in another, under the lock of that one. If the outcome is
// Refused, until is the least stamp: the now at which room can be made.
func (m *Map[K, V]) Insert(
	key K, now, idle uint64, create func() (K, V),
) (until uint64, outcome Outcome) {
	s := m.shard(key)
	for {
		until, outcome, empty := m.insert(s, key, now, idle, create)
		if !empty {
			return until, outcome
		}
		// All places are taken, and none of them by this shard: free one elsewhere.
		for i := range m.shards {
			if m.evictFrom(&m.shards[i], now) {
				break
			}
		}
	}
}

func (m *Map[K, V]) insert(
	s *shard[K, V], key K, now, idle uint64, create func() (K, V),
) (until uint64, outcome Outcome, empty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := m.entries.Load(key); ok {
		return 0, Found, false
	}
	fixes := maxFixes
	for i := 0; i < idleDrops && s.order.len() > 0 && s.order.first().stamp <= idle; i++ {
		if _, ok := m.evict(s, idle, now, &fixes); ok {
			m.count.Add(-1)
		}
	}
	if !m.reserve() {
		if s.order.len() == 0 {
			return 0, Refused, true
		}
		fixes = maxFixes // the idle ones may have used them up
		if until, ok := m.evict(s, m.evictable(now), now, &fixes); !ok {
			return until, Refused, false
		}
	}
	key, v := create()
	stamp, _ := m.values.Stamp(v)
	m.entries.Store(key, v)
	s.order.push(slot[K]{stamp, s.next, key})
	s.next++
	return 0, Inserted, false
}

// Room returns what Insert would, without evicting or inserting anything. It waits for an
// insert that is under way, so as not to see one key gone and the other not there yet.
func (m *Map[K, V]) Room(key K, now uint64) (until uint64, outcome Outcome) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := m.entries.Load(key); ok {
		return 0, Found
	}
	if !m.keep || m.count.Load() < m.max {
		return 0, Inserted
	}
	fixes := maxFixes
	least := m.least(s, &fixes)
	s.order.push(least)
	if least.stamp > now {
		return least.stamp, Refused
	}
	return 0, Inserted
}

// Replace puts next, with a copy of its key, in the place of old if old still is the
// value of key, and says whether it did. Several callers may do so at once; only one of
// them succeeds.
func (m *Map[K, V]) Replace(key K, old, next V) (replaced bool) {
	m.entries.Compute(key, func(v V, ok bool) (V, bool) {
		if replaced = ok && v == old; replaced {
			return next, false
		}
		return v, !ok
	})
	return replaced
}

// Remove removes key. retire is called with its value, which it must end whatever
// its state. The search for the key's place in the order takes time linear in the
// size of the shard.
func (m *Map[K, V]) Remove(key K, retire func(v V)) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	m.entries.Compute(key, func(v V, ok bool) (V, bool) {
		if found = ok; found {
			retire(v)
		}
		return v, true
	})
	if found {
		s.order.remove(key)
		m.count.Add(-1)
	}
}

func (m *Map[K, V]) shard(key K) *shard[K, V] {
	if len(m.shards) == 1 {
		return &m.shards[0]
	}
	return &m.shards[m.hash(key, 0)>>32&uint64(len(m.shards)-1)]
}

// reserve takes a place if one is free.
func (m *Map[K, V]) reserve() bool {
	for {
		n := m.count.Load()
		if n >= m.max {
			return false
		}
		if m.count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// evictable is the highest stamp that may be evicted to make room.
func (m *Map[K, V]) evictable(now uint64) uint64 {
	if m.keep {
		return now
	}
	return math.MaxUint64
}

// evictFrom frees a place of s, if it has one that may go.
func (m *Map[K, V]) evictFrom(s *shard[K, V], now uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order.len() == 0 {
		return false
	}
	fixes := maxFixes
	_, ok := m.evict(s, m.evictable(now), now, &fixes)
	if ok {
		m.count.Add(-1)
	}
	return ok
}
