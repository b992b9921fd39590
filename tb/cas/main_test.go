package cas_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"weak"

	"go.uber.org/goleak"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// TestMain fails if a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A limiter needs no Close: it starts no goroutine, even with idle keys, and nothing refers to
// it after the application has dropped it.
func TestDroppedLimiterIsCollected(t *testing.T) {
	for range 10 {
		dropped := droppedLimiter(t)
		goleak.VerifyNone(t)
		runtime.GC()
		if l := dropped.Value(); l != nil {
			t.Fatalf("the limiter with %d keys was not collected", l.Len())
		}
	}
}

// droppedLimiter returns a weak pointer to a limiter that has granted, refused and evicted.
// Nothing else refers to it.
func droppedLimiter(t *testing.T) weak.Pointer[cas.TokenBucket] {
	t.Helper()
	l := cas.NewTokenBucket(1, 1e-9, tb.WithMaxKeys(50))
	for i := range 200 {
		if _, err := l.Allow(context.Background(), strconv.Itoa(i/2)); err != nil {
			t.Fatal(err)
		}
	}
	if s := l.Stats(); s.Keys != 50 || s.EvictedInDebt != 50 {
		t.Fatalf("%+v, want 50 keys, and 50 evicted in debt", s)
	}
	return weak.Make(l)
}
