package lru

import (
	"slices"
	"testing"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// tracked is a value that knows what stamp the table believes it has.
type tracked struct {
	stamped
	believed uint64
	final    bool
}

// tracker are Values that note which keys are retired, and how many stale stamps the
// table meets.
type tracker struct {
	gone []int
	met  int
}

func (v *tracker) Stamp(i *tracked) (stamp, state uint64, final bool) {
	if i.believed != i.stamp {
		v.met++
		i.believed = i.stamp
	}
	return i.stamp, i.stamp, i.final
}

func (v *tracker) Retire(i *tracked, state, _ uint64) bool {
	v.gone = append(v.gone, i.key)
	return state == i.stamp
}

// stats is what a schedule reached.
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

// maxStale is how many stale stamps an insert may meet and still evict exactly.
const maxStale = 16

// duel is a table and what it is compared to, after every step.
type duel struct {
	*testing.T
	stats
	table   Map[int, tracked]
	values  tracker
	exact   exact
	lru     *simplelru.LRU[int, struct{}] // only with the time of the last use as the stamp
	lruGone []int
	now     uint64
	age     uint64 // from which on a value is idle, 0 for never
}

func newDuel(t *testing.T, bound int, refuse bool, age uint64, leastRecentlyUsed bool) *duel {
	d := &duel{T: t, exact: exact{max: bound, refuse: refuse}, age: age}
	d.table.Init(bound, refuse, &d.values)
	if leastRecentlyUsed {
		d.lru, _ = simplelru.NewLRU(bound, func(key int, _ struct{}) {
			d.lruGone = append(d.lruGone, key)
		})
	}
	return d
}

func (d *duel) has(key int) bool { return d.exact.find(key) != nil }

// touch uses key, if it is there.
func (d *duel) touch(key int, stamp uint64) {
	if v := d.table.Load(key); v != nil {
		v.stamp = max(v.stamp, stamp)
		d.exact.find(key).stamp = v.stamp
	}
	if d.lru != nil {
		d.lru.Get(key)
	}
}

// insert inserts key. If the table meets at most maxStale stale stamps it must do exactly
// what the references do. If it meets more, they follow what the table did.
func (d *duel) insert(key int, stamp uint64) {
	e := stamped{key, stamp}
	idle := d.now - min(d.now, d.age)
	if d.age == 0 {
		idle = 0
	}
	d.values = tracker{}
	_, until, outcome := d.table.Insert(key, d.now, idle, func(v *tracked) {
		*v = tracked{stamped: e, believed: stamp}
	})
	gone, isExact := d.values.gone, d.values.met <= maxStale
	d.corrected += d.values.met
	if isExact {
		goes, comes, o := d.exact.insert(e, d.now, idle)
		if outcome != o || until != comes || !slices.Equal(gone, goes) {
			d.Fatalf("key %d: outcome %d until %d, evicted %v; want %d until %d, %v",
				key, outcome, until, gone, o, comes, goes)
		}
	} else {
		d.inexact++
		d.follow(e, gone, outcome)
	}
	if d.lru != nil && outcome == Inserted {
		d.lruGone = nil
		if !isExact {
			for _, key := range gone {
				d.lru.Remove(key)
			}
		}
		d.lru.Add(key, struct{}{})
		if !slices.Equal(gone, d.lruGone) {
			d.Fatalf("key %d: evicted %v, want %v as golang-lru", key, gone, d.lruGone)
		}
	}
	switch {
	case outcome == Refused:
		d.refused++
	case d.table.Len() < d.exact.max:
		d.dropped += len(gone)
	default:
		d.evicted += len(gone)
	}
}

// follow brings exact to where the table is after an insert that need not be exact.
func (d *duel) follow(e stamped, gone []int, outcome Outcome) {
	for _, key := range gone {
		if x := d.exact.find(key); x == nil || d.exact.refuse && x.stamp > d.now {
			d.Fatalf("key %d: evicted %d, which was %+v at %d", e.key, key, x, d.now)
		}
		d.exact.remove(key)
	}
	switch {
	case outcome == Inserted:
		d.exact.entries = append(d.exact.entries, e)
	case outcome != Refused || !d.exact.refuse || len(d.exact.entries) < d.exact.max:
		d.Fatalf("key %d: outcome %d with %d keys", e.key, outcome, len(d.exact.entries))
	}
}

// full asks whether a new key would be refused.
func (d *duel) full() {
	d.values = tracker{}
	until, full := d.table.Full(d.now)
	want := d.exact.refuse && len(d.exact.entries) == d.exact.max && d.exact.least().stamp > d.now
	if d.values.met <= maxStale && (full != want || full && until != d.exact.least().stamp) {
		d.Fatalf("full: %v until %d, want %v", full, until, want)
	}
	if full {
		d.stats.full++
	}
}

// remove removes key, if it is there.
func (d *duel) remove(key int) {
	removed := false
	d.table.Remove(key, func(v *tracked) { removed = v.key == key })
	if removed != d.has(key) {
		d.Fatalf("key %d: removed %v, want %v", key, removed, !removed)
	}
	d.exact.remove(key)
	if d.lru != nil {
		d.lru.Remove(key)
	}
}

// replace puts another value of the same stamp in the place of key's.
func (d *duel) replace(key int) {
	if old := d.table.Load(key); old != nil {
		next := *old
		old.final = true
		if d.table.Replace(key, old, func(v *tracked) { *v = next }) == nil {
			d.Fatalf("key %d was not replaced", key)
		}
	}
}

// agree checks that all have the same keys.
func (d *duel) agree() {
	n := len(d.exact.entries)
	if err := d.table.whole(); err != nil {
		d.Fatal(err)
	}
	if got := d.table.Len(); got != n || got > d.exact.max {
		d.Fatalf("%d keys, want %d", got, n)
	}
	for _, e := range d.exact.entries {
		if v := d.table.Load(e.key); v == nil || v.stamped != e || d.lru != nil && !d.lru.Contains(e.key) {
			d.Fatalf("%+v is not there, or not in golang-lru", e)
		}
	}
	if d.lru != nil && d.lru.Len() != n {
		d.Fatalf("%d keys in golang-lru, want %d", d.lru.Len(), n)
	}
}
