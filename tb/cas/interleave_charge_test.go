package cas

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Take does not use the cell that Peek found if that cell has been replaced since.
func TestTakeDoesNotUseACheckedCellThatWasReplaced(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 10)
	c, _ := f.Charge("a", 5)
	f.now = time.Second
	_, _ = c.Peek(time.Unix(1, 0))
	f.seal("a")
	f.Reset("a")
	f.granted("a", 1)
	if d, _ := c.Take(time.Unix(1, 0)); !d.Allowed || d.Remaining != 4 {
		t.Errorf("Take after a reset = %+v, want 4 tokens left", d)
	}
	_, _ = c.Peek(time.Unix(1, 0))
	f.seal("a")
	f.granted("a", 3) // moves the bucket
	if d, _ := c.Take(time.Unix(1, 0)); d.Allowed || d.Remaining != 1 {
		t.Errorf("Take after a move = %+v, want 1 token left", d)
	}
}

// Cancel changes neither a sealed cell nor the cell that has replaced it.
func TestUndoAfterSealMoveAndResetChangesNothing(t *testing.T) {
	f := newFixture(t)
	take := func() *Charge[string] {
		c, _ := f.Charge("a", 4)
		if d, err := c.Take(time.Unix(0, 0).Add(f.now)); err != nil || !d.Allowed {
			t.Fatalf("Take = %+v, %v", d, err)
		}
		return &c
	}
	first, second := take(), take()
	c := f.seal("a")
	sealed := c.word.Load()
	first.Cancel()
	if got := c.word.Load(); got != sealed {
		t.Errorf("Cancel on a sealed cell changed its word from %x to %x", sealed, got)
	}
	f.granted("a", 1) // moves the bucket
	second.Cancel()
	f.refused("a", 2)
	if got := c.word.Load(); got != sealed {
		t.Errorf("Cancel after a move changed the old word from %x to %x", sealed, got)
	}
	f.now = 4 * time.Second
	third := take() // from the successor
	f.Reset("a")
	f.granted("a", 9)
	third.Cancel()
	f.refused("a", 2)
}

// The order of eviction keeps the stamp from before Cancel. So the key is evicted only when that
// stamp has passed, although its bucket is full.
func TestUndoneKeyIsEvictedLate(t *testing.T) {
	f := newFixture(t, tb.WithMaxKeys(2), tb.WithOverflow(tb.RefuseNew))
	c, _ := f.Charge("undone", 8)
	_, _ = c.Take(time.Unix(0, 0))
	f.granted("other", 5)
	c.Cancel()
	if d := f.allow("new", 1); d.Allowed || d.RetryAfter != 5*time.Second {
		t.Errorf("%+v, want refused until the bucket of other is full", d)
	}
	f.now = 5 * time.Second
	f.granted("new", 9)
	f.now = 8 * time.Second
	f.granted("next", 1)
	if f.table.Load("undone") != nil {
		t.Error("the key undone was not evicted")
	}
}
