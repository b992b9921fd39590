package lru

import "testing"

// An insert corrects few stamps once it has found a value that has nothing to lose.
func TestInsertReadsFewStamps(t *testing.T) {
	const keys = 5000
	c := newCache[int](keys, false)
	for k := range keys {
		c.use(k)
	}
	for k := range keys { // makes every stamp in the order stale
		c.use(k)
	}
	for k := range 1000 {
		before := c.items.stamps.Load()
		c.use(keys + k)
		if n := c.items.stamps.Load() - before; n > maxLooksToImprove+3 {
			t.Fatalf("an insert read %d stamps, want at most %d", n, maxLooksToImprove+3)
		}
	}
}

// An insert corrects many stamps before it evicts a value that has something to lose. The next
// insert does not correct the same stamps again.
func TestInsertReadsManyStampsWhileAllValuesAreAtStake(t *testing.T) {
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
		if n > maxLooksToFind+3 || n < maxLooksToFind {
			t.Fatalf("insert %d read %d stamps, want %d", i, n, maxLooksToFind)
		}
	}
}

// A value whose stamp is above now is not evicted while another value's stamp is not, unless more
// than maxLooksToFind values were used between two inserts.
func TestValueWithNothingToLoseIsEvictedFirst(t *testing.T) {
	const keys, ahead = 4000, 1_000_000
	for _, used := range []int{1, 17, 512, maxLooksToFind, maxLooksToFind + 1} {
		for _, refuse := range []bool{false, true} {
			c := newCache[int](keys, refuse)
			for k := range keys {
				c.use(k)
			}
			for k := range used { // the oldest, which are first in the order
				c.Load(k).used.Store(ahead + uint64(k))
			}
			_, _, outcome := c.Insert(keys, Spot{}, keys, 0, 0, setStamp(ahead))
			evicted := 0 // of those that were used
			for k := range used {
				if c.Load(k) == nil {
					evicted++
				}
			}
			if used <= maxLooksToFind && (evicted > 0 || outcome != Inserted) {
				t.Errorf("refuse %v: %d of %d used values evicted, outcome %v, want none evicted",
					refuse, evicted, used, outcome)
			}
			if used > maxLooksToFind && !refuse && evicted != 1 {
				t.Errorf("%d of %d used values evicted, want 1: the budget is spent", evicted, used)
			}
			if err := c.verify(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The corrections that an insert makes before it finds a value that has nothing to lose count, too.
// After 16 it takes the first one.
func TestInsertTakesTheFirstValueAfterManyCorrections(t *testing.T) {
	const keys, atStake = 60, 20
	c := newCache[int](keys, false)
	for k := range keys {
		c.use(k)
	}
	for k := range keys {
		stamp := uint64(1_000_000 + k)
		if k >= atStake { // each is better than the one before
			stamp = uint64(200 - k)
		}
		c.Load(k).used.Store(stamp)
	}
	before := c.items.stamps.Load()
	now := c.Load(atStake).used.Load() // with a stamp of now, a value has nothing to lose
	c.Insert(keys, Spot{}, now, 0, 0, setStamp(300))
	if n := c.items.stamps.Load() - before; n > atStake+3 || c.Load(atStake) != nil {
		t.Errorf("an insert read %d stamps, want at most %d; the first value with nothing to lose is "+
			"in the map: %v", n, atStake+3, c.Load(atStake) != nil)
	}
}

// Dropping idle values and making room have separate budgets.
func TestDroppingIdleValuesLeavesTheBudgetForRoom(t *testing.T) {
	const keys = 40
	c := newCache[int](keys, false)
	for k := range keys {
		c.use(k)
	}
	for k := range keys { // the order still has them as idle
		c.Load(k).used.Store(200 + uint64(k)%2)
	}
	c.Load(17).used.Store(1000)
	c.Load(18).used.Store(250) // the first that making room finds with nothing to lose
	before := c.items.stamps.Load()
	c.Insert(keys, Spot{}, 300, 100, 0, setStamp(300))
	if c.Load(17) == nil {
		t.Error("the value with the highest stamp was evicted")
	}
	if c.Load(18) == nil {
		t.Error("making room did not look beyond the first value")
	}
	if n := c.items.stamps.Load() - before; n > 2*maxLooksToImprove+5 {
		t.Errorf("an insert read %d stamps, want at most %d", n, 2*maxLooksToImprove+5)
	}
}

// usedBeforeRetire implements Values. It uses a value just before it retires it.
type usedBeforeRetire struct{ itemValues }

func (v *usedBeforeRetire) Retire(i *item, stamp, state, now uint64) bool {
	if i.used.Load() < 100 {
		i.used.Store(100)
	}
	return v.itemValues.Retire(i, stamp, state, now)
}

func TestValueUsedBeforeItIsRetiredIsNotEvicted(t *testing.T) {
	var v usedBeforeRetire
	var m Map[string, item]
	m.Init(1, true, &v)
	m.Insert("a", Spot{}, 0, 0, 0, setStamp(10))
	if _, until, o := m.Insert("b", Spot{}, 20, 0, 0, setStamp(20)); o != Refused || until != 100 {
		t.Errorf("%v until %d, want refused until 100", o, until)
	}
	if m.Load("a") == nil {
		t.Error("the value was evicted")
	}
	if until, full := m.Refuses(50); !full || until != 100 {
		t.Errorf("full %v, until %d, want 100", full, until)
	}
}

func TestIdleValuesAreDropped(t *testing.T) {
	c := newCache[int](100, false)
	for k := range 50 {
		c.use(k)
	}
	c.Load(10).used.Store(60) // not idle, but its stamp in the order is stale
	c.Insert(1000, Spot{}, 100, 40, 0, setStamp(100))
	if n := c.Len(); n != 50+1-idleDrops {
		t.Errorf("%d keys, want %d, with the first %d dropped", n, 50+1-idleDrops, idleDrops)
	}
	for i := range 20 {
		c.Insert(1001+i, Spot{}, 100, 40, 0, setStamp(100))
	}
	if n := c.Len(); n != 50+21-39 {
		t.Errorf("%d keys, want %d, with the 39 of stamps up to 40 dropped", n, 50+21-39)
	}
	if c.Load(10) == nil {
		t.Error("a key that is not idle was dropped")
	}
}

func TestRefusesUntilTheLeastStamp(t *testing.T) {
	c := newCache[int](3, true)
	full := func(until uint64) {
		t.Helper()
		if got, full := c.Refuses(0); full != (until > 0) || got != until {
			t.Errorf("full %v, until %d, want %d", full, got, until)
		}
		if _, full := c.Refuses(until); full {
			t.Errorf("full at %d", until)
		}
	}
	full(0)
	for k, stamp := range []uint64{30, 10, 20} {
		c.Insert(k, Spot{}, 0, 0, 0, setStamp(stamp))
	}
	full(10)
	c.Load(1).used.Store(40)
	notCalled := func(*item) uint64 {
		t.Error("set was called for a refused key")
		return 0
	}
	if _, until, o := c.Insert(9, Spot{}, 19, 0, 0, notCalled); o != Refused || until != 20 {
		t.Errorf("Insert at 19: %v until %d, want refused until 20", o, until)
	}
	full(20)
	if _, _, o := c.Insert(9, Spot{}, 20, 0, 0, setStamp(50)); o != Inserted {
		t.Errorf("Insert at 20: %v, want inserted", o)
	}
	full(30)
	if c.Load(2) != nil {
		t.Error("the key with the least stamp was not evicted")
	}
	c.Insert(10, Spot{}, 60, 50, 0, setStamp(70)) // drops the other three
	full(0)
}

// usedBeforeStamp implements Values. It calls use just before it reads a stamp.
type usedBeforeStamp struct {
	itemValues
	use func(*item)
}

func (v *usedBeforeStamp) Stamp(i *item) (stamp, state uint64, final bool) {
	if v.use != nil {
		v.use(i)
	}
	return v.itemValues.Stamp(i)
}

// The stamp of a is read. Then both values are used, and the stamp of b is read. The stamp that
// was read from a has never been the least of the two.
func TestRefusalReturnsAStampThatWasTheLeast(t *testing.T) {
	var values usedBeforeStamp
	var m Map[string, item]
	m.Init(2, true, &values)
	m.Insert("a", Spot{}, 0, 0, 0, setStamp(1))
	m.Insert("b", Spot{}, 0, 0, 0, setStamp(5))
	a, b := m.Load("a"), m.Load("b")
	a.used.Store(10)
	values.use = func(i *item) {
		if i == b && b.used.Load() == 5 {
			a.used.Store(30)
			b.used.Store(20)
		}
	}
	_, until, outcome := m.Insert("c", Spot{}, 4, 0, 0, setStamp(4))
	if outcome != Refused || until != 20 {
		t.Errorf("%v until %d, want refused until 20", outcome, until)
	}
}

// Callers that use a key each time that an insert reads its stamp cannot keep the insert busy. If
// one lowers a stamp at any such time, the insert does not refuse its key until the past.
func TestInsertEndsAlthoughValuesAreUsed(t *testing.T) {
	for lowered := range 2 * maxLooksToFind {
		values, m, looks := new(usedBeforeStamp), new(Map[string, item]), 0
		m.Init(2, true, values)
		m.Insert("a", Spot{}, 0, 0, 0, setStamp(1))
		m.Insert("b", Spot{}, 0, 0, 0, setStamp(1))
		values.use = func(i *item) {
			if i.used.Add(10); looks == lowered {
				i.used.Store(0)
			}
			if looks++; looks > 3*maxLooksToFind {
				t.Fatalf("an insert reads more than %d stamps", 3*maxLooksToFind)
			}
		}
		_, until, outcome := m.Insert("c", Spot{}, 0, 0, 0, setStamp(1))
		if isRefused := outcome == Refused; isRefused != (until > 0) || looks <= lowered && !isRefused {
			t.Errorf("%v until %d, after %d looks, want refused until later", outcome, until, looks)
		}
	}
}

// The order has a predecessor of the key's value. Insert evicts the value and not the predecessor.
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
		t.Errorf("a in the map: %v, its last value retired: %v", c.Load("a") != nil, a.dead.Load())
	}
	if err := c.verify(); err != nil {
		t.Error(err)
	}
}

// usedAfterStamp implements Values. It calls use just after it has read a stamp.
type usedAfterStamp struct {
	itemValues
	use func(*item)
}

func (v *usedAfterStamp) Stamp(i *item) (stamp, state uint64, final bool) {
	stamp, state, final = v.itemValues.Stamp(i)
	if use := v.use; use != nil {
		v.use = nil
		use(i)
	}
	return stamp, state, final
}

// A value is replaced between the look at its stamp and its retirement, by one in the same state.
// The insert looks at the successor before it retires it.
func TestSuccessorIsNotRetiredForItsPredecessor(t *testing.T) {
	var values usedAfterStamp
	var m Map[string, item]
	m.Init(1, false, &values)
	m.Insert("a", Spot{}, 0, 0, 0, setStamp(10))
	values.use = func(i *item) {
		i.final.Store(true)
		if m.Replace("a", i, 0, withStamp(10)) == nil {
			t.Fatal("not replaced")
		}
	}
	before := values.stamps.Load()
	_, _, outcome := m.Insert("b", Spot{}, 20, 0, 0, setStamp(20))
	if outcome != Inserted || m.Load("a") != nil {
		t.Fatalf("%v, want b in the place of a", outcome)
	}
	// The predecessor, it once more, and its successor.
	if n := values.stamps.Load() - before; n != 3 {
		t.Errorf("%d stamps were read, want 3", n)
	}
}

// A refused insert has read the least stamp again, and puts the key back under what it has read.
func TestKeyIsPutBackUnderItsNewStamp(t *testing.T) {
	var values usedAfterStamp
	var m Map[string, item]
	m.Init(2, true, &values)
	m.Insert("a", Spot{}, 0, 0, 0, setStamp(10))
	m.Insert("b", Spot{}, 0, 0, 0, setStamp(20))
	a := m.Load("a")
	values.use = func(*item) { a.used.Store(30) }
	_, until, outcome := m.Insert("c", Spot{}, 5, 0, 0, setStamp(5))
	if outcome != Refused || until != 20 {
		t.Errorf("%v until %d, want refused until 20", outcome, until)
	}
	if e := m.order.first(); e.stamp != 20 {
		t.Errorf("the first stamp in the order is %d, want 20", e.stamp)
	}
}
