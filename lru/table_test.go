package lru

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// verify returns an error if the small maps, their sizes, the order and the number of keys
// do not agree.
func (t *table[K, V]) verify(o *order[V]) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t.moving.Load() != nil {
		fail("keys are being moved")
	}
	stored := 0
	for i := 0; i < len(t.slots); {
		s, m := t.spans[i], t.slots[i].Load()
		if s.from != i || s.to <= i {
			fail("the span of slot %d is of slots %d to %d", i, s.from, s.to)
			break
		}
		if s.buckets > mostBuckets && s.to-s.from > 1 {
			fail("%d buckets for slots %d to %d, which could be divided", s.buckets, s.from, s.to)
		}
		for ; i < s.to; i++ {
			if t.spans[i] != s || t.slots[i].Load() != m {
				fail("slot %d does not have the map of slots %d to %d", i, s.from, s.to)
			}
		}
		if n := m.Size(); n != s.keys || n > keysFor(s.buckets) {
			fail("%d keys in a map, want %d, and at most %d", n, s.keys, keysFor(s.buckets))
		}
		if st := m.Stats(); st.RootBuckets != s.buckets || st.TotalGrowths+st.TotalShrinks > 0 {
			fail("%d root buckets, want %d; %d growths", st.RootBuckets, s.buckets, st.TotalGrowths)
		}
		m.Range(func(hash uint64, v *V) bool {
			stored++
			if slot := t.slot(hash); slot < s.from || slot >= s.to {
				fail("hash %x of slot %d is in the map of slots %d to %d", hash, slot, s.from, s.to)
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
		fail("%d keys counted, %d stored, %d in the order", t.keys, stored, o.len())
	}
	return errors.Join(errs...)
}

// counts returns the number of small maps, of their root buckets, and of all their buckets.
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
			if err := c.verify(); err != nil {
				t.Fatalf("%d keys: %v", k+1, err)
			}
			for i := range k + 1 {
				if c.Load(i) == nil {
					t.Fatalf("key %d of %d is not found", i, k+1)
				}
			}
		}
	}
	maps, _, buckets := c.table.counts()
	if want := len(c.table.slots); maps != want || buckets > keys*6/10 {
		t.Errorf("%d small maps for %d slots, %d buckets for %d keys", maps, want, buckets, keys)
	}
	// All keys go idle, and new ones come.
	for k := range keys/(idleDrops-1) + 10 {
		c.Insert(keys+k, Spot{}, 3*keys, 2*keys, 0, setStamp(3*keys))
		if k%1000 == 0 {
			if err := c.verify(); err != nil {
				t.Fatalf("%d keys: %v", c.Len(), err)
			}
		}
	}
	if n, _, left := c.table.counts(); c.Len() > keys/10 || left > buckets/4 {
		t.Errorf("%d keys, %d buckets and %d maps left of %d keys and %d buckets",
			c.Len(), left, n, keys, buckets)
	}
	if n := len(c.order.sorted.chunks) + len(c.order.heap.chunks); n > c.Len()/chunkEntries+3 {
		t.Errorf("%d chunks in an order of %d keys", n, c.Len())
	}
}

// xsync never frees the buckets that it has chained to others. The table replaces its small maps
// in turn, so few such buckets remain.
func TestBucketsDoNotAccumulateAsKeysComeAndGo(t *testing.T) {
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
	if err := c.verify(); err != nil {
		t.Fatal(err)
	}
	// Without rebuilding, a table has 1.9 times the buckets of a fresh one.
	if limit := fresh * 14 / 10; most > limit {
		t.Errorf("%d buckets, want at most %d, 1.4 times the %d of a fresh table", most, limit, fresh)
	}
}

// In a table whose keys come and go and slowly become more, no small map grows without bound. To
// move the keys of a large map would hold up other inserts.
func TestTableThatGrowsSlowlyIsDivided(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 300,000 inserts")
	}
	const bound, turns = 1 << 20, 60
	c := newCache[int](bound, false)
	for key := range 5000 * turns {
		c.use(key)
		if keys := 5000 + key/100; c.Len() > keys { // grows by one key in a hundred inserts
			c.Insert(-1-key, Spot{}, c.now, c.now-uint64(keys), 0, setStamp(c.now))
		}
	}
	if err := c.verify(); err != nil {
		t.Error(err)
	}
	if maps, _, _ := c.table.counts(); maps == 1 {
		t.Errorf("%d keys are in one map", c.Len())
	}
}

// A small map that has one slot, and more keys than its buckets hold, is doubled. So it goes in the
// largest tables, whose slots are few.
func TestSlotWithManyKeysGetsMoreBuckets(t *testing.T) {
	var small table[uint64, item]
	small.init(2 * keysPerSlot)
	for key := range uint64(keysFor(mostBuckets) + 1) {
		hash := 1<<63 | key // of the second slot
		small.store(hash, hash, small.newValue(key, 0))
	}
	low, high := small.spans[0], small.spans[1]
	if low.buckets != mostBuckets || low.to != 1 || high.buckets != 2*mostBuckets || high.from != 1 {
		t.Errorf("the slots have %+v and %+v, want %d and %d buckets",
			*low, *high, mostBuckets, 2*mostBuckets)
	}
	for key := range uint64(keysFor(mostBuckets) + 1) {
		if _, v := small.find(1<<63 | key); v == nil || small.keyOf(v) != key {
			t.Fatalf("key %d is not found", key)
		}
	}
}

// The least small map is not replaced by another of its size when keys go.
func TestLeastSmallMapStays(t *testing.T) {
	c := newCache[int](100, false)
	for key := range 10 {
		c.use(key)
	}
	m := c.table.slots[0].Load()
	c.Insert(10, Spot{}, math.MaxUint64, math.MaxUint64, 0, setStamp(0)) // drops the others
	if left := c.table.slots[0].Load(); left != m || m.Size() != 1 {
		t.Errorf("%d keys, and another map %t, want 1", left.Size(), left != m)
	}
}

// The keys are spread evenly over the slots, whatever they have in common.
func TestKeysSpreadOverTheSlots(t *testing.T) {
	const keys = 50_000
	checkSlots(t, "numbers", keys, func(i int) int { return i })
	checkSlots(t, "multiples", keys, func(i int) uint64 { return uint64(i) << 40 })
	checkSlots(t, "IPv4", keys, func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	})
	checkSlots(t, "IPv4 in IPv6", keys, func(i int) [16]byte {
		return [16]byte{10: 0xff, 11: 0xff, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}
	})
	checkSlots(t, "one /64", keys, func(i int) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)})
	})
	checkSlots(t, "NULs", keys, func(i int) string {
		return "\x00\x00\x00\x00\x00\x00\x00\x00" + strconv.Itoa(i)
	})
	checkSlots(t, "only NULs", keys/20, func(i int) string { return string(make([]byte, i)) })
	checkSlots(t, "structs", keys, func(i int) struct {
		tenant string
		id     int
	} {
		return struct {
			tenant string
			id     int
		}{"t", i}
	})
}

// checkSlots checks that keys are spread evenly over the slots.
func checkSlots[K comparable](t *testing.T, name string, keys int, key func(int) K) {
	t.Helper()
	var tbl table[K, item]
	tbl.init(20 * keysPerSlot)
	counts := make([]int, len(tbl.slots))
	for i := range keys {
		counts[tbl.slot(tbl.hasher.hash(key(i)))]++
	}
	checkEven(t, name, counts, keys)
}

// Two keys with the same hash cannot be found, so this test replaces the hash by one of three
// values.
func TestKeysWithTheSameHash(t *testing.T) {
	const keys = 60
	c := newCache[float64](keys, false) // the hasher calls maphash for floats
	c.table.hasher.maphash = func(k float64) uint64 { return uint64(int(k)%3) * 0x5555555555555555 }
	check := func(step string) {
		t.Helper()
		if err := c.verify(); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	for k := range keys {
		if c.use(float64(k)) {
			t.Fatalf("key %d is found before its insert", k)
		}
	}
	check("filled")
	for k := range keys {
		if c.Load(float64(k)) == nil {
			t.Fatalf("key %d is not found", k)
		}
	}
	for k := range 4 * keys { // evicts the first key of a hash; the others must be found
		c.use(float64(keys + k))
		check("evicted")
		for i := keys + k; i > k; i-- {
			if v, _ := c.Recent(float64(i)); v == nil {
				t.Fatalf("key %d is not found", i)
			}
		}
		if c.Load(float64(k)) != nil {
			t.Fatalf("key %d was not evicted", k)
		}
	}
	for k := 4 * keys; k < 5*keys; k++ {
		if !c.replace(float64(k)) {
			t.Fatalf("key %d was not replaced", k)
		}
		check("replaced")
		if c.Load(float64(k)) == nil {
			t.Fatalf("key %d is not found", k)
		}
	}
	if n := len(*c.table.collided.Load()); n > keys+3 {
		t.Errorf("%d collisions recorded, want at most %d", n, keys+3)
	}
}

// Texts of 8 to 16 bytes are compared as two words. If a word equals a secret, the factor with it
// is 0, and all texts with this word and one length have the same hash. If the first secret is 0
// too, so have texts of other lengths.
func TestTextsWithTheSameHash(t *testing.T) {
	const word = 0x6161616161616161 // "aaaaaaaa"
	for _, secrets := range [][2]uint64{{word, 1}, {1, word}, {0, word}} {
		c := newCache[string](1000, false)
		c.table.hasher.first, c.table.hasher.second = secrets[0], secrets[1]
		var keys []string
		hashes := make(map[uint64]bool)
		add := func(key string) {
			if c.use(key) {
				t.Fatalf("%q is found before its insert", key)
			}
			keys = append(keys, key)
			hashes[c.table.hasher.hash(key)] = true
		}
		for size := 20; size > 0; size-- {
			text := strings.Repeat("a", size)
			add(text)
			for i := range text {
				add(text[:i] + "b" + text[i+1:])
			}
		}
		for _, key := range keys {
			if v := c.Load(key); v == nil || c.KeyOf(v) != key {
				t.Errorf("%q is not found", key)
			}
		}
		if len(hashes) > len(keys)-8 {
			t.Errorf("%d hashes of %d keys, want fewer", len(hashes), len(keys))
		}
	}
}

func TestSmallMapsHaveTheRequestedBuckets(t *testing.T) {
	for buckets := leastBuckets; buckets <= 4*mostBuckets; buckets *= 2 {
		m := newSpan[item](0, 1, buckets).small
		if got := m.Stats().RootBuckets; got != buckets {
			t.Errorf("%d buckets, want %d", got, buckets)
		}
		if n := keysFor(buckets); bucketsFor(n) != 2*buckets || bucketsFor(n*3/5) != buckets {
			t.Errorf("bucketsFor(%d) = %d and bucketsFor(%d) = %d, want %d and %d",
				n, bucketsFor(n), n*3/5, bucketsFor(n*3/5), 2*buckets, buckets)
		}
		for i := range keysFor(buckets) { // all in one chain of buckets
			m.Store(uint64(i), nil)
		}
		if st := m.Stats(); st.RootBuckets != buckets || st.TotalGrowths > 0 {
			t.Errorf("%d root buckets after %d keys, want %d", st.RootBuckets, keysFor(buckets), buckets)
		}
	}
}

func TestNumberOfSlotsDependsOnTheBound(t *testing.T) {
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
