package lru

import (
	"net/netip"
	"testing"
)

// These benchmarks measure the numbers in the comments of this package and in DESIGN.md.

func BenchmarkHash(b *testing.B) {
	benchmarkHash(b, "string", "client-0000123")
	benchmarkHash(b, "addr", netip.MustParseAddr("192.0.2.123"))
}

func benchmarkHash[K comparable](b *testing.B, name string, key K) {
	h := newHasher[K]()
	var sum uint64
	b.Run("key="+name+"/by=own", func(b *testing.B) {
		for b.Loop() {
			sum += h.hash(key)
		}
	})
	b.Run("key="+name+"/by=std", func(b *testing.B) {
		for b.Loop() {
			sum += h.maphash(key)
		}
	})
	if sum == 0 {
		b.Error("all hashes are 0")
	}
}

// BenchmarkInsert adds new keys to a full table.
func BenchmarkInsert(b *testing.B) {
	c := newCache[uint64](10_000, false)
	for c.Len() < c.max {
		c.use(uint64(c.Len()))
	}
	for next := uint64(c.max); b.Loop(); next++ {
		c.now++
		c.Insert(next, Spot{}, c.now, 0, 0, setStamp(c.now))
	}
}

// BenchmarkMove replaces a small map that has as many keys as it can get.
func BenchmarkMove(b *testing.B) {
	c := newCache[int](1<<20, false)
	for k := range keysFor(mostBuckets) {
		c.use(k)
	}
	for b.Loop() {
		c.table.rebuild(c.table.spans[0], mostBuckets)
	}
	if err := c.verify(); err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(keysFor(mostBuckets)), "keys")
}

// BenchmarkCorrect makes room in a table in which all stamps in the order are stale. So an insert
// corrects as many stamps as its budget allows.
func BenchmarkCorrect(b *testing.B) {
	const keys, ahead = 50_000, 1 << 40
	c := newCache[int](keys, false)
	for k := range keys {
		c.use(k)
	}
	next, now := keys, uint64(0)
	for b.Loop() {
		b.StopTimer()
		for k := range next {
			if v := c.Load(k); v != nil {
				v.used.Add(ahead)
			}
		}
		now += ahead
		before := c.items.stamps.Load()
		b.StartTimer()
		c.Insert(next, Spot{}, 0, 0, 0, setStamp(now))
		next++
		if n := c.items.stamps.Load() - before; n < maxLooksToFind {
			b.Fatalf("an insert read %d stamps, want at least %d", n, maxLooksToFind)
		}
	}
	b.ReportMetric(maxLooksToFind, "corrections")
}
