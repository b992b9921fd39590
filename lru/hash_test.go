package lru

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestFlatTypesAreThoseEqualAsMemory(t *testing.T) {
	type mixed struct {
		id   uint32
		port uint16
		flag uint16
	}
	for _, tt := range []struct {
		key  any
		want bool
	}{
		{1, true}, {uint8(1), true}, {true, true}, {new(int), true},
		{[16]byte{}, true}, {netip.Addr{}, true}, {mixed{1, 2, 3}, true}, {[2]mixed{}, true},
		{netip.Prefix{}, false}, // padded
		{1.0, false},            // 0 and -0 are equal
		{1i, false},
		{"", false},
		{struct{ any }{}, false},
		{[1]string{}, false},
		{struct {
			a uint8
			b uint32
		}{}, false},
		{struct {
			a uint32
			b uint8
		}{}, false},
		{struct {
			a uint32
			_ uint32
		}{}, false},
	} {
		if got := isFlat(reflect.TypeOf(tt.key)); got != tt.want {
			t.Errorf("%T: %t, want %t", tt.key, got, tt.want)
		}
	}
}

// The map takes a bucket from the upper bits of a hash, and a tag from the lowest seven.
// Keys as they are in practice, which differ in a few bits, must be spread over both as
// random numbers would be.
func TestHashSpreadsKeys(t *testing.T) {
	const n = 1 << 16
	spreads(t, "numbers", n, func(i int) int { return i })
	spreads(t, "multiples", n, func(i int) uint64 { return uint64(i) << 40 })
	spreads(t, "addresses", n, func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	})
	spreads(t, "networks", n, func(i int) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(i >> 8), byte(i)})
	})
	for _, format := range []string{
		"%d", "%03x", "%08x", "user-%d", "client-%07d", "203.0.113.1:%d", "tenant-42/route/%016d",
		"%d-0123456789012345678901234567890123456789",
	} {
		spreads(t, format, n, func(i int) string { return fmt.Sprintf(format, i) })
	}
}

func spreads[K comparable](t *testing.T, name string, n int, key func(int) K) {
	t.Helper()
	h, another := newHasher[K](), newHasher[K]()
	var buckets [4096]int
	var tags [128]int
	flips := 0
	for i := range n {
		hash := h.hash(key(i))
		if again := h.hash(key(i)); again != hash {
			t.Fatalf("%s: the hash of %v is %x, and %x", name, key(i), hash, again)
		}
		buckets[hash>>7%4096]++
		tags[hash%128]++
		flips += bits.OnesCount64(hash ^ another.hash(key(i)))
	}
	even(t, name+": buckets", buckets[:], n)
	even(t, name+": tags", tags[:], n)
	if mean := float64(flips) / float64(n); mean < 31 || mean > 33 {
		t.Errorf("%s: in another table %.2f of 64 bits differ, want 32", name, mean)
	}
}

// An adversary who knows this code must not know which keys fall together. So two tables
// must not agree on that, for any kind of key, and each of the two secrets has to count.
func TestHashDependsOnItsSecrets(t *testing.T) {
	type pair struct {
		tenant string
		id     int
	}
	secret(t, "", "a", "0123", "01234567", "\x00\x00\x00\x00\x00\x00\x00\x00",
		strings.Repeat("\x00", 16), strings.Repeat("\x00", 17), strings.Repeat("k", 100))
	secret(t, netip.IPv4Unspecified(), netip.MustParseAddr("192.0.2.1"), netip.IPv6Unspecified())
	secret(t, [16]byte{}, [16]byte{10: 0xff, 11: 0xff}, [16]byte{0xff})
	secret(t, uint64(0), 1, math.MaxUint64)
	secret(t, uint8(0), 1, math.MaxUint8)
	secret(t, 0.0, 1.5)
	secret(t, pair{}, pair{"a", 1})
}

func secret[K comparable](t *testing.T, keys ...K) {
	t.Helper()
	for _, key := range keys {
		h := newHasher[K]()
		if seen := hashes(key, newHasher[K]); len(seen) < 100 {
			t.Errorf("%T %v: %d hashes in 100 tables", key, key, len(seen))
		}
		if h.kind == general {
			continue
		}
		for name, word := range map[string]*uint64{"first": &h.first, "second": &h.second} {
			seen := hashes(key, func() hasher[K] { *word = rand.Uint64(); return h })
			if len(seen) < 100 {
				t.Errorf("%T %v: %d hashes with 100 values of the %s secret", key, key, len(seen), name)
			}
		}
	}
}

func hashes[K comparable](key K, next func() hasher[K]) map[uint64]bool {
	seen := make(map[uint64]bool)
	for range 100 {
		h := next()
		seen[h.hash(key)] = true
	}
	return seen
}

// Of eight bytes both factors are made. For no key x may they only trade places in that of
// another, as they would in x^first^second.
func TestHashOfEightBytesIsNotSymmetric(t *testing.T) {
	for x := range uint64(1000) {
		h := newHasher[uint64]()
		if y := x ^ h.first ^ h.second; h.hash(x) == h.hash(y) {
			t.Fatalf("the hash of %x and %x is the same", x, y)
		}
	}
}

func TestHashTellsShortKeysApart(t *testing.T) {
	keys := []string{"", "a", "b", "aa", "ab", "aba", "abb", "abaa", "abab", "abbb"}
	for range 3 {
		h := newHasher[string]()
		seen := make(map[uint64]string)
		for _, key := range keys {
			if other, ok := seen[h.hash(key)]; ok {
				t.Errorf("the hash of %q and of %q is the same", key, other)
			}
			seen[h.hash(key)] = key
		}
	}
}

// even checks by χ² that n things were spread evenly: it is counts − 1, with a standard
// deviation of √(2·counts), and here seven of these are allowed.
func even(t *testing.T, name string, counts []int, n int) {
	t.Helper()
	want := float64(n) / float64(len(counts))
	var x2 float64
	for _, c := range counts {
		x2 += (float64(c) - want) * (float64(c) - want) / want
	}
	k := float64(len(counts) - 1)
	if off := (x2 - k) / math.Sqrt(2*k); math.Abs(off) > 7 {
		t.Errorf("%s: χ² is %.0f, %.1f deviations from what chance would give", name, x2, off)
	}
}
