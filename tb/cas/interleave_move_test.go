package cas

import (
	"context"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/internal/proof/lockstep"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestCallerCompletesAStalledMove(t *testing.T) {
	for _, late := range []time.Duration{0, 5 * time.Second, 100 * time.Hour} {
		f := newFake(t)
		twin := f.twin()
		f.granted("a", 7)
		twin.AllowN(context.Background(), "a", 7)
		for range 8 {
			f.now += f.span()
			b := f.cell("a")
			word := b.word.Load()
			b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
			if _, _, s := b.take(&f.layout, f.clock.read(), 1); s != moved {
				t.Fatalf("take on a sealed bucket: verdict %d, want moved", s)
			}
			for _, peek := range []bool{true, false} {
				var got, want tb.Decision
				f.now -= late
				if peek {
					got, _ = f.Peek(context.Background(), "a")
					want, _ = twin.Peek(context.Background(), "a")
				} else {
					got = f.allow("a", 3)
					want, _ = twin.AllowN(context.Background(), "a", 3)
				}
				f.now += late
				if got != want {
					t.Fatalf("late by %v: got %+v, want %+v", late, got, want)
				}
			}
			if f.cell("a") == b {
				t.Fatal("the move was not completed")
			}
		}
	}
}

func TestDeltaRunsOut(t *testing.T) {
	f := newFake(t)
	twin := f.twin()
	moves := 0
	for i := range 1000 {
		var old *cell
		if i > 0 {
			old = f.cell("a")
		}
		got := f.allow("a", 1+i%10)
		want, _ := twin.AllowN(context.Background(), "a", 1+i%10)
		if got != want {
			t.Fatalf("call %d at %v: got %+v, want %+v", i, f.now, got, want)
		}
		if i > 0 && f.cell("a") != old {
			moves++
		}
		f.now += time.Duration(1+i%7) * f.span() / 5
	}
	if moves < 100 {
		t.Errorf("%d moves, want at least 100: the test shows nothing", moves)
	}
}

func TestOnlyOneOfTwoMoversSucceeds(t *testing.T) {
	f := newFake(t)
	f.granted("a", 10)
	b := f.cell("a")
	f.now = f.span()
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit)
	now := f.clock.read()

	if d, _, ok := f.move("a", b, now, f.layout.scale); !ok || !d.Allowed || d.Remaining != 9 {
		t.Fatalf("the first mover got %+v, %v, want a grant", d, ok)
	}
	first := f.cell("a")
	f.granted("a", 9) // on the successor
	if _, _, ok := f.move("a", b, now, f.layout.scale); ok || f.cell("a") != first {
		t.Fatal("a late mover replaced the successor, and what was taken from it is forgotten")
	}
	f.refused("a", 1)
	if _, _, s := b.take(&f.layout, now, f.layout.scale); s != moved {
		t.Errorf("take on the old bucket: verdict %d, want moved", s)
	}
}

func TestTakePastTheDeltaSeals(t *testing.T) {
	f := newFake(t)
	f.granted("a", 10)
	b := f.cell("a")
	f.now = f.span()
	if _, _, s := b.take(&f.layout, f.clock.read(), 1); s != moved || !isSealed(b.word.Load()) {
		t.Errorf("verdict %d, word %x, want moved and sealed", s, b.word.Load())
	}
}

// A helper whose reading is older than the bucket does not take it back in time, and one
// that is refused does not help.
func TestLateHelperKeepsTheBucketsTime(t *testing.T) {
	for _, deficitAtBase := range []bool{true, false} {
		f := newFake(t)
		f.granted("other", 1) // starts the clock
		f.now = 90 * time.Second
		if !deficitAtBase {
			f.granted("a", 1)
		}
		f.now = 100 * time.Second
		f.granted("a", 5)
		b := f.cell("a")
		word := b.word.Load()
		b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
		f.now = 50 * time.Second
		f.refused("a", 6)
		if f.cell("a") != b || b.word.Load() != word|sealBit {
			t.Fatal("a refusal wrote")
		}
		f.granted("a", 5)
		if f.cell("a") == b {
			t.Fatal("the move was not completed")
		}
		f.now = 100 * time.Second
		f.refused("a", 1)
		f.now = 101 * time.Second
		f.granted("a", 1)
	}
}

// While the mover is stopped, a call at its time is refused, and then a late one drains
// the bucket. What the bucket is given from then on must not begin at the time of the
// refusal.
func TestRefusedHelperLeavesNoTime(t *testing.T) {
	f := newFake(t)
	twin := f.twin()
	f.granted("a", 10)
	twin.AllowN(context.Background(), "a", 10)
	b := f.cell("a")
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
	for _, call := range []struct {
		at time.Duration
		n  int
	}{{f.span(), 11}, {f.span() - 5*time.Second, 10}, {f.span(), 6}, {f.span(), 5}} {
		f.now = call.at
		got := f.allow("a", call.n)
		want, _ := twin.AllowN(context.Background(), "a", call.n)
		if got != want {
			t.Fatalf("%d tokens at %v: got %+v, want %+v", call.n, call.at, got, want)
		}
	}
}

func TestMoveKeepsNoMemoryOfTheCaller(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(1))
	buffer := []byte("client-1")
	key := unsafe.String(&buffer[0], len(buffer))
	f.granted(key, 10)
	f.now = f.span()
	f.granted(key, 10) // moves
	buffer[7] = '2'    // the buffer is used again
	f.refused("client-1", 1)
	f.granted("client-3", 1) // evicts client-1
	if n := f.Len(); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}

// One caller's grant is the last that fits the delta, and the other's does not fit.
func TestGrantAndSealAtTheSameTime(t *testing.T) {
	f := newFake(t)
	end := time.Unix(0, 0).Add(f.span() - 3*time.Second)
	const rounds = 20_000
	keys := make([]string, rounds)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
		_, _ = f.AllowAt(time.Unix(0, 0), keys[i], 1)
	}
	lockstep.Run(rounds, func(i, round int) {
		_, _ = f.AllowAt(end.Add(time.Duration(2*i-1)*time.Millisecond), keys[round], 3)
	}, func(round int) {
		if d, _ := f.AllowAt(end, keys[round], 5); d.Allowed || d.Remaining != 4 {
			t.Errorf("round %d: a grant was lost: %+v", round, d)
		}
	})
}

func TestRefusalsOnASealedEdgeDoNotMove(t *testing.T) {
	f := newFake(t)
	f.granted("a", 1)
	f.now = f.span() - 6*time.Second
	f.granted("a", 10)
	b := f.cell("a")
	word := b.word.Load()
	f.now = f.span() + time.Second // beyond the delta, and only 7 tokens there
	f.refused("a", 10)
	if f.cell("a") != b || b.word.Load() != word {
		t.Error("a refusal wrote")
	}
	f.granted("a", 7)
	if f.cell("a") == b {
		t.Error("the bucket did not move: the test shows nothing")
	}
}
