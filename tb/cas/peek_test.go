package cas

import (
	"context"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// What decides without adding a key does not wait for a caller that has the lock of
// inserts: it would wait here for ever.
func TestOnlyInsertsTakeTheLock(t *testing.T) {
	for _, overflow := range []tb.Overflow{tb.ForgiveLeast, tb.RefuseNew} {
		f := newFake(t, tb.WithMaxKeys(1), tb.WithOverflow(overflow))
		f.granted("a", 3)
		calls := func(int) {
			f.granted("a", 1)
			f.refused("a", 10)
			f.refused("a", 11)
			f.refused("new", 11)
			_, _ = f.Peek(context.Background(), "a")
			_, _ = f.Peek(context.Background(), "new")
			c, _ := f.Charge("new", 1)
			_, _ = c.Check(time.Unix(0, 0))
			c, _ = f.Charge("new", 11)
			if d, _ := c.Take(time.Unix(0, 0)); d.Allowed || d.RetryAfter != tb.Never {
				t.Errorf("%v: a cost above the capacity: %+v", overflow, d)
			}
		}
		f.table.Pause(calls)
		b := f.cell("a")
		f.now = f.span() // and the next grant moves the bucket
		f.table.Pause(calls)
		if f.cell("a") == b {
			t.Errorf("%v: the bucket has not moved", overflow)
		}
		if f.Len() != 1 || f.Stats().RefusedNew != 0 {
			t.Errorf("%v: %+v", overflow, f.Stats())
		}
	}
}

// In a full table under RefuseNew a peek waits for no insert that is under way. It then goes
// by what the last one has seen.
func TestPeekOfANewKeyInAFullTable(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(2), tb.WithOverflow(tb.RefuseNew))
	peek := func(allowed bool, retry time.Duration, remaining int) {
		t.Helper()
		want := tb.Decision{Allowed: allowed, RetryAfter: retry, Remaining: remaining}
		if d, err := f.Peek(context.Background(), "new"); err != nil || d != want {
			t.Errorf("got %+v, %v, want %+v", d, err, want)
		}
	}
	f.granted("a", 3)
	peek(true, 0, 9)
	f.granted("b", 5)
	peek(false, 3*time.Second, 0)
	f.granted("a", 6) // which the table has not seen
	f.now = time.Second
	f.table.Pause(func(int) { peek(false, 2*time.Second, 0) })
	peek(false, 4*time.Second, 0)
	f.table.Pause(func(int) { peek(false, 4*time.Second, 0) })
	f.now = 5 * time.Second
	peek(true, 0, 9)
	f.granted("new", 1) // in the place of b
	peek(true, 0, 8)
	f.Reset("new")
	peek(true, 0, 9)
}
