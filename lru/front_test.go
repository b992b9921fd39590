package lru

import (
	"runtime"
	"testing"
	"weak"
)

// The front follows the number of keys, up to mostPairs.
func TestFrontFitsTheKeys(t *testing.T) {
	c := newCache[int](2*mostPairs, false)
	for k := range 2 * mostPairs {
		c.use(k)
		keys, n := k+1, len(*c.front.pairs.Load())
		if n < min(2*keys, mostPairs) || n > min(max(4*keys, leastPairs), mostPairs) {
			t.Fatalf("%d keys: %d pairs", keys, n)
		}
	}
}

// Recent finds what Remember has put into the front, and what has replaced it. After an eviction
// the front keeps no memory of the key.
func TestRecentIsAHint(t *testing.T) {
	for _, key := range []string{"a", "198.51.100.195"} {
		c := newCache[string](1, false)
		c.use(key)
		old, at := c.Recent(key)
		if old == nil || old != c.Load(key) {
			t.Fatalf("%q: %p, want what Load returns", key, old)
		}
		c.Remember(at.Hash, old, false)
		c.replace(key)
		next := c.Load(key)
		if v := c.front.at(at.Hash); v != next || v == old {
			t.Errorf("%q: the front has %p, want %p", key, v, next)
		}
		for _, v := range []*item{old, next} { // each in the place of the same key
			c.Remember(at.Hash, v, false)
			if got, _ := c.Recent(key); got != v {
				t.Errorf("%q: the front has %p, want %p", key, got, v)
			}
		}
		dead := weak.Make(next)
		c.use("b") // evicts key
		if v, _ := c.Recent(key); v != nil {
			t.Errorf("%q was evicted, and Recent returns %p", key, v)
		}
		runtime.GC()
		if dead.Value() != nil {
			t.Errorf("%q was evicted, and the front keeps it", key)
		}
		runtime.KeepAlive(c)
	}
}

// A pair has one key. Another takes its place only if Remember is told so.
func TestRememberOver(t *testing.T) {
	c := newCache[int](2, false)
	c.use(1)
	c.use(2)
	c.front.resize(1)
	one, first := c.Recent(1)
	two, second := c.Recent(2)
	isIn := func(at Spot) bool { return c.front.at(at.Hash) != nil }
	c.Remember(first.Hash, one, false)
	c.Remember(second.Hash, two, false)
	if !isIn(first) || isIn(second) {
		t.Error("a key has lost its pair")
	}
	c.Remember(second.Hash, two, true)
	if isIn(first) || !isIn(second) || c.Load(1) != one {
		t.Error("a key has kept its pair")
	}
	c.front.of(first.Hash).hash.Store(first.Hash) // torn: the hash of one and the value of the other
	if v, _ := c.Recent(1); v != one {
		t.Errorf("a torn pair: %p, want %p", v, one)
	}
}
