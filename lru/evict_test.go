package lru

import "testing"

// used are Values that are used while they are looked at: before is called at each look.
type used struct {
	items
	before func(*item)
}

func (v *used) Stamp(i *item) (stamp, state uint64) {
	if v.before != nil {
		v.before(i)
	}
	return v.items.Stamp(i)
}

// The first value is looked at, used, and then the second is used and looked at. What the
// first one was is no longer the least of the two then, nor was it before.
func TestRefusalTellsAnInstantThatWasTheLeast(t *testing.T) {
	var values used
	var m Map[string, *item]
	m.init(2, true, &values, 1)
	m.Insert("a", 0, 0, with("a", 1))
	m.Insert("b", 0, 0, with("b", 5))
	a, _ := m.Load("a")
	b, _ := m.Load("b")
	a.used.Store(10)
	values.before = func(i *item) {
		if i == b && b.used.Load() == 5 {
			a.used.Store(30)
			b.used.Store(20)
		}
	}
	until, outcome := m.Insert("c", 4, 0, with("c", 4))
	if outcome != Refused || until != 20 {
		t.Errorf("%v until %d, want refused until 20", outcome, until)
	}
}
