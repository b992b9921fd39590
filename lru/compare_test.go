package lru

import (
	"slices"
	"testing"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// trackedValue is a value with the stamp that the table last read.
type trackedValue struct {
	stamped
	lastRead uint64
	final    bool
}

// tracker implements Values. It records the keys that are retired, and counts the stale stamps
// that the table corrects.
type tracker struct {
	retired []int
	stale   int
}

func (v *tracker) Stamp(i *trackedValue) (stamp, state uint64, final bool) {
	if i.lastRead != i.stamp {
		v.stale++
		i.lastRead = i.stamp
	}
	return i.stamp, i.stamp, i.final
}

func (v *tracker) Retire(i *trackedValue, _, state, _ uint64) bool {
	v.retired = append(v.retired, i.key)
	return state == i.stamp
}

// stats counts the outcomes that a schedule reached.
type stats struct {
	evicted, dropped, refused, full, corrected, inexact int
}

func (s *stats) add(o stats) {
	s.evicted += o.evicted
	s.dropped += o.dropped
	s.refused += o.refused
	s.full += o.full
	s.corrected += o.corrected
	s.inexact += o.inexact
}

// maxStale is the most stale stamps with which an insert evicts exactly.
const maxStale = 16

// comparison is a table and the references that it is compared with after every step.
type comparison struct {
	*testing.T
	stats
	table      Map[int, trackedValue]
	values     tracker
	exact      exactMap
	lru        *simplelru.LRU[int, struct{}] // nil unless a stamp is the time of the last use
	lruEvicted []int
	now        uint64
	age        uint64 // at which a value is idle, or 0 for never
}

func newComparison(t *testing.T, bound int, refuse bool, age uint64, withLRU bool) *comparison {
	c := &comparison{T: t, exact: exactMap{max: bound, refuse: refuse}, age: age}
	c.table.Init(bound, refuse, &c.values)
	if withLRU {
		c.lru, _ = simplelru.NewLRU(bound, func(key int, _ struct{}) {
			c.lruEvicted = append(c.lruEvicted, key)
		})
	}
	return c
}

func (c *comparison) has(key int) bool { return c.exact.find(key) != nil }

// touch uses key if the table has it.
func (c *comparison) touch(key int, stamp uint64) {
	if v := c.table.Load(key); v != nil {
		v.stamp = max(v.stamp, stamp)
		c.exact.find(key).stamp = v.stamp
	}
	if c.lru != nil {
		c.lru.Get(key)
	}
}

// insert inserts key. If the table corrects at most maxStale stamps, it must do exactly what the
// references do. Otherwise the references repeat what the table did.
func (c *comparison) insert(key int, stamp uint64) {
	e := stamped{key, stamp}
	idle := c.now - min(c.now, c.age)
	if c.age == 0 {
		idle = 0
	}
	c.values = tracker{}
	_, at := c.table.Recent(key)
	_, until, outcome := c.table.Insert(key, at, c.now, idle, 0, func(v *trackedValue) uint64 {
		*v = trackedValue{stamped: e, lastRead: stamp}
		return stamp
	})
	evicted, isExact := c.values.retired, c.values.stale <= maxStale
	c.corrected += c.values.stale
	if isExact {
		wantEvicted, wantUntil, want := c.exact.insert(e, c.now, idle)
		if outcome != want || until != wantUntil || !slices.Equal(evicted, wantEvicted) {
			c.Fatalf("key %d: outcome %d until %d, evicted %v; want %d until %d, %v",
				key, outcome, until, evicted, want, wantUntil, wantEvicted)
		}
	} else {
		c.inexact++
		c.repeat(e, evicted, outcome)
	}
	if c.lru != nil && outcome == Inserted {
		c.lruEvicted = nil
		if !isExact {
			for _, key := range evicted {
				c.lru.Remove(key)
			}
		}
		c.lru.Add(key, struct{}{})
		if !slices.Equal(evicted, c.lruEvicted) {
			c.Fatalf("key %d: evicted %v, golang-lru evicted %v", key, evicted, c.lruEvicted)
		}
	}
	switch {
	case outcome == Refused:
		c.refused++
	case c.table.Len() < c.exact.max:
		c.dropped += len(evicted)
	default:
		c.evicted += len(evicted)
	}
}

// repeat makes the exact map do what the table did in an insert that need not be exact.
func (c *comparison) repeat(e stamped, evicted []int, outcome Outcome) {
	for _, key := range evicted {
		if x := c.exact.find(key); x == nil || c.exact.refuse && x.stamp > c.now {
			c.Fatalf("key %d: evicted %d at %d, which must stay: %+v", e.key, key, c.now, x)
		}
		c.exact.remove(key)
	}
	switch {
	case outcome == Inserted:
		c.exact.entries = append(c.exact.entries, e)
	case outcome != Refused || !c.exact.refuse || len(c.exact.entries) < c.exact.max:
		c.Fatalf("key %d: outcome %d with %d keys", e.key, outcome, len(c.exact.entries))
	}
}

// full compares the result of Refuses.
func (c *comparison) full() {
	c.values = tracker{}
	until, full := c.table.Refuses(c.now)
	want := c.exact.refuse && len(c.exact.entries) == c.exact.max && c.exact.least().stamp > c.now
	if c.values.stale <= maxStale && (full != want || full && until != c.exact.least().stamp) {
		c.Fatalf("Refuses = %d, %v, want %v", until, full, want)
	}
	if full {
		c.stats.full++
	}
}

// replace replaces key's value by one of the same stamp, if the table has key.
func (c *comparison) replace(key int) {
	if old := c.table.Load(key); old != nil {
		next := *old
		old.final = true
		if c.table.Replace(key, old, 0, func(v *trackedValue) { *v = next }) == nil {
			c.Fatalf("key %d was not replaced", key)
		}
	}
}

// compare fails the test unless the table and its references have the same keys.
func (c *comparison) compare() {
	n := len(c.exact.entries)
	if err := c.table.verify(); err != nil {
		c.Fatal(err)
	}
	if got := c.table.Len(); got != n || got > c.exact.max {
		c.Fatalf("%d keys, want %d", got, n)
	}
	for _, e := range c.exact.entries {
		if v := c.table.Load(e.key); v == nil || v.stamped != e {
			c.Fatalf("%+v is not in the table", e)
		}
		if c.lru != nil && !c.lru.Contains(e.key) {
			c.Fatalf("%+v is not in golang-lru", e)
		}
	}
	if c.lru != nil && c.lru.Len() != n {
		c.Fatalf("%d keys in golang-lru, want %d", c.lru.Len(), n)
	}
}
