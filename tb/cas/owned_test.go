package cas

import (
	"math"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

func TestStringKeyLiesBehindItsBucket(t *testing.T) {
	o := newOwner[string]()
	for n := range 100 {
		key, b := o.own(strings.Repeat("k", n), 7, 1<<40)
		if key != strings.Repeat("k", n) || b.base != 7 || b.word.Load() != 1<<40 {
			t.Fatalf("%d bytes: got %q, %+v", n, key, b)
		}
		if n > 0 && address(key)-uintptr(unsafe.Pointer(b)) != unsafe.Sizeof(*b) {
			t.Errorf("%d bytes: the key is %d bytes behind the bucket", n,
				address(key)-uintptr(unsafe.Pointer(b)))
		}
		b.word.Store(math.MaxUint64) // must not reach the key
		if key != strings.Repeat("k", n) {
			t.Fatalf("%d bytes: the key became %q", n, key)
		}
	}
}

func TestStringKeyTakesNoMoreThanItNeeds(t *testing.T) {
	const keys = 10_000
	var before, after runtime.MemStats
	var kept [keys]*bucket
	o := newOwner[string]()
	runtime.ReadMemStats(&before)
	for i := range kept {
		_, kept[i] = o.own("203.0.113.195", 0, 0)
	}
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(&kept)
	if n := (after.TotalAlloc - before.TotalAlloc) / keys; n < 32 || n > 40 {
		t.Errorf("a bucket and a key of 13 bytes take %d bytes, want 32", n) // and others little
	}
}

func TestStringsInKeysAreCopied(t *testing.T) {
	type route struct {
		host  string
		parts [2]string
		n     int
	}
	buffer := strings.Repeat("x", 1000)
	o := newOwner[route]()
	given := route{buffer[:3], [2]string{buffer[3:5], buffer[5:9]}, 7}
	key, _ := o.own(given, 0, 0)
	if key != given {
		t.Errorf("%+v became %+v", given, key)
	}
	for _, s := range []string{key.host, key.parts[0], key.parts[1]} {
		if address(s)-address(buffer) < 1000 {
			t.Errorf("%q is part of the caller's string", s)
		}
	}
	type name string
	names := newOwner[name]()
	named, _ := names.own(name(buffer[:4]), 0, 0)
	if address(string(named))-address(buffer) < 1000 {
		t.Error("a named string is part of the caller's")
	}
	if n := len(newOwner[netip.Addr]().strings); n != 0 {
		t.Errorf("%d strings in a netip.Addr", n)
	}
}

func address(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }
