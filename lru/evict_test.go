package lru

import (
	"testing"
)

func TestOneInsertLooksAtFewKeys(t *testing.T) {
	const keys = 5000
	c := newCache[int](keys, false, 1)
	for k := range keys {
		c.use(k)
	}
	for k := range keys { // every stamp in the order is stale now
		c.use(k)
	}
	for k := range 1000 {
		before := c.items.stamps.Load()
		c.use(keys + k)
		if n := c.items.stamps.Load() - before; n > maxFixes+3 {
			t.Fatalf("an insert looked at %d values, want at most %d", n, maxFixes+3)
		}
	}
}

// Dropping idle values and making room have a bound each.
func TestIdleValuesDoNotSpoilTheEviction(t *testing.T) {
	const keys = 40
	c := newCache[int](keys, false, 1)
	for k := range keys {
		c.use(k)
	}
	for k := range keys { // all were idle, and are no more; 17 is the most valuable
		v, _ := c.Load(k)
		v.used.Store(200 + uint64(k)%2)
	}
	v, _ := c.Load(17)
	v.used.Store(1000)
	before := c.items.stamps.Load()
	c.Insert(keys, 300, 100, with(keys, 300))
	if _, ok := c.Load(17); !ok {
		t.Error("the value with the highest stamp was evicted")
	}
	if n := c.items.stamps.Load() - before; n > 2*maxFixes+5 {
		t.Errorf("an insert looked at %d values, want at most %d", n, 2*maxFixes+5)
	}
}

// late are Values of which one is used just before it is retired.
type late struct {
	items
	calls int
}

func (v *late) Stamp(i *item) (stamp, state uint64) {
	if v.calls++; v.calls == 3 { // 1: the insert, 2: the order, 3: the eviction
		i.used.Store(100)
	}
	return v.items.Stamp(i)
}

func TestValueUsedAtTheLastMomentIsNotEvicted(t *testing.T) {
	var v late
	var m Map[string, *item]
	m.Init(1, true, &v)
	m.Insert("a", 0, 0, with("a", 10))
	if until, o := m.Insert("b", 20, 0, with("b", 20)); o != Refused || until != 100 {
		t.Errorf("%v until %d, want refused until 100", o, until)
	}
	if _, ok := m.Load("a"); !ok {
		t.Error("the value was evicted")
	}
}

func TestIdleValuesAreDropped(t *testing.T) {
	c := newCache[int](100, false, 1)
	for k := range 50 {
		c.use(k)
	}
	c.use(10) // no longer idle, though the order does not know it
	for i := range 20 {
		c.Insert(1000+i, 100, 40, with(1000+i, 100))
	}
	if n := c.Len(); n != 50+20-39 {
		t.Errorf("%d keys, want %d: the 39 with stamps up to 40 dropped", n, 50+20-39)
	}
	if _, ok := c.Load(10); !ok {
		t.Error("a key used since was dropped")
	}
}

func TestKeepRefusesUntilTheLeastStamp(t *testing.T) {
	c := newCache[int](3, true, 1)
	for k, stamp := range []uint64{30, 10, 20} {
		c.Insert(k, 0, 0, with(k, stamp))
	}
	v, _ := c.Load(1)
	v.used.Store(40)
	never := func() (int, *item) {
		t.Error("created a value for a key that was refused")
		return 9, nil
	}
	if until, o := c.Insert(9, 19, 0, never); o != Refused || until != 20 {
		t.Errorf("Insert at 19: %v until %d, want refused until 20", o, until)
	}
	if until, outcome := c.Room(9, 19); outcome != Refused || until != 20 {
		t.Errorf("Room at 19: %v until %d, want refused until 20", outcome, until)
	}
	if _, outcome := c.Room(9, 20); outcome != Inserted || c.Len() != 3 {
		t.Errorf("no room at 20, or it was made: %d keys", c.Len())
	}
	if _, o := c.Insert(9, 20, 0, with(9, 50)); o != Inserted {
		t.Errorf("Insert at 20: %v, want inserted", o)
	}
	if _, ok := c.Load(2); ok {
		t.Error("the key with the least stamp is still there")
	}
}

// used are Values that are used while they are looked at: before is called at each look.
type used struct {
	items
	before func(*item)
}

func (v *used) Stamp(i *item) (stamp, state uint64) {
	if v.before != nil {
		v.before(i)
	}
	return v.items.Stamp(i)
}

// The first value is looked at, used, and then the second is used and looked at. What the
// first one was is no longer the least of the two then, nor was it before.
func TestRefusalTellsAnInstantThatWasTheLeast(t *testing.T) {
	var values used
	var m Map[string, *item]
	m.init(2, true, &values, 1)
	m.Insert("a", 0, 0, with("a", 1))
	m.Insert("b", 0, 0, with("b", 5))
	a, _ := m.Load("a")
	b, _ := m.Load("b")
	a.used.Store(10)
	values.before = func(i *item) {
		if i == b && b.used.Load() == 5 {
			a.used.Store(30)
			b.used.Store(20)
		}
	}
	until, outcome := m.Insert("c", 4, 0, with("c", 4))
	if outcome != Refused || until != 20 {
		t.Errorf("%v until %d, want refused until 20", outcome, until)
	}
}

// Callers who use a key whenever an insert has looked at it do not keep the insert busy.
func TestOneInsertLooksAtFewKeysThatAreUsed(t *testing.T) {
	var values used
	var m Map[string, *item]
	m.init(2, true, &values, 1)
	m.Insert("a", 0, 0, with("a", 1))
	m.Insert("b", 0, 0, with("b", 1))
	looks := 0
	values.before = func(i *item) {
		i.used.Add(10)
		if looks++; looks > 3*maxFixes {
			t.Fatalf("an insert looks at more than %d values", 3*maxFixes)
		}
	}
	if _, outcome := m.Insert("c", 0, 0, with("c", 1)); outcome != Refused {
		t.Errorf("%v, want refused", outcome)
	}
}
