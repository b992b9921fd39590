package cas

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestBucketThatMovesDecidesAsTheReference(t *testing.T) {
	f := newFixture(t)
	reference := f.reference()
	moves := 0
	for i := range 1000 {
		var old *cell
		if i > 0 {
			old = f.cell("a")
		}
		got := f.allow("a", 1+i%10)
		want, _ := reference.AllowN(context.Background(), "a", float64(1+i%10))
		if got != want {
			t.Fatalf("call %d at %v: got %+v, want %+v", i, f.now, got, want)
		}
		if i > 0 && f.cell("a") != old {
			moves++
		}
		f.now += time.Duration(1+i%7) * f.deltaSpan() / 5
	}
	if moves < 100 {
		t.Errorf("%d moves, want at least 100", moves)
	}
}

// A caller whose reading is older than the bucket's time completes the move, and the bucket
// keeps its time. A refused caller does not complete the move.
func TestLateCallerOfASealedCellKeepsTheBucketsTime(t *testing.T) {
	for _, deltaIsZero := range []bool{true, false} {
		f := newFixture(t)
		f.granted("other", 1) // starts the clock
		f.now = 90 * time.Second
		if !deltaIsZero {
			f.granted("a", 1)
		}
		f.now = 100 * time.Second
		f.granted("a", 5)
		c := f.seal("a")
		sealed := c.word.Load()
		f.now = 50 * time.Second
		f.refused("a", 6)
		if f.cell("a") != c || c.word.Load() != sealed {
			t.Fatal("a refusal wrote")
		}
		f.granted("a", 5)
		if f.cell("a") == c {
			t.Fatal("the move was not completed")
		}
		f.now = 100 * time.Second
		f.refused("a", 1)
		f.now = 101 * time.Second
		f.granted("a", 1)
	}
}

// While the mover is stopped, a call at its time is refused. Then a late call drains the bucket.
// The refill must begin at the time of the late call, not at the time of the refusal.
func TestRefusalOnASealedCellSetsNoTime(t *testing.T) {
	f := newFixture(t)
	reference := f.reference()
	f.granted("a", 10)
	reference.AllowN(context.Background(), "a", 10)
	f.seal("a")
	for _, call := range []struct {
		reading time.Duration
		n       int
	}{
		{f.deltaSpan(), 11}, // refused
		{f.deltaSpan() - 5*time.Second, 10},
		{f.deltaSpan(), 6}, // refused
		{f.deltaSpan(), 5},
	} {
		f.now = call.reading
		got := f.allow("a", call.n)
		want, _ := reference.AllowN(context.Background(), "a", float64(call.n))
		if got != want {
			t.Fatalf("%d tokens at %v: got %+v, want %+v", call.n, call.reading, got, want)
		}
	}
}

func TestMoveKeepsNoMemoryOfTheCaller(t *testing.T) {
	f := newFixture(t, tb.WithMaxKeys(1))
	buffer := []byte("client-1")
	key := unsafe.String(&buffer[0], len(buffer))
	f.granted(key, 10)
	f.now = f.deltaSpan()
	f.granted(key, 10) // moves the bucket
	buffer[7] = '2'
	f.refused("client-1", 1)
	f.granted("client-3", 1) // evicts client-1
	if n := f.Len(); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}

func TestRefusalPastTheDeltaWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 1)
	f.now = f.deltaSpan() - 6*time.Second
	f.granted("a", 10)
	c := f.cell("a")
	word := c.word.Load()
	f.now = f.deltaSpan() + time.Second // the bucket has 7 tokens
	f.refused("a", 10)
	if f.cell("a") != c || c.word.Load() != word {
		t.Error("a refusal wrote")
	}
	f.granted("a", 7)
	if f.cell("a") == c {
		t.Error("the bucket did not move, so the test shows nothing")
	}
}

// A bucket moves at the instant of its last grant, where the supply is within a block. The bucket
// does not get these units again.
func TestMoveWithinABlock(t *testing.T) {
	var now time.Duration
	l, err := New[string](tb.Limit{Capacity: 10, Tokens: 1, Per: time.Microsecond},
		tb.WithClock(func() time.Time { return time.Unix(0, 0).Add(now) }))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Limiter: l, t: t}
	_, _ = f.Peek(t.Context(), "a") // starts the clock
	now = 7 * time.Nanosecond
	if now := f.layout().supply.at(f.clock.read()); startOf(blockOf(now)) == now {
		t.Fatal("no units are beyond the block")
	}
	f.granted("a", 4)
	c := f.seal("a")
	f.granted("a", 3)
	if f.cell("a") == c {
		t.Error("the bucket has not moved")
	}
	if level, _ := f.Level(t.Context(), "a"); level.Tokens != 3 {
		t.Errorf("%v tokens, want 3", level.Tokens)
	}
}

// A caller that was under way may put a cell that has ended in front of the table. The next grant
// puts the present one there, or each call on the key would take the slow path.
func TestSlowGrantMendsTheFront(t *testing.T) {
	f := newFixture(t)
	f.allow("a", 1)
	old, at := f.table.Recent("a")
	f.Reset("a")
	f.table.Remember(at.Hash, old, true)
	f.allow("a", 1)
	if c, _ := f.table.Recent("a"); c == old || c != f.cell("a") {
		t.Errorf("%p in front, want %p", c, f.cell("a"))
	}
}
