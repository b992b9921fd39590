package lru

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
)

// whole returns an error if the small maps, their sizes, the order and the number of keys
// do not agree.
func (t *table[K, V]) whole(o *order[V]) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t.moving.Load() != nil {
		fail("keys are being moved")
	}
	stored := 0
	for i := 0; i < len(t.slots); {
		s, m := t.spans[i], t.slots[i].Load()
		if s.from != i || s.to <= i {
			fail("the map of slot %d says that it is of slots %d to %d", i, s.from, s.to)
			break
		}
		if s.buckets > mostBuckets && s.to-s.from > 1 {
			fail("%d buckets for slots %d to %d, which could be divided", s.buckets, s.from, s.to)
		}
		for ; i < s.to; i++ {
			if t.spans[i] != s || t.slots[i].Load() != m {
				fail("slot %d is not of the map of slots %d to %d", i, s.from, s.to)
			}
		}
		if only := t.only.Load(); (only == m) != (s.to-s.from == len(t.slots)) {
			fail("the only map is %p, and that of slots %d to %d is %p", only, s.from, s.to, m)
		}
		if n := m.Size(); n != s.keys || n > keysFor(s.buckets) {
			fail("%d keys in a map that counts %d and has room for %d", n, s.keys, keysFor(s.buckets))
		}
		if st := m.Stats(); st.RootBuckets != s.buckets || st.TotalGrowths+st.TotalShrinks > 0 {
			fail("%d buckets, want %d, resized %d times", st.RootBuckets, s.buckets, st.TotalGrowths)
		}
		m.Range(func(at uint64, v *V) bool {
			stored++
			if slot := t.slot(at); slot < s.from || slot >= s.to {
				fail("hash %x, of slot %d, is in the map of slots %d to %d", at, slot, s.from, s.to)
			}
			if got, _ := t.probe(t.hasher.hash(t.keyOf(v)), t.keyOf(v)); got != v {
				fail("key %v is not found", t.keyOf(v))
			}
			return true
		})
	}
	if maps, _, _ := t.counts(); maps != t.maps {
		fail("%d small maps, want %d", maps, t.maps)
	}
	if stored != t.keys || o.len() != t.keys {
		fail("%d keys, %d stored, %d in the order", t.keys, stored, o.len())
	}
	return errors.Join(errs...)
}

// counts returns how many small maps there are, and their root buckets and buckets all told.
func (t *table[K, V]) counts() (maps, roots, buckets int) {
	for i := 0; i < len(t.slots); i = t.spans[i].to {
		st := t.slots[i].Load().Stats()
		maps++
		roots += st.RootBuckets
		buckets += st.TotalBuckets
	}
	return maps, roots, buckets
}

func TestTableGrowsAndShrinks(t *testing.T) {
	const keys = 100_000
	c := newCache[int](keys, false)
	for k := range keys {
		if c.use(k); k&(k-1) == 0 || k%7919 == 0 {
			if err := c.whole(); err != nil {
				t.Fatalf("%d keys: %v", k+1, err)
			}
			for i := range k + 1 {
				if c.Load(i) == nil {
					t.Fatalf("key %d of %d is not there", i, k+1)
				}
			}
		}
	}
	maps, _, buckets := c.table.counts()
	if want := len(c.table.slots); maps != want || buckets > keys*6/10 {
		t.Errorf("%d small maps for %d slots, %d buckets for %d keys", maps, want, buckets, keys)
	}
	// All go idle, and new ones come.
	for k := range keys/(idleDrops-1) + 10 {
		c.Insert(keys+k, 3*keys, 2*keys, with(3*keys))
		if k%1000 == 0 {
			if err := c.whole(); err != nil {
				t.Fatalf("%d keys: %v", c.Len(), err)
			}
		}
	}
	if n, _, left := c.table.counts(); c.Len() > keys/10 || left > buckets/4 {
		t.Errorf("%d keys and %d buckets left in %d maps, of %d and %d", c.Len(), left, n, keys, buckets)
	}
	if n := len(c.order.sorted.chunks) + len(c.order.heap.chunks); n > c.Len()/chunkEntries+3 {
		t.Errorf("%d chunks in the order of %d keys", n, c.Len())
	}
}

// xsync never frees the buckets that it has chained to another.
func TestTableInWhichKeysComeAndGoDoesNotBloat(t *testing.T) {
	const keys = 20_000
	turns := 100
	if testing.Short() {
		turns = 20
	}
	c := newCache[int](keys, false)
	for k := range keys {
		c.use(k)
	}
	_, _, fresh := c.table.counts()
	most := 0
	for k := range turns * keys {
		if c.use(keys + k); k%keys == 0 {
			_, _, buckets := c.table.counts()
			most = max(most, buckets)
		}
	}
	if err := c.whole(); err != nil {
		t.Fatal(err)
	}
	// Without rebuilding it would be 1.9 times; fresh ones are a third of the memory.
	if limit := fresh * 14 / 10; most > limit {
		t.Errorf("%d buckets, want at most %d: 1.4 times the %d of a fresh table", most, limit, fresh)
	}
}

// Keys that come and go, and become a few more, do not make one map of many: moving its keys
// would hold up the others.
func TestTableThatGrowsSlowlyIsDivided(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 300,000 inserts")
	}
	const bound, turns = 1 << 20, 60
	c := newCache[int](bound, false)
	for key := range 5000 * turns {
		c.use(key)
		if keys := 5000 + key/100; c.Len() > keys { // a percent more with each turn
			c.Insert(-1-key, c.now, c.now-uint64(keys), with(c.now))
		}
	}
	if err := c.whole(); err != nil {
		t.Error(err)
	}
	if maps, _, _ := c.table.counts(); maps == 1 {
		t.Errorf("%d keys are in one map", c.Len())
	}
}

// A table has its share of keys in each small map, whatever its keys have in common.
func TestKeysSpreadOverTheSlots(t *testing.T) {
	const keys = 50_000
	spread(t, "numbers", keys, func(i int) int { return i })
	spread(t, "multiples", keys, func(i int) uint64 { return uint64(i) << 40 })
	spread(t, "IPv4", keys, func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	})
	spread(t, "IPv4 in IPv6", keys, func(i int) [16]byte {
		return [16]byte{10: 0xff, 11: 0xff, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}
	})
	spread(t, "one /64", keys, func(i int) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)})
	})
	spread(t, "NULs", keys, func(i int) string {
		return "\x00\x00\x00\x00\x00\x00\x00\x00" + strconv.Itoa(i)
	})
	spread(t, "only NULs", keys/20, func(i int) string { return string(make([]byte, i)) })
	spread(t, "structs", keys, func(i int) struct {
		tenant string
		id     int
	} {
		return struct {
			tenant string
			id     int
		}{"t", i}
	})
}

func spread[K comparable](t *testing.T, name string, keys int, key func(int) K) {
	t.Helper()
	var tbl table[K, item]
	tbl.init(20 * keysPerSlot)
	counts := make([]int, len(tbl.slots))
	for i := range keys {
		counts[tbl.slot(tbl.hasher.hash(key(i)))]++
	}
	even(t, name, counts, keys)
}

// As no two keys can be found that have the same hash, here all have one of three.
func TestKeysOfTheSameHash(t *testing.T) {
	const keys = 60
	c := newCache[float64](keys, false) // a kind of key whose hash is behind a function
	few := func(k float64) uint64 { return uint64(int(k)%3) * 0x5555555555555555 }
	c.table.hasher.maphash = few
	check := func(what string) {
		t.Helper()
		if err := c.whole(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for k := range keys {
		if c.use(float64(k)) {
			t.Fatalf("key %d was there", k)
		}
	}
	check("filled")
	for k := range keys {
		if c.Load(float64(k)) == nil {
			t.Fatalf("key %d is not there", k)
		}
	}
	for k := range 4 * keys { // the first of a hash goes, and the others are found still
		c.use(float64(keys + k))
		check("evicted")
		for i := keys + k; i > k; i-- {
			if c.Load(float64(i)) == nil {
				t.Fatalf("key %d is not there", i)
			}
		}
		if c.Load(float64(k)) != nil {
			t.Fatalf("key %d is there", k)
		}
	}
	for k := 4 * keys; k < 5*keys; k++ {
		if !c.replace(float64(k)) {
			t.Fatalf("key %d was not replaced", k)
		}
		c.Remove(float64(k), func(*item) {})
		check("removed")
		if c.Load(float64(k)) != nil {
			t.Fatalf("key %d is there", k)
		}
	}
	if n := c.Len(); n != 0 {
		t.Errorf("%d keys left", n)
	}
	if n := len(*c.table.collided.Load()); n > keys+3 {
		t.Errorf("%d hashes are remembered, want no more than there were keys", n)
	}
}

// What a small map is made for must be what it is: see whole.
func TestSmallMapsHaveTheBucketsTheyAreMadeFor(t *testing.T) {
	for buckets := leastBuckets; buckets <= 4*mostBuckets; buckets *= 2 {
		m := newSmallMap[item](buckets)
		if got := m.Stats().RootBuckets; got != buckets {
			t.Errorf("%d buckets, want %d", got, buckets)
		}
		if n := keysFor(buckets); bucketsFor(n) != 2*buckets || bucketsFor(n*3/5) != buckets {
			t.Errorf("%d buckets for %d keys, want %d", bucketsFor(n), n, 2*buckets)
		}
		for i := range keysFor(buckets) { // all in one chain
			m.Store(uint64(i), nil)
		}
		if st := m.Stats(); st.RootBuckets != buckets || st.TotalGrowths > 0 {
			t.Errorf("%d buckets grew to %d", buckets, st.RootBuckets)
		}
	}
}

func TestDirectoryIsOfTheSizeOfTheBound(t *testing.T) {
	for _, tt := range []struct{ max, slots int }{
		{1, 1}, {2*keysPerSlot - 1, 1}, {2 * keysPerSlot, 2}, {1 << 20, 227}, {1 << 30, maxSlots},
	} {
		var tbl table[int, item]
		tbl.init(tt.max)
		if n := len(tbl.slots); n != tt.slots {
			t.Errorf("%d keys: %d slots, want %d", tt.max, n, tt.slots)
		}
	}
}
