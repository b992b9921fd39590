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

func TestFlatTypesAreComparedAsMemory(t *testing.T) {
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
			t.Errorf("%T: isFlat = %t, want %t", tt.key, got, tt.want)
		}
	}
}

// A small map takes a tag from the lowest seven bits of a hash, and a bucket from the bits above
// them. Keys in practice differ in a few bits. The hash must spread them over both like random
// numbers.
func TestHashSpreadsKeys(t *testing.T) {
	const n = 1 << 16
	checkSpread(t, "numbers", n, func(i int) int { return i })
	checkSpread(t, "multiples", n, func(i int) uint64 { return uint64(i) << 40 })
	checkSpread(t, "addresses", n, func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	})
	checkSpread(t, "networks", n, func(i int) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(i >> 8), byte(i)})
	})
	for _, format := range []string{
		"%d", "%03x", "%08x", "user-%d", "client-%07d", "203.0.113.1:%d", "tenant-42/route/%016d",
		"%d-0123456789012345678901234567890123456789",
	} {
		checkSpread(t, format, n, func(i int) string { return fmt.Sprintf(format, i) })
	}
}

// checkSpread checks the hashes of n keys.
func checkSpread[K comparable](t *testing.T, name string, n int, key func(int) K) {
	t.Helper()
	h, another := newHasher[K](), newHasher[K]()
	var buckets [4096]int
	var tags [128]int
	flips := 0
	for i := range n {
		hash := h.hash(key(i))
		if again := h.hash(key(i)); again != hash {
			t.Fatalf("%s: the hash of %v is %x, and then %x", name, key(i), hash, again)
		}
		buckets[hash>>7%4096]++
		tags[hash%128]++
		flips += bits.OnesCount64(hash ^ another.hash(key(i)))
	}
	checkEven(t, name+": buckets", buckets[:], n)
	checkEven(t, name+": tags", tags[:], n)
	if mean := float64(flips) / float64(n); mean < 31 || mean > 33 {
		t.Errorf("%s: in another table %.2f of 64 bits differ, want 32", name, mean)
	}
}

// A client that knows this code must not know which keys have similar hashes. So hashes must
// differ between tables, for any kind of key, and each of the two secrets must change them.
func TestHashDependsOnItsSecrets(t *testing.T) {
	type pair struct {
		tenant string
		id     int
	}
	checkSecrets(t, "", "a", "0123", "01234567", "\x00\x00\x00\x00\x00\x00\x00\x00",
		strings.Repeat("\x00", 16), strings.Repeat("\x00", 17), strings.Repeat("k", 100))
	checkSecrets(t, netip.IPv4Unspecified(), netip.MustParseAddr("192.0.2.1"), netip.IPv6Unspecified())
	checkSecrets(t, [16]byte{}, [16]byte{10: 0xff, 11: 0xff}, [16]byte{0xff})
	checkSecrets(t, uint64(0), 1, math.MaxUint64)
	checkSecrets(t, uint8(0), 1, math.MaxUint8)
	checkSecrets(t, 0.0, 1.5)
	checkSecrets(t, pair{}, pair{"a", 1})
}

// checkSecrets checks that the hashes of each key depend on the table and on each secret.
func checkSecrets[K comparable](t *testing.T, keys ...K) {
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

// hashes returns the hashes of key by 100 hashers.
func hashes[K comparable](key K, newHasher func() hasher[K]) map[uint64]bool {
	seen := make(map[uint64]bool)
	for range 100 {
		h := newHasher()
		seen[h.hash(key)] = true
	}
	return seen
}

// Both factors of the hash are made of the same eight bytes. Without the rotation, the factors of
// x^first^second would be the factors of x, exchanged.
func TestHashOfEightBytesIsNotSymmetric(t *testing.T) {
	for x := range uint64(1000) {
		h := newHasher[uint64]()
		if y := x ^ h.first ^ h.second; h.hash(x) == h.hash(y) {
			t.Fatalf("%x and %x have the same hash", x, y)
		}
	}
}

func TestShortKeysHaveDifferentHashes(t *testing.T) {
	keys := []string{"", "a", "b", "aa", "ab", "aba", "abb", "abaa", "abab", "abbb"}
	for range 3 {
		h := newHasher[string]()
		seen := make(map[uint64]string)
		for _, key := range keys {
			if other, ok := seen[h.hash(key)]; ok {
				t.Errorf("%q and %q have the same hash", key, other)
			}
			seen[h.hash(key)] = key
		}
	}
}

// Each bit of a key counts, whatever the secrets are.
func TestEachBitOfAKeyChangesItsHash(t *testing.T) {
	h := newHasher[string]()
	for size := range 50 {
		key := make([]byte, size)
		for i := range key {
			key[i] = byte(rand.Uint32())
		}
		hash := h.hash(string(key))
		for bit := range 8 * size {
			key[bit/8] ^= 1 << (bit % 8)
			if h.hash(string(key)) == hash {
				t.Errorf("%d bytes: bit %d does not change the hash", size, bit)
			}
			key[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// checkEven checks that n keys are spread evenly over counts, by χ². Its mean is len(counts)−1
// and its standard deviation is √(2·(len(counts)−1)). Seven deviations are allowed.
func checkEven(t *testing.T, name string, counts []int, n int) {
	t.Helper()
	want := float64(n) / float64(len(counts))
	var x2 float64
	for _, c := range counts {
		x2 += (float64(c) - want) * (float64(c) - want) / want
	}
	k := float64(len(counts) - 1)
	if off := (x2 - k) / math.Sqrt(2*k); math.Abs(off) > 7 {
		t.Errorf("%s: χ² is %.0f, %.1f deviations from its mean, want at most 7", name, x2, off)
	}
}
