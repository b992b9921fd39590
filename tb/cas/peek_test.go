package cas

import (
	"context"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A call that adds no key does not wait for the lock of inserts. If it did, this test would not
// end.
func TestOnlyInsertsTakeTheLock(t *testing.T) {
	for _, overflow := range []tb.Overflow{tb.ForgiveLeast, tb.RefuseNew} {
		f := newFixture(t, tb.WithMaxKeys(1), tb.WithOverflow(overflow))
		f.granted("a", 3)
		calls := func(int) {
			f.granted("a", 1)
			f.refused("a", 10)
			f.refused("a", 11)
			f.refused("new", 11)
			_, _ = f.Peek(context.Background(), "a")
			_, _ = f.Peek(context.Background(), "new")
			c, _ := f.Charge("new", 1)
			_, _ = c.Peek(time.Unix(0, 0))
			c, _ = f.Charge("new", 11)
			if d, _ := c.Take(time.Unix(0, 0)); d.Allowed || d.RetryAfter != tb.Never {
				t.Errorf("%v: Take above the capacity = %+v, want refused with Never", overflow, d)
			}
		}
		f.table.Pause(calls)
		c := f.cell("a")
		f.now = f.deltaSpan() // so the next grant moves the bucket
		f.table.Pause(calls)
		if f.cell("a") == c {
			t.Errorf("%v: the bucket has not moved", overflow)
		}
		if f.Len() != 1 || f.Stats().RefusedNew != 0 {
			t.Errorf("%v: %+v, want 1 key and no new key refused", overflow, f.Stats())
		}
	}
}

// Under RefuseNew, Peek on a new key does not wait for an insert under way. Meanwhile it returns
// what the last insert has published.
func TestPeekOfANewKeyInAFullTable(t *testing.T) {
	f := newFixture(t, tb.WithMaxKeys(2), tb.WithOverflow(tb.RefuseNew))
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
	f.granted("a", 6) // not an insert: it publishes nothing
	f.now = time.Second
	f.table.Pause(func(int) { peek(false, 2*time.Second, 0) })
	peek(false, 4*time.Second, 0)
	f.table.Pause(func(int) { peek(false, 4*time.Second, 0) })
	f.now = 5 * time.Second
	peek(true, 0, 9)
	f.granted("new", 1) // evicts b
	peek(true, 0, 8)
	f.Reset("new")
	peek(true, 0, 9)
}
