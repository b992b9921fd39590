package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// The benchmarks compare tb/cas with this implementation, so it must not waste time on a hit.
func TestHitsAllocateNothing(t *testing.T) {
	for _, limit := range []tb.Limit{
		{Capacity: 1 << 30, Tokens: 1000, Per: time.Second},
		{Capacity: 1, Tokens: 1, Per: 24 * time.Hour},
	} {
		l, err := mutex.New[string](limit)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = l.Allow(context.Background(), "a")
		if n := testing.AllocsPerRun(100, func() { _, _ = l.Allow(context.Background(), "a") }); n > 0 {
			t.Errorf("%+v: a call on a known key allocates %v objects", limit, n)
		}
	}
}
