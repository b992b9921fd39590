package lru

import (
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"reflect"
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
	hash := hasher[K]()
	if hash == nil {
		t.Fatalf("%s: no hash", name)
	}
	var buckets [4096]int
	var tags [128]int
	flips := 0
	for i := range n {
		h := hash(key(i), 42)
		if again := hash(key(i), 42); again != h {
			t.Fatalf("%s: the hash of %v is %x, and %x", name, key(i), h, again)
		}
		buckets[h>>7%4096]++
		tags[h%128]++
		flips += bits.OnesCount64(h ^ hash(key(i), 43))
	}
	even(t, name+": buckets", buckets[:], n)
	even(t, name+": tags", tags[:], n)
	if mean := float64(flips) / float64(n); mean < 31 || mean > 33 {
		t.Errorf("%s: another seed changes %.2f of 64 bits, want 32", name, mean)
	}
}

func TestHashTellsShortKeysApart(t *testing.T) {
	keys := []string{"", "a", "b", "aa", "ab", "aba", "abb", "abaa", "abab", "abbb"}
	for i, a := range keys {
		for _, b := range keys[:i] {
			apart(t, hasher[string](), a, b)
		}
	}
}

// The hash of these types is the standard library's, whatever the seed.
func TestHashTellsKeysOfOtherTypesApart(t *testing.T) {
	var m Map[float64, *item]
	m.init(1, false, &items{}, 1)
	apart(t, m.hash, 1.5, 2.5)
	apart[any](t, hasher[any](), 1, "1")
}

func apart[K comparable](t *testing.T, hash func(K, uint64) uint64, a, b K) {
	t.Helper()
	for _, seed := range []uint64{0, 42, math.MaxUint64} {
		if h := hash(a, seed); h == hash(b, seed) {
			t.Errorf("seed %x: the hash of %v and of %v is %x", seed, a, b, h)
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
