package cas_test

import (
	"context"
	"net/netip"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

func TestHitsAllocateNothing(t *testing.T) {
	hitsAllocateNothing(t, "203.0.113.195")
	hitsAllocateNothing(t, netip.MustParseAddr("2001:db8::1"))
	hitsAllocateNothing(t, route{"acme", 7})
	hitsAllocateNothing(t, uint64(42))
}

func hitsAllocateNothing[K comparable](t *testing.T, key K) {
	ctx := context.Background()
	clock := []tb.Option{tb.WithClock(time.Now)}
	for _, tt := range []struct {
		name    string
		limit   tb.Limit
		granted bool
		options []tb.Option
	}{
		{"granted", tb.Limit{Capacity: 1 << 30, Tokens: 1000, Per: time.Second}, true, nil},
		{"granted, fast", tb.Limit{Capacity: 1 << 30, Tokens: 1, Per: 1}, true, nil},
		{"refused", tb.Limit{Capacity: 1, Tokens: 1, Per: 24 * time.Hour}, false, nil},
		{"granted, clock", tb.Limit{Capacity: 1 << 30, Tokens: 1000, Per: time.Second}, true, clock},
		{"refused, clock", tb.Limit{Capacity: 1, Tokens: 1, Per: 24 * time.Hour}, false, clock},
	} {
		l, err := cas.New[K](tt.limit, tt.options...)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = l.Allow(ctx, key)
		check := func(d tb.Decision, err error) {
			if err != nil || d.Allowed != tt.granted {
				t.Fatalf("%T, %s: %+v, %v", key, tt.name, d, err)
			}
		}
		now := time.Now()
		for name, call := range map[string]func(){
			"Allow":    func() { check(l.Allow(ctx, key)) },
			"AllowN":   func() { check(l.AllowN(ctx, key, 1)) },
			"fraction": func() { check(l.AllowN(ctx, key, 0.5)) },
			"AllowAt":  func() { check(l.AllowAt(now, key, 1)) },
			"Peek":     func() { check(l.Peek(ctx, key)) },
		} {
			if name == "fraction" && !tt.granted {
				_, _ = l.AllowN(ctx, key, 1)
			}
			if n := testing.AllocsPerRun(100, call); n != 0 {
				t.Errorf("%T, %s: %s allocates %v times, want 0", key, tt.name, name, n)
			}
		}
	}
}

func TestInsertAllocations(t *testing.T) {
	keys := make([]string, 10_002)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	for _, bound := range []int{100, 1 << 20} { // with eviction, and with room
		l := cas.NewTokenBucket(10, 1, tb.WithMaxKeys(bound))
		i := 0
		n := testing.AllocsPerRun(10_000, func() {
			i++
			d, err := l.Allow(context.Background(), keys[i])
			if err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		})
		if n > 4 {
			t.Errorf("bound %d: an insert allocates %v times, want at most 4", bound, n)
		}
	}
}

func TestMemoryPerKey(t *testing.T) {
	if testing.Short() {
		t.Skip("many keys take a while")
	}
	const keys, most = 200_000, 128
	ctx := context.Background()
	before := liveHeap()
	l := cas.NewTokenBucket(10, 0.001) // so that no key is idle before the end
	for i := range keys {
		if d, err := l.Allow(ctx, "client-"+strconv.Itoa(1_000_000+i)); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	perKey := float64(liveHeap()-before) / keys
	if l.Len() != keys {
		t.Fatalf("%d keys, want %d", l.Len(), keys)
	}
	t.Logf("%.1f bytes for each key of 14 bytes, the table included", perKey)
	if perKey > most && bits64 {
		t.Errorf("%.1f bytes a key, want at most %d", perKey, most)
	}
}

// A change of the limit takes memory as long as a bucket of an earlier limit may not be full.
func TestMemoryPerChange(t *testing.T) {
	const changes, most = 100_000, 256
	now := time.Unix(0, 0)
	l := cas.NewTokenBucket(10, 1, tb.WithClock(func() time.Time { return now }))
	_, _ = l.Allow(context.Background(), "a")
	before := liveHeap()
	for i := range changes {
		if err := l.SetLimit(tb.Limit{Capacity: 10 + i%2, Tokens: 1, Per: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	perChange := float64(liveHeap()-before) / changes
	runtime.KeepAlive(l)
	t.Logf("%.1f bytes for each change", perChange)
	if perChange > most {
		t.Errorf("%.1f bytes a change, want at most %d", perChange, most)
	}
}

const bits64 = ^uint(0)>>32 > 0

// liveHeap returns the bytes on the heap after a collection.
func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A decision makes two calls, to the look-up and to the CAS loop. All other functions on its path
// must be inlined.
func TestFastPathIsInlined(t *testing.T) {
	if !bits64 {
		t.Skip("without a 64-bit multiplication the arithmetic is too long to inline")
	}
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Skipf("the compiler failed: %v\n%s", err, out)
	}
	for _, f := range []string{
		"(*supply).at", "(*ratio).times", "wide.after", "wide.plus", "(*layout).step", "(*layout).unpack",
		"(*layout).fits", "(*layout).pack", "(*layout).grant", "(*layout).tokensIn", "isSealed",
	} {
		calls := regexp.MustCompile(`cell\.go:\d+:\d+: inlining call to ` + regexp.QuoteMeta(f))
		if !calls.Match(out) {
			t.Errorf("%s is not inlined into the CAS loop", f)
		}
	}
}
