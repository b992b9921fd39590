package lru

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

func TestReplaceReplacesOnlyTheGivenValue(t *testing.T) {
	c := newCache[string](10, false)
	c.use("a")
	old := c.Load("a")
	next := c.Replace("a", old, 0, withStamp(5))
	if next == nil || c.Load("a") != next || next.used.Load() != 5 {
		t.Errorf("got %p, want %p", c.Load("a"), next)
	}
	if c.Replace("a", old, 0, withStamp(6)) != nil || c.Replace("b", old, 0, withStamp(6)) != nil {
		t.Error("replaced a value that the key does not have")
	}
	if c.Load("a") != next || c.Load("b") != nil || c.verify() != nil {
		t.Errorf("got %p, want %p", c.Load("a"), next)
	}
}

// What a look-up has found out about a key counts for Insert only until the next insert.
func TestInsertOfAKeyThatCameSince(t *testing.T) {
	c := newCache[string](10, false)
	_, a := c.Recent("a")
	_, b := c.Recent("b")
	c.Insert("a", a, 1, 0, 0, setStamp(1))
	for key, at := range map[string]Spot{"a": a, "b": b} {
		if _, _, o := c.Insert(key, at, 2, 0, 0, setStamp(2)); (o == Found) != (key == "a") {
			t.Errorf("%s: outcome %v, want a found and b inserted", key, o)
		}
	}
}

// If the caller's function panics, the map is left unlocked and consistent.
func TestPanicLeavesTheMapUnlocked(t *testing.T) {
	c := newCache[string](1, false)
	c.use("a")
	panics(t, "set", func() { c.Insert("b", Spot{}, 5, 0, 0, func(*item) uint64 { panic("set") }) })
	panics(t, "set", func() { c.Replace("b", c.Load("a"), 0, func(*item) { panic("set") }) })
	if err := c.verify(); err != nil || c.Load("b") != nil {
		t.Errorf("b in the map: %v; %v", c.Load("b") != nil, err)
	}
	if c.use("c"); c.Len() != 1 {
		t.Errorf("%d keys, want 1", c.Len())
	}
}

func TestPanicsOnKeysAndValuesThatDoNotFit(t *testing.T) {
	for _, f := range []func(){
		func() { newCache[any](1, false) },
		func() { newCache[fmt.Stringer](1, false) },
		func() { newCache[struct{ a [2]any }](1, false) },
		func() { new(Map[int, *int]).Init(1, false, nil) },
		func() { new(Map[int, struct{ s [1]string }]).Init(1, false, nil) },
		func() { newCache[float64](1, false).use(math.NaN()) },
	} {
		panics(t, "lru: the ", f)
	}
}

// panics calls f, which must panic with a text that begins with want.
func panics(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		if r, _ := recover().(string); !strings.HasPrefix(r, want) {
			t.Errorf("recovered %q, want %q", r, want)
		}
	}()
	f()
}

func TestKeysOfAnyType(t *testing.T) {
	t.Run("array", func(t *testing.T) {
		checkKeys(t, [][2]string{{"a", "b"}, {"ab", ""}, {"", "ab"}}, func() {})
	})
	t.Run("pointer", func(t *testing.T) { // a change of its target does not change the key
		a, b := new(int), new(int)
		checkKeys(t, []*int{a, b, nil}, func() { *a++ })
	})
	t.Run("padded", func(t *testing.T) {
		a, b := netip.MustParsePrefix("::/8"), netip.MustParsePrefix("::/9")
		checkKeys(t, []netip.Prefix{{}, a, b}, func() {})
	})
	t.Run("struct", func(t *testing.T) { checkKeys(t, []struct{}{{}}, func() {}) })
	t.Run("bool", func(t *testing.T) { checkKeys(t, []bool{false, true}, func() {}) })
	t.Run("float64", func(t *testing.T) {
		c := newCache[float64](3, false)
		c.use(0)
		if !c.use(math.Copysign(0, -1)) || c.use(1) || c.use(math.Inf(1)) {
			t.Error("want 0 and -0 to be one key, and 1 and +Inf two others")
		}
	})
}

// checkKeys inserts keys, calls meanwhile and looks the keys up.
func checkKeys[K comparable](t *testing.T, keys []K, meanwhile func()) {
	c := newCache[K](len(keys), false)
	for _, k := range keys {
		if c.use(k) {
			t.Errorf("%v is found before its insert", k)
		}
	}
	meanwhile()
	for _, k := range keys {
		if !c.use(k) {
			t.Errorf("%v is not found", k)
		}
	}
}

func TestLayout(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("the sizes are for 64-bit machines")
	}
	if size := unsafe.Sizeof(entry[item]{}); size != 24 {
		t.Errorf("an entry takes %d bytes, want 24", size)
	}
	if size := unsafe.Sizeof(chunk[item]{}) + 8; size > 3200 || size < 3200*9/10 {
		t.Errorf("a chunk and the allocator's header take %d bytes, want 2,880 to 3,200", size)
	}
}
