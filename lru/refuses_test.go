package lru

import "testing"

// refusesWhileRetiring records what Refuses reports while a value is retired.
type refusesWhileRetiring struct {
	itemValues
	m    *Map[int, item]
	full []bool
}

func (v *refusesWhileRetiring) Retire(i *item, stamp, state, now uint64) bool {
	_, full := v.m.Refuses(0)
	v.full = append(v.full, full)
	return v.itemValues.Retire(i, stamp, state, now)
}

// An insert that drops several idle keys leaves room. Refuses must not report, while the keys go,
// that the table is full: a key that has just gone would be refused, although it is not refused
// before the insert, nor after it.
func TestRefusesWhileIdleKeysAreDropped(t *testing.T) {
	v := &refusesWhileRetiring{m: new(Map[int, item])}
	v.m.Init(3, true, v)
	for k := range 3 {
		v.m.Insert(k, Spot{}, 1, 0, 0, setStamp(uint64(10+k)))
	}
	if _, full := v.m.Refuses(0); !full {
		t.Fatal("the table is not full")
	}
	v.m.Insert(3, Spot{}, 100, 50, 0, setStamp(110))
	if len(v.full) != 3 || v.m.Len() != 1 {
		t.Fatalf("%d keys were dropped and %d are left, want 3 and 1", len(v.full), v.m.Len())
	}
	for i, full := range v.full {
		if full {
			t.Errorf("while key %d is dropped, the table is full", i)
		}
	}
}
