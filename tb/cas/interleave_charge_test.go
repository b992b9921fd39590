package cas

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A charge that was checked on a bucket that moved since is not decided on the old one.
func TestTakeAfterCheckMeetsMovedBucket(t *testing.T) {
	f := newFake(t)
	f.granted("a", 10)
	c, _ := f.Charge("a", 5)
	f.now = time.Second
	_, _ = c.Check(time.Unix(1, 0))
	b := f.cell("a")
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit)
	f.Reset("a")
	f.granted("a", 1)
	if d, _ := c.Take(time.Unix(1, 0)); !d.Allowed || d.Remaining != 4 {
		t.Errorf("after a reset: %+v, want 4 tokens left", d)
	}
	_, _ = c.Check(time.Unix(1, 0))
	b = f.cell("a")
	word = b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit)
	f.granted("a", 3) // moves
	if d, _ := c.Take(time.Unix(1, 0)); d.Allowed || d.Remaining != 1 {
		t.Errorf("after a move: %+v, want 1 token left", d)
	}
}

// What is sealed is left as it is, whether the bucket has been moved or is about to be, and
// whatever the key has by then is left alone.
func TestUndoMeetsSealMoveAndReset(t *testing.T) {
	f := newFake(t)
	charged := func() *Charge[string] {
		c, _ := f.Charge("a", 4)
		if d, err := c.Take(time.Unix(0, 0).Add(f.now)); err != nil || !d.Allowed {
			t.Fatalf("Take = %+v, %v", d, err)
		}
		return &c
	}
	one, two := charged(), charged()
	b := f.cell("a")
	word := b.word.Load() | sealBit
	b.word.Store(word) // the mover is stopped here
	one.Undo()
	if got := b.word.Load(); got != word {
		t.Errorf("sealed, and then undone: %x became %x", word, got)
	}
	f.granted("a", 1) // moves
	two.Undo()
	f.refused("a", 2)
	if got := b.word.Load(); got != word {
		t.Errorf("moved, and then undone: %x became %x", word, got)
	}
	f.now = 4 * time.Second
	three := charged() // of the successor
	f.Reset("a")
	f.granted("a", 9)
	three.Undo()
	f.refused("a", 2)
}

// The order of eviction has seen the charge that is undone, so the key is taken for one in
// debt until then, though it is full.
func TestUndoneKeyIsLookedAtTooLate(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(2), tb.WithOverflow(tb.RefuseNew))
	c, _ := f.Charge("undone", 8)
	_, _ = c.Take(time.Unix(0, 0))
	f.granted("other", 5)
	c.Undo()
	if d := f.allow("new", 1); d.Allowed || d.RetryAfter != 5*time.Second {
		t.Errorf("%+v, want it to be refused until the other is full", d)
	}
	f.now = 5 * time.Second
	f.granted("new", 9)
	f.now = 8 * time.Second
	f.granted("next", 1)
	if f.table.Load("undone") != nil {
		t.Error("the key that was undone is never evicted")
	}
}
