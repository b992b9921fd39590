package lru

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

func (m *smallMap[V]) size() (n int) {
	for range m.All() {
		n++
	}
	return n
}

// buckets returns the number of buckets with the chained ones.
func (m *smallMap[V]) buckets() (n int) {
	for i := range m.roots {
		for b := &m.roots[i]; b != nil; b = b.next.Load() {
			n++
		}
	}
	return n
}

// Random steps have the same results as with a map of Go, also if all hashes are in one chain.
func TestSmallMapIsAMap(t *testing.T) {
	for _, buckets := range []int{2, 8} {
		m, want := newSmallMap[item](buckets), make(map[uint64]*item)
		rng := rand.New(rand.NewPCG(1, uint64(buckets)))
		for range 20_000 {
			hash := rng.Uint64N(40) * 2 // also 0, which entries of other chains have if they are free
			v := new(item)
			switch rng.IntN(4) {
			case 0:
				if want[hash] == nil {
					m.Add(hash, v)
					want[hash] = v
				}
			case 1:
				m.Compute(hash, func(*item) *item { return nil })
				delete(want, hash)
			case 2:
				m.Compute(hash, func(now *item) *item {
					if now != want[hash] {
						t.Fatalf("Compute finds another value of %d", hash)
					}
					if now == nil {
						return nil
					}
					want[hash] = v
					return v
				})
			}
			if m.Load(hash) != want[hash] {
				t.Fatalf("Load finds another value of %d", hash)
			}
		}
		got := make(map[uint64]*item)
		for hash, v := range m.All() {
			if got[hash] != nil || want[hash] != v {
				t.Errorf("hash %d is twice in the map, or has another value", hash)
			}
			got[hash] = v
		}
		if len(got) != len(want) {
			t.Errorf("%d hashes, want %d", len(got), len(want))
		}
		if n := m.buckets(); n > max(buckets, 40/bucketEntries+1+buckets) {
			t.Errorf("%d buckets for 40 hashes: entries that are free are not taken", n)
		}
	}
}

// A look-up finds a hash that stays, and never a value of another hash, while entries are taken for
// other hashes.
func TestLoadWhileEntriesAreTakenAgain(t *testing.T) {
	type number struct{ n atomic.Uint64 }
	rounds := 3_000_000
	if testing.Short() {
		rounds = 500_000
	}
	m := newSmallMap[number](2)
	of := func(n uint64) *number { v := new(number); v.n.Store(n); return v }
	for hash := range uint64(3 * bucketEntries) {
		m.Add(hash, of(hash))
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	for g := range uint64(3) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(g, 1))
			for !done.Load() {
				hash := rng.Uint64N(3 * bucketEntries)
				v := m.Load(hash)
				switch {
				case v != nil && v.n.Load() != hash:
					t.Errorf("hash %d has the value of %d", hash, v.n.Load())
				case v == nil && hash%2 == 0:
					t.Errorf("hash %d is not found", hash)
				case hash%4 == 0:
					m.Compute(hash, func(now *number) *number { return of(hash) })
					continue
				default:
					continue
				}
				return
			}
		})
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for range rounds {
		hash := rng.Uint64N(3*bucketEntries)/2*2 + 1 // the odd ones come and go
		if m.Load(hash) == nil {
			m.Add(hash, of(hash))
		} else {
			m.Compute(hash, func(*number) *number { return nil })
		}
	}
	done.Store(true)
	wg.Wait()
}

func TestBucketIsTwoCacheLines(t *testing.T) {
	if size := unsafe.Sizeof(bucket[item]{}); unsafe.Sizeof(uintptr(0)) == 8 && size != 128 {
		t.Errorf("a bucket has %d bytes, want 128", size)
	}
}
