package cas

import (
	"testing"
	"time"
)

// A charge that was checked on a bucket that moved since is not decided on the old one.
func TestTakeAfterCheckMeetsMovedBucket(t *testing.T) {
	f := newFake(t)
	f.granted("a", 10)
	c, _ := f.Charge("a", 5)
	f.now = time.Second
	_, _ = c.Check(time.Unix(1, 0))
	b := f.bucket("a")
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit)
	f.Reset("a")
	f.granted("a", 1)
	if d, _ := c.Take(time.Unix(1, 0)); !d.Allowed || d.Remaining != 4 {
		t.Errorf("after a reset: %+v, want 4 tokens left", d)
	}
	_, _ = c.Check(time.Unix(1, 0))
	b = f.bucket("a")
	word = b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit)
	f.granted("a", 3) // moves
	if d, _ := c.Take(time.Unix(1, 0)); d.Allowed || d.Remaining != 1 {
		t.Errorf("after a move: %+v, want 1 token left", d)
	}
}
