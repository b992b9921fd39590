package cas

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// The time of a Bucket begins with its first grant, not with a refusal before it.
func TestFirstRefusalOfABucketLeavesNoTime(t *testing.T) {
	b, err := NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for _, call := range []struct {
		at      time.Duration
		n       int
		granted bool
	}{
		{10 * time.Second, 11, false},
		{5 * time.Second, 10, true},
		{10 * time.Second, 6, false},
		{10 * time.Second, 5, true},
	} {
		d, err := b.AllowAt(start.Add(call.at), call.n)
		if err != nil || d.Allowed != call.granted {
			t.Errorf("%d tokens at %v: %+v, %v", call.n, call.at, d, err)
		}
	}
}
