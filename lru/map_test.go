package lru

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-181794aa/ratelimit/internal/lockstep"
)

// item is a value whose stamp is the time of its last use.
type item struct {
	used atomic.Uint64
	dead atomic.Bool
}

// items are Values that count how often they are asked for a stamp, and down how many
// were retired.
type items struct{ stamps, live atomic.Int64 }

func (v *items) Stamp(i *item) (stamp, state uint64) {
	v.stamps.Add(1)
	u := i.used.Load()
	return u, u
}

func (v *items) Retire(i *item, state, _ uint64) bool {
	if i.used.Load() != state || !i.dead.CompareAndSwap(false, true) {
		return false
	}
	v.live.Add(-1)
	return true
}

// cache is a map used as an LRU cache, with a clock that ticks once a call.
type cache[K comparable] struct {
	Map[K, *item]
	items items
	now   uint64
}

func newCache[K comparable](max int, keep bool, shards int) *cache[K] {
	c := &cache[K]{}
	c.init(max, keep, &c.items, shards)
	return c
}

// use looks key up, adds it if it is not there, and says whether it was.
func (c *cache[K]) use(key K) (hit bool) {
	c.now++
	if i, ok := c.Load(key); ok {
		i.used.Store(c.now)
		return true
	}
	c.Insert(key, c.now, 0, with(key, c.now))
	return false
}

// with returns key and a value with the given stamp.
func with[K comparable](key K, stamp uint64) func() (K, *item) {
	return func() (K, *item) {
		i := new(item)
		i.used.Store(stamp)
		return key, i
	}
}

func TestSameKeysAsExactLRU(t *testing.T) {
	for _, bound := range []int{1, 2, 7, maxFixes} {
		rng := rand.New(rand.NewPCG(uint64(bound), 1))
		c := newCache[int](bound, false, 1)
		exact, _ := simplelru.NewLRU[int, struct{}](bound, nil)
		for i := range 20_000 {
			k := int(rng.ExpFloat64() * float64(bound))
			_, want := exact.Get(k)
			if !want {
				exact.Add(k, struct{}{})
			}
			if got := c.use(k); got != want {
				t.Fatalf("bound %d, use %d of key %d: hit %v, want %v", bound, i, k, got, want)
			}
		}
		if c.Len() != exact.Len() {
			t.Errorf("bound %d: %d keys, want %d", bound, c.Len(), exact.Len())
		}
	}
}

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

func TestOnePlaceIsReservedOnce(t *testing.T) {
	m := Map[int, *item]{max: 1}
	var reserved atomic.Int64
	lockstep.Run(50_000, func(int, int) {
		if m.reserve() {
			reserved.Add(1)
		}
	}, func(round int) {
		if n := reserved.Swap(0); n != 1 || m.Len() != 1 {
			t.Errorf("round %d: %d of 1 place reserved, %d counted", round, n, m.Len())
		}
		m.count.Store(0)
	})
}

func TestPlacesAreCountedUnderContention(t *testing.T) {
	for _, bound := range []int{1, 3} {
		c := newCache[int](bound, false, 8)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 3))
				for i := range 3000 {
					k := rng.IntN(20)
					if i%5 == 0 {
						c.Remove(k, func(v *item) {
							v.dead.Store(true)
							c.items.live.Add(-1)
						})
						continue
					}
					c.Insert(k, uint64(i), 0, func() (int, *item) {
						if n := c.items.live.Add(1); n > int64(bound) {
							t.Errorf("%d values at a time, want at most %d", n, bound)
						}
						return with(k, uint64(i))()
					})
				}
			})
		}
		wg.Wait()
		places := 0
		for i := range c.shards {
			places += c.shards[i].order.len()
		}
		if n := c.entries.Size(); n != c.Len() || n != places {
			t.Errorf("%d keys, %d counted, %d in the order", n, c.Len(), places)
		}
	}
}

func TestShards(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for _, tt := range []struct {
		max    int
		keep   bool
		shards int
	}{
		{1, false, 1}, {8191, false, 1}, {8192, false, 2}, {1 << 20, false, 8}, {1 << 20, true, 1},
	} {
		var m Map[int, *item]
		m.Init(tt.max, tt.keep, &items{})
		if n := len(m.shards); n != tt.shards {
			t.Errorf("%d keys, keep %v: %d shards, want %d", tt.max, tt.keep, n, tt.shards)
		}
	}
}

func TestOrderLetsGoOfWhatWasPopped(t *testing.T) {
	var o order[string]
	for i := range 10 * chunkSlots {
		o.push(slot[string]{stamp: uint64(i), key: "k"})
	}
	for range 3 { // and three in the heap
		o.push(slot[string]{key: "k"})
	}
	first, chunks := o.run.chunks[0], o.run.chunks
	for o.len() > 0 {
		o.pop()
	}
	if first[0].key != "" || o.heap[:3][2].key != "" {
		t.Error("a popped key is kept")
	}
	for i, c := range chunks {
		if c != nil {
			t.Errorf("chunk %d is kept", i)
		}
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

func TestPlaceOfAnotherShardIsTaken(t *testing.T) {
	c := newCache[int](1, false, 64)
	for k := range 1000 { // mostly in another shard than the one before
		c.use(k)
		if _, ok := c.Load(k); !ok || c.Len() != 1 {
			t.Fatalf("key %d: in the map %v, %d keys; want it alone", k, ok, c.Len())
		}
	}
}

func TestBoundHoldsAtEveryInstant(t *testing.T) {
	for _, shards := range []int{1, 8} {
		const bound, callers = 64, 8
		c := newCache[int](bound, false, shards)
		var wg sync.WaitGroup
		var clock atomic.Uint64
		for g := range callers {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 2))
				for range 5000 {
					now := clock.Add(1)
					k := rng.IntN(4 * bound)
					if v, ok := c.Load(k); ok {
						v.used.Store(now)
					} else {
						c.Insert(k, now, 0, func() (int, *item) {
							if n := c.items.live.Add(1); n > bound {
								t.Errorf("%d values at a time, want at most %d", n, bound)
							}
							return with(k, now)()
						})
					}
					if n := c.Len(); n > bound {
						t.Errorf("%d keys, want at most %d", n, bound)
					}
				}
			})
		}
		wg.Wait()
		places := 0
		for i := range c.shards {
			places += c.shards[i].order.len()
		}
		if n := c.entries.Size(); n != c.Len() || n != places {
			t.Errorf("%d keys, %d counted, %d in the order", n, c.Len(), places)
		}
	}
}

func TestRemove(t *testing.T) {
	c := newCache[int](10, false, 1)
	for k := range 10 {
		c.use(k)
	}
	removed := 0
	for _, k := range []int{3, 3, 0, 9, 77} {
		c.Remove(k, func(*item) { removed++ })
	}
	if removed != 3 || c.Len() != 7 || c.shards[0].order.len() != 7 {
		t.Errorf("removed %d, %d keys left, want 3 and 7", removed, c.Len())
	}
	for k := 20; k < 27; k++ { // 3 free places, then 1, 2, 4 and 5 have to go
		c.use(k)
	}
	for k, want := range map[int]bool{1: false, 5: false, 6: true, 8: true, 20: true} {
		if _, ok := c.Load(k); ok != want {
			t.Errorf("key %d in the map: %v, want %v", k, ok, want)
		}
	}
}

func TestReplaceOnlyTheOldValue(t *testing.T) {
	c := newCache[string](10, false, 1)
	c.use("a")
	old, _ := c.Load("a")
	next := new(item)
	c.Replace("a", old, next)
	c.Replace("a", old, new(item))
	c.Replace("b", old, new(item))
	if v, _ := c.Load("a"); v != next || c.entries.Size() != 1 {
		t.Errorf("got %p, want %p", v, next)
	}
}

func TestOrderIsAPriorityQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for round := range 200 {
		var o order[int]
		there := map[int]bool{}
		for i := range 500 {
			stamp := rng.Uint64N(20)
			if round%2 == 0 {
				stamp += uint64(i / 3) // most of them in order
			}
			o.push(slot[int]{stamp: stamp, seq: uint64(i), key: i})
			there[i] = true
			switch rng.IntN(4) {
			case 0:
				delete(there, o.pop().key)
			case 1:
				key := rng.IntN(i + 1)
				o.remove(key)
				delete(there, key)
			}
		}
		last := slot[int]{}
		for o.len() > 0 {
			next := o.pop()
			if next.before(&last) || !there[next.key] {
				t.Fatalf("%+v came after %+v", next, last)
			}
			delete(there, next.key)
			last = next
		}
		if len(there) > 0 {
			t.Fatalf("%d slots got lost", len(there))
		}
	}
}

func TestKeysOfAnyType(t *testing.T) {
	t.Run("interface", func(t *testing.T) {
		n := new(int)
		keys := []any{1, "1", 1.0, n, struct{ s string }{"1"}, nil}
		anyKeys(t, keys, func() { *n++ }) // the hash is of the pointer, not of what it points to
	})
	t.Run("fmt.Stringer", func(t *testing.T) {
		anyKeys(t, []fmt.Stringer{netip.MustParseAddr("::1"), netip.MustParsePrefix("::/8")}, func() {})
	})
	t.Run("array", func(t *testing.T) {
		anyKeys(t, [][2]string{{"a", "b"}, {"ab", ""}, {"", "ab"}}, func() {})
	})
	t.Run("pointer", func(t *testing.T) {
		a, b := new(int), new(int)
		anyKeys(t, []*int{a, b, nil}, func() { *a++ })
	})
}

func anyKeys[K comparable](t *testing.T, keys []K, meanwhile func()) {
	c := newCache[K](len(keys), false, 4)
	for _, k := range keys {
		if c.use(k) {
			t.Errorf("%v was there already", k)
		}
	}
	meanwhile()
	for _, k := range keys {
		if !c.use(k) {
			t.Errorf("%v is not there any more", k)
		}
	}
}

func TestLayout(t *testing.T) {
	if size := unsafe.Sizeof(shard[string, *item]{}); size != 128 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("a shard takes %d bytes, want two cache lines", size)
	}
	if size := unsafe.Sizeof(slot[string]{}); size != 32 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("a slot takes %d bytes, want 32", size)
	}
}
