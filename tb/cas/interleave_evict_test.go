package cas

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// stopped is a ledger that lets other steps in just before a bucket is retired, after
// the evictor has read its state, and just after.
type stopped struct {
	*evictor
	before func(*cell)
	after  func()
}

func (s *stopped) Retire(b *cell, word, now uint64) bool {
	if f := s.before; f != nil {
		s.before = nil
		f(b)
	}
	retired := s.evictor.Retire(b, word, now)
	if f := s.after; f != nil && retired {
		s.after = nil
		f()
	}
	return retired
}

// stopEvictions has f's table call before at the next eviction.
func (f *fake) stopEvictions(keys int, before func(*cell)) {
	var values lru.Values[cell] = &stopped{evictor: f.evictor, before: before}
	f.table.Init(keys, false, values)
}

func TestTakeBeforeEvictionWins(t *testing.T) {
	f := newFake(t)
	f.stopEvictions(2, func(b *cell) {
		if d, _, s := b.take(&f.layout, f.clock.read(), 10*f.layout.scale); s != decided || !d.Allowed {
			t.Errorf("the full bucket did not give its tokens: %+v", d)
		}
	})
	f.granted("victim", 1)
	f.granted("other", 5)
	f.now = 2 * time.Second // victim is full, and about to be evicted when it is drained
	f.granted("new", 1)
	if d := f.allow("victim", 1); d.Allowed {
		t.Errorf("the drained bucket was forgotten: %+v", d)
	}
	if st := f.Stats(); st.EvictedFull != 0 || st.EvictedInDebt != 1 || st.Forgiven != 3 {
		t.Errorf("%+v: want the other bucket evicted, with 3 tokens missing", st)
	}
}

func TestTakeAfterEvictionStartsOver(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(1))
	f.granted("victim", 10)
	held := f.cell("victim") // a caller is stopped here, with the bucket in hand
	f.granted("new", 1)
	last := held.word.Load()
	for range 20 {
		if d, _, s := held.take(&f.layout, f.clock.read(), f.layout.scale); s != gone || d.Allowed {
			t.Fatalf("an evicted bucket decided %+v", d)
		}
	}
	if held.word.Load() != last || last != evicted {
		t.Errorf("an evicted bucket changed from %x to %x", last, held.word.Load())
	}
	f.granted("victim", 10) // the caller starts over: a new bucket
}

func TestCallerMeetsEvictedBucketInTheTable(t *testing.T) {
	f := newFake(t)
	f.stopEvictions(1, nil)
	f.granted("victim", 10)
	b := f.cell("victim")
	word := b.word.Load()
	if !f.evictor.Retire(b, word, f.clock.read()) {
		t.Fatal("not retired")
	}
	// The evictor is stopped before it removes the key.
	if _, _, s := b.take(&f.layout, f.clock.read(), 1); s != gone {
		t.Errorf("take on an evicted bucket: verdict %d, want gone", s)
	}
	if f.evictor.Retire(b, word, f.clock.read()) {
		t.Error("retired twice")
	}
}

func TestMoverMeetsEviction(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(1))
	f.granted("a", 10)
	b := f.cell("a")
	f.now = f.span()
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
	f.granted("new", 1)                       // evicts a, sealed as it is
	if b.word.Load() != evicted {
		t.Errorf("word %x, want evicted", b.word.Load())
	}
	f.move("a", b, f.clock.read(), f.layout.scale) // and goes on here
	if f.table.Load("a") != nil || f.Len() != 1 {
		t.Errorf("the mover brought an evicted key back; %d keys", f.Len())
	}
	if st := f.Stats(); st.EvictedFull != 1 || st.EvictedInDebt != 0 {
		t.Errorf("%+v: want one full bucket evicted", st)
	}
}

func TestResetMeetsHolderAndSeal(t *testing.T) {
	f := newFake(t)
	f.granted("a", 10)
	b := f.cell("a")
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
	f.Reset("a")
	if _, _, s := b.take(&f.layout, f.clock.read(), 1); s != gone {
		t.Errorf("take on a bucket that was reset: verdict %d, want gone", s)
	}
	f.granted("a", 10)
	f.now = time.Second
	f.granted("a", 1) // refilled: time was not moved ahead
	f.refused("a", 1)
}

func TestSealedBucketsAreOrderedByTheirState(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(2))
	f.granted("least", 1)
	f.granted("most", 10)
	b := f.cell("least")
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
	f.granted("new", 2)
	if st := f.Stats(); st.Forgiven != 1 || b.word.Load() != evicted {
		t.Errorf("%+v: want the sealed bucket evicted, with 1 token missing", st)
	}
	f.refused("most", 1)
}
