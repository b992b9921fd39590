package mutex_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"weak"

	"go.uber.org/goleak"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// There is no Close: a limiter has no goroutine, not even while it holds idle keys, and
// nothing refers to one that its users dropped.
func TestDroppedLimiterIsCollected(t *testing.T) {
	for range 10 {
		dropped := used(t)
		goleak.VerifyNone(t)
		runtime.GC()
		if l := dropped.Value(); l != nil {
			t.Fatalf("a limiter of %d keys is still there", l.Len())
		}
	}
}

// used returns a limiter, with nothing holding it, that has granted, refused and evicted.
func used(t *testing.T) weak.Pointer[mutex.TokenBucket] {
	t.Helper()
	l := mutex.NewTokenBucket(1, 1e-9, tb.WithMaxKeys(50))
	for i := range 200 {
		if _, err := l.Allow(context.Background(), strconv.Itoa(i/2)); err != nil {
			t.Fatal(err)
		}
	}
	if s := l.Stats(); s.Keys != 50 || s.EvictedInDebt != 50 {
		t.Fatalf("%+v, want 50 keys and as many evicted", s)
	}
	return weak.Make(l)
}
