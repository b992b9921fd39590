package lru

import (
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

func TestTextFollowsItsValue(t *testing.T) {
	n := newNodes[string, item]()
	for _, length := range []int{
		0, 1, 7, 8, 9, 13, 14, 15, 16, 100, 253, 254, 255, 256, 257, 1 << 20,
	} {
		want := strings.Repeat("k", length)
		v := n.newValue(want, 0)
		v.used.Store(1<<64 - 1) // must not overwrite the key
		v.dead.Store(true)
		got := n.keyOf(v)
		if got != want || !n.hasKey(v, want) {
			t.Fatalf("%d bytes: got %q", length, got)
		}
		if n.hasKey(v, want+"k") || length > 0 && n.hasKey(v, want[1:]+"x") {
			t.Fatalf("%d bytes: hasKey reports another key", length)
		}
		header := uintptr(1)
		if length >= longText {
			header = 9
		}
		offset := address(got) - uintptr(unsafe.Pointer(v))
		if want := unsafe.Sizeof(*v) + header; length > 0 && offset != want {
			t.Errorf("%d bytes: the key is at offset %d, want %d", length, offset, want)
		}
	}
}

// A tag stands in front of a value and leaves it, its key and its neighbours alone.
func TestTagStandsInFrontOfItsValue(t *testing.T) {
	checkTagged(t, func(i int) string { return strings.Repeat("k", i) })
	checkTagged(t, func(i int) int { return i })
	checkTagged(t, func(i int) struct{ parts [2]string } { // whose strings only the key leads to
		return struct{ parts [2]string }{[2]string{strings.Repeat("a", i), strings.Repeat("b", i)}}
	})
}

func checkTagged[K comparable](t *testing.T, key func(i int) K) {
	t.Helper()
	const greatest = 1<<64 - 1
	n := newNodes[K, words]()
	var values [300]*words
	for i := range values {
		values[i] = n.newValue(key(i), uint64(i%3)*(greatest/2)) // every third has none
		*values[i] = words{greatest, greatest}
	}
	runtime.GC()
	for i, v := range values {
		if n.keyOf(v) != key(i) || *v != (words{greatest, greatest}) {
			t.Fatalf("%T %d: key %v, value %v", key(i), i, n.keyOf(v), *v)
		}
		if i%3 > 0 && TagOf(v) != uint64(i%3)*(greatest/2) {
			t.Fatalf("%T %d: tag %d", key(i), i, TagOf(v))
		}
	}
}

// A text of 8 to 16 bytes is compared by its words. Each of its bytes counts.
func TestShortTextsAreComparedByTheirWords(t *testing.T) {
	n := newNodes[string, item]()
	for length := range 20 {
		text := strings.Repeat("k", length)
		at := textAt(n.newValue(text, 0))
		short, ok := shortTextIn(n, text)
		if ok != (length >= 8 && length <= 16) || ok && !short.isAt(at) {
			t.Errorf("%d bytes: short %t, and equal %t", length, ok, ok && short.isAt(at))
		}
		for i := 0; ok && i < length; i++ {
			other := text[:i] + "x" + text[i+1:]
			if short, _ := shortTextIn(n, other); short.isAt(at) {
				t.Errorf("%d bytes: the same as with another byte %d", length, i)
			}
		}
		longer := text + "k"
		if short, ok := shortTextIn(n, longer); ok && short.isAt(at) {
			t.Errorf("%d bytes: the same as with a byte more", length)
		}
	}
}

// shortTextIn returns text as a short text, if it is one.
func shortTextIn(n nodes[string, item], text string) (short shortText, ok bool) {
	if ok = n.isShort(&text); ok {
		short = shortTextOf(&text)
	}
	return short, ok
}

// An array of no elements contains nothing.
func TestArrayOfNoElementsIsAKey(t *testing.T) {
	c := newCache[[0]any](2, false)
	c.use([0]any{})
	if c.Load([0]any{}) == nil {
		t.Error("the key is not found")
	}
}

// words is a value of two words, like a cell of tb/cas.
type words [2]uint64

func TestValueAndTextFillTheirAllocation(t *testing.T) {
	const keys = 10_000
	var before, after runtime.MemStats
	var kept [keys]*words
	n := newNodes[string, words]()
	runtime.ReadMemStats(&before)
	for i := range kept {
		kept[i] = n.newValue("198.51.100.195x", 0) // 15 bytes and the length byte
	}
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(&kept)
	if n := (after.TotalAlloc - before.TotalAlloc) / keys; n < 32 || n > 40 { // and a little more
		t.Errorf("a value of 16 bytes and a key of 15 take %d bytes, want 32", n)
	}
}

func TestKeysShareNoMemoryWithTheCaller(t *testing.T) {
	type name string
	type route struct {
		host  string
		parts [2]string
		n     int
	}
	checkCopied(t, func(s string) string { return s })
	checkCopied(t, func(s string) name { return name(s) })
	checkCopied(t, func(s string) route { return route{s[:3], [2]string{s[3:5], s[5:]}, 7} })
	checkCopied(t, func(s string) [3]string { return [3]string{s, s[1:], s[2:]} })
	checkCopied(t, func(s string) struct{ r [1]route } {
		return struct{ r [1]route }{[1]route{{host: s}}}
	})
	type part struct {
		n    uint64
		text string
	}
	type whole struct {
		a, b uint64
		part part
	}
	checkCopied(t, func(s string) whole { return whole{7, 8, part{0, s}} })
	if n := len(newNodes[netip.Addr, item]().strings); n != 0 {
		t.Errorf("%d strings in a netip.Addr, want 0", n)
	}
}

// checkCopied inserts a key that lies in a buffer, and changes the buffer.
func checkCopied[K comparable](t *testing.T, key func(string) K) {
	t.Helper()
	buffer := []byte("0123456789")
	text := unsafe.String(&buffer[0], len(buffer))
	before := key(strings.Clone(text))
	c := newCache[K](2, false)
	c.use(key(text))
	copy(buffer, "9876543210")
	if c.Load(before) == nil || c.Load(key(text)) != nil {
		t.Errorf("%T: the key changed with the caller's memory", before)
	}
	c.replace(before)
	copy(buffer, "abcdefghij")
	if c.Load(before) == nil {
		t.Errorf("%T: the successor's key changed with the caller's memory", before)
	}
	c.use(key(strings.Clone("1111111111")))
	c.use(key(strings.Clone("2222222222")))
	if err := c.verify(); err != nil || c.Load(before) != nil {
		t.Errorf("%T: evicted: %v; %v", before, c.Load(before) == nil, err)
	}
}

// address returns the address of the bytes of s.
func address(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }
