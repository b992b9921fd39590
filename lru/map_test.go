package lru

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"unsafe"
)

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

func TestEachShardHasItsShare(t *testing.T) {
	const keys, shards = 1000, 8
	c := newCache[int](keys, false, shards)
	for k := range keys {
		c.use(k)
	}
	for i := range c.shards {
		if n := c.shards[i].order.len(); n < keys/shards/2 || n > keys/shards*2 { // six deviations
			t.Errorf("shard %d has %d of %d keys", i, n, keys)
		}
	}
}

func TestPlaceOfAnotherShardIsTaken(t *testing.T) {
	for _, max := range []int{1, 8} {
		c := newCache[int](max, false, 64)
		for k := range 1000 { // mostly in a shard that has no key
			c.use(k)
			if _, ok := c.Load(k); !ok || c.Len() != min(k+1, max) {
				t.Fatalf("key %d: in the map %v, %d keys, want it and %d", k, ok, c.Len(), max)
			}
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
