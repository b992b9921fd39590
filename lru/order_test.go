package lru

import (
	"math/rand/v2"
	"testing"
)

func TestOrderLetsGoOfWhatWasPopped(t *testing.T) {
	var o order[string]
	for i := range 10 * chunkSlots {
		o.push(slot[string]{stamp: uint64(i), key: "k"})
	}
	for range 3 { // and three in the heap
		o.push(slot[string]{key: "k"})
	}
	first, chunks := o.run.chunks[0], o.run.chunks
	for o.len() > 0 {
		o.pop()
	}
	if first[0].key != "" || o.heap[:3][2].key != "" {
		t.Error("a popped key is kept")
	}
	for i, c := range chunks {
		if c != nil {
			t.Errorf("chunk %d is kept", i)
		}
	}
}

func TestOrderIsAPriorityQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for round := range 200 {
		var o order[int]
		there := map[int]bool{}
		for i := range 500 {
			stamp := rng.Uint64N(20)
			if round%2 == 0 {
				stamp += uint64(i / 3) // most of them in order
			}
			o.push(slot[int]{stamp: stamp, seq: uint64(i), key: i})
			there[i] = true
			switch rng.IntN(4) {
			case 0:
				delete(there, o.pop().key)
			case 1:
				key := rng.IntN(i + 1)
				o.remove(key)
				delete(there, key)
			}
		}
		last := slot[int]{}
		for o.len() > 0 {
			next := o.pop()
			if next.before(&last) || !there[next.key] {
				t.Fatalf("%+v came after %+v", next, last)
			}
			delete(there, next.key)
			last = next
		}
		if len(there) > 0 {
			t.Fatalf("%d slots got lost", len(there))
		}
	}
}

// Room is made for an eighth more, and not each time.
func TestHeapGrowsByAnEighth(t *testing.T) {
	var h heap[int]
	grown, room := 0, 0
	for i := range 10_000 {
		h.push(slot[int]{stamp: uint64(i)})
		if n := len(h); cap(h) > n+n/8+8 {
			t.Fatalf("room for %d slots with %d", cap(h), n)
		}
		if cap(h) != room {
			grown, room = grown+1, cap(h)
		}
	}
	if grown > 60 {
		t.Errorf("grown %d times", grown)
	}
}
