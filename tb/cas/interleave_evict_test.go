package cas

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

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
