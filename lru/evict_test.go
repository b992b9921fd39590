package lru

import "testing"

// An insert looks at few values once it has one that has nothing to lose.
func TestOneInsertLooksAtFewKeys(t *testing.T) {
	const keys = 5000
	c := newCache[int](keys, false)
	for k := range keys {
		c.use(k)
	}
	for k := range keys { // every stamp in the order is stale now
		c.use(k)
	}
	for k := range 1000 {
		before := c.items.stamps.Load()
		c.use(keys + k)
		if n := c.items.stamps.Load() - before; n > maxLooks+3 {
			t.Fatalf("an insert looked at %d values, want at most %d", n, maxLooks+3)
		}
	}
}

// It looks at many before one goes that has something to lose, and does not look at them
// again the next time.
func TestOneInsertLooksAtManyKeysBeforeOneIsForgiven(t *testing.T) {
	const keys = 5000
	c := newCache[int](keys, false)
	for k := range keys {
		c.use(k)
	}
	for k := range keys {
		c.Load(k).used.Store(1_000_000 + uint64(k)) // far ahead
	}
	for i := range 4 {
		before := c.items.stamps.Load()
		c.use(keys + i)
		n := c.items.stamps.Load() - before
		if n > maxLooksAtStake+3 || n < maxLooksAtStake {
			t.Fatalf("insert %d looked at %d values, want %d", i, n, maxLooksAtStake)
		}
	}
}

// No value above now goes while there is one that is not, until more than 1,024 are used
// between two inserts.
func TestNoneIsForgivenWhileAnotherHasNothingToLose(t *testing.T) {
	const keys, ahead = 4000, 1_000_000
	for _, used := range []int{1, 17, 512, maxLooksAtStake, maxLooksAtStake + 1} {
		for _, refuse := range []bool{false, true} {
			c := newCache[int](keys, refuse)
			for k := range keys {
				c.use(k)
			}
			for k := range used { // the oldest, to which the order comes first
				c.Load(k).used.Store(ahead + uint64(k))
			}
			_, _, outcome := c.Insert(keys, keys, 0, with(ahead))
			forgiven := 0
			for k := range used {
				if c.Load(k) == nil {
					forgiven++
				}
			}
			if used <= maxLooksAtStake && (forgiven > 0 || outcome != Inserted) {
				t.Errorf("refuse %v: %d of %d that were used went, outcome %v",
					refuse, forgiven, used, outcome)
			}
			if used > maxLooksAtStake && !refuse && forgiven != 1 {
				t.Errorf("%d used: the bound on the work is not what it is said to be", used)
			}
			if err := c.whole(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Dropping idle values and making room have a bound each.
func TestIdleValuesDoNotSpoilTheEviction(t *testing.T) {
	const keys = 40
	c := newCache[int](keys, false)
	for k := range keys {
		c.use(k)
	}
	for k := range keys { // all were idle, and are no more; 17 is the most valuable
		c.Load(k).used.Store(200 + uint64(k)%2)
	}
	c.Load(17).used.Store(1000)
	c.Load(18).used.Store(250) // the first with nothing to lose that making room comes to
	before := c.items.stamps.Load()
	c.Insert(keys, 300, 100, with(300))
	if c.Load(17) == nil {
		t.Error("the value with the highest stamp was evicted")
	}
	if c.Load(18) == nil {
		t.Error("making room did not look beyond the first")
	}
	if n := c.items.stamps.Load() - before; n > 2*maxLooks+5 {
		t.Errorf("an insert looked at %d values, want at most %d", n, 2*maxLooks+5)
	}
}

// late are Values of which one is used just before it is retired.
type late struct{ items }

func (v *late) Retire(i *item, state, now uint64) bool {
	if i.used.Load() < 100 {
		i.used.Store(100)
	}
	return v.items.Retire(i, state, now)
}

func TestValueUsedAtTheLastMomentIsNotEvicted(t *testing.T) {
	var v late
	var m Map[string, item]
	m.Init(1, true, &v)
	m.Insert("a", 0, 0, with(10))
	if _, until, o := m.Insert("b", 20, 0, with(20)); o != Refused || until != 100 {
		t.Errorf("%v until %d, want refused until 100", o, until)
	}
	if m.Load("a") == nil {
		t.Error("the value was evicted")
	}
	if until, full := m.Full(50); !full || until != 100 {
		t.Errorf("full %v, until %d; want 100", full, until)
	}
}

func TestIdleValuesAreDropped(t *testing.T) {
	c := newCache[int](100, false)
	for k := range 50 {
		c.use(k)
	}
	c.Load(10).used.Store(60) // no longer idle, though the order does not know it
	c.Insert(1000, 100, 40, with(100))
	if n := c.Len(); n != 50+1-idleDrops {
		t.Errorf("%d keys, want %d: the first %d dropped", n, 50+1-idleDrops, idleDrops)
	}
	for i := range 20 {
		c.Insert(1001+i, 100, 40, with(100))
	}
	if n := c.Len(); n != 50+21-39 {
		t.Errorf("%d keys, want %d: the 39 with stamps up to 40 dropped", n, 50+21-39)
	}
	if c.Load(10) == nil {
		t.Error("a key used since was dropped")
	}
}

func TestRefusesUntilTheLeastStamp(t *testing.T) {
	c := newCache[int](3, true)
	full := func(until uint64) {
		t.Helper()
		if got, full := c.Full(0); full != (until > 0) || got != until {
			t.Errorf("full %v, until %d; want %d", full, got, until)
		}
		if _, full := c.Full(until); full {
			t.Errorf("full at %d", until)
		}
	}
	full(0)
	for k, stamp := range []uint64{30, 10, 20} {
		c.Insert(k, 0, 0, with(stamp))
	}
	full(10)
	c.Load(1).used.Store(40)
	never := func(*item) { t.Error("made a value ready for a key that was refused") }
	if _, until, o := c.Insert(9, 19, 0, never); o != Refused || until != 20 {
		t.Errorf("Insert at 19: %v until %d, want refused until 20", o, until)
	}
	full(20)
	if _, _, o := c.Insert(9, 20, 0, with(50)); o != Inserted {
		t.Errorf("Insert at 20: %v, want inserted", o)
	}
	full(30)
	if c.Load(2) != nil {
		t.Error("the key with the least stamp is still there")
	}
	c.Remove(0, func(*item) {})
	full(0)
}

// used are Values that are used while they are looked at: before is called at each look.
type used struct {
	items
	before func(*item)
}

func (v *used) Stamp(i *item) (stamp, state uint64, final bool) {
	if v.before != nil {
		v.before(i)
	}
	return v.items.Stamp(i)
}

// The first value is looked at, used, and then the second is used and looked at. What the
// first one was is no longer the least of the two then, nor was it before.
func TestRefusalNamesAnInstantThatWasTheLeast(t *testing.T) {
	var values used
	var m Map[string, item]
	m.Init(2, true, &values)
	m.Insert("a", 0, 0, with(1))
	m.Insert("b", 0, 0, with(5))
	a, b := m.Load("a"), m.Load("b")
	a.used.Store(10)
	values.before = func(i *item) {
		if i == b && b.used.Load() == 5 {
			a.used.Store(30)
			b.used.Store(20)
		}
	}
	_, until, outcome := m.Insert("c", 4, 0, with(4))
	if outcome != Refused || until != 20 {
		t.Errorf("%v until %d, want refused until 20", outcome, until)
	}
}

// Callers who use a key whenever an insert has looked at it do not keep the insert busy.
func TestOneInsertLooksAtFewKeysThatAreUsed(t *testing.T) {
	var values used
	var m Map[string, item]
	m.Init(2, true, &values)
	m.Insert("a", 0, 0, with(1))
	m.Insert("b", 0, 0, with(1))
	looks := 0
	values.before = func(i *item) {
		i.used.Add(10)
		if looks++; looks > 3*maxLooksAtStake {
			t.Fatalf("an insert looks at more than %d values", 3*maxLooksAtStake)
		}
	}
	if _, _, outcome := m.Insert("c", 0, 0, with(1)); outcome != Refused {
		t.Errorf("%v, want refused", outcome)
	}
}

// The order has a predecessor of the value, which is not what is evicted.
func TestSuccessorIsEvicted(t *testing.T) {
	c := newCache[string](2, false)
	c.use("a")
	c.use("b")
	for range 3 {
		if !c.replace("a") {
			t.Fatal("not replaced")
		}
	}
	a := c.Load("a")
	c.use("c")
	if c.Load("a") != nil || !a.dead.Load() {
		t.Errorf("a is there: %v; its last value is retired: %v", c.Load("a") != nil, a.dead.Load())
	}
	if err := c.whole(); err != nil {
		t.Error(err)
	}
}
