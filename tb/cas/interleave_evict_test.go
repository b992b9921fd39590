package cas

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// stoppedEvictor is an evictor that is stopped once: after it has read a cell's word and before
// it retires the cell, it calls meanwhile.
type stoppedEvictor struct {
	*evictor
	meanwhile func(*cell)
}

func (e *stoppedEvictor) Retire(c *cell, stamp, word, now uint64) bool {
	if f := e.meanwhile; f != nil {
		e.meanwhile = nil
		f(c)
	}
	return e.evictor.Retire(c, stamp, word, now)
}

// stopNextEviction empties the table, sets its bound, and calls meanwhile during the next
// eviction.
func (f *fixture) stopNextEviction(keys int, meanwhile func(*cell)) {
	var values lru.Values[cell] = &stoppedEvictor{f.evictor, meanwhile}
	f.table.Init(keys, false, values)
}

func TestTakeBeforeEvictionWins(t *testing.T) {
	f := newFixture(t)
	f.stopNextEviction(2, func(c *cell) {
		if d, ok := f.take(c, 10); !ok || !d.Allowed {
			t.Errorf("%+v, %t, want the tokens of the full bucket", d, ok)
		}
	})
	f.granted("victim", 1)
	f.granted("other", 5)
	f.now = 2 * time.Second // victim is full, and about to be evicted when it is drained
	f.granted("new", 1)
	if d := f.allow("victim", 1); d.Allowed {
		t.Errorf("the drained bucket was evicted: %+v", d)
	}
	if st := f.Stats(); st.EvictedFull != 0 || st.EvictedInDebt != 1 || st.Forgiven != 3 {
		t.Errorf("%+v: want the other bucket evicted, with 3 tokens missing", st)
	}
}

func TestTakeAfterEvictionStartsOver(t *testing.T) {
	f := newFixture(t, tb.WithMaxKeys(1))
	f.granted("victim", 10)
	held := f.cell("victim") // a caller is stopped here, after its look-up
	f.granted("new", 1)
	last := held.word.Load()
	for range 20 {
		if d, ok := f.take(held, 1); ok || d.Allowed {
			t.Fatalf("take on an evicted cell: %+v, %t, want no decision", d, ok)
		}
	}
	if held.word.Load() != last || last != evicted {
		t.Errorf("the word of an evicted cell changed from %x to %x", last, held.word.Load())
	}
	f.granted("victim", 10) // the caller starts over and inserts the key
}

func TestEvictedCellIsGoneBeforeItLeavesTheTable(t *testing.T) {
	f := newFixture(t, tb.WithMaxKeys(1))
	f.granted("victim", 10)
	c := f.cell("victim")
	stamp, word, _ := f.evictor.Stamp(c)
	if !f.evictor.Retire(c, stamp, word, f.clock.read()) {
		t.Fatal("not retired")
	}
	// The evictor is stopped before it removes the key.
	if d, ok := f.take(c, 1); ok {
		t.Errorf("take on an evicted cell: %+v, want no decision", d)
	}
	if f.evictor.Retire(c, stamp, word, f.clock.read()) {
		t.Error("retired twice")
	}
}

func TestMoveAfterEvictionBringsNoKeyBack(t *testing.T) {
	f := newFixture(t, tb.WithMaxKeys(1))
	f.granted("a", 10)
	f.now = f.deltaSpan()
	c := f.seal("a")
	f.granted("new", 1) // evicts the sealed cell
	if c.word.Load() != evicted {
		t.Errorf("word %x, want evicted", c.word.Load())
	}
	p := f.placeOf("a")
	if p.replace(c, content{base: c.base}) != nil { // the mover goes on
		t.Error("the evicted cell was replaced")
	}
	if f.table.Load("a") != nil || f.Len() != 1 {
		t.Errorf("%d keys, want only new", f.Len())
	}
	if st := f.Stats(); st.EvictedFull != 1 || st.EvictedInDebt != 0 {
		t.Errorf("%+v: want one full bucket evicted", st)
	}
}

func TestResetEndsASealedCell(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 10)
	c := f.seal("a")
	f.Reset("a")
	if d, ok := f.take(c, 1); ok {
		t.Errorf("take after a reset: %+v, want no decision", d)
	}
	f.granted("a", 10)
	f.now = time.Second
	f.granted("a", 1) // the new bucket did not start ahead of the clock
	f.refused("a", 1)
}

func TestSealedCellIsRankedByItsWord(t *testing.T) {
	f := newFixture(t, tb.WithMaxKeys(2))
	f.granted("least", 1)
	f.granted("most", 10)
	c := f.seal("least")
	f.granted("new", 2)
	if st := f.Stats(); st.Forgiven != 1 || c.word.Load() != evicted {
		t.Errorf("%+v: want the sealed cell evicted, with 1 token missing", st)
	}
	f.refused("most", 1)
}
