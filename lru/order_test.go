package lru

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestOrderKeepsNoPoppedEntry(t *testing.T) {
	var o order[int]
	for i := range 10 * chunkEntries {
		o.put(entry[int]{uint64(i), uint64(i), new(int)})
	}
	for range 3 { // these go to the heap
		o.put(entry[int]{value: new(int)})
	}
	sorted := slices.Clone(o.sorted.chunks)
	kept := o.sorted.chunks // the array of the slice
	for o.len() > 0 {
		o.pop()
	}
	for i, c := range slices.Concat(sorted, o.heap.chunks) {
		for j := range c {
			if c[j].value != nil {
				t.Fatalf("entry %d of chunk %d is kept", j, i)
			}
		}
	}
	for i, c := range kept {
		if c != nil {
			t.Errorf("chunk %d is kept", i)
		}
	}
}

func TestOrderIsAPriorityQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for round := range 200 {
		var o order[int]
		remaining := map[int]bool{}
		for i := range 500 {
			stamp := rng.Uint64N(20)
			if round%2 == 0 {
				stamp += uint64(i / 3) // most entries come in order
			}
			o.put(entry[int]{stamp, uint64(i), &i})
			remaining[i] = true
			if rng.IntN(3) == 0 {
				delete(remaining, *o.pop().value)
			}
		}
		last := entry[int]{}
		for o.len() > 0 {
			next := o.pop()
			if next.before(&last) || !remaining[*next.value] {
				t.Fatalf("%+v came after %+v", next, last)
			}
			delete(remaining, *next.value)
			last = next
		}
		if len(remaining) > 0 {
			t.Fatalf("%d entries were not popped", len(remaining))
		}
	}
}

// The heap has as many chunks as its entries need, and at most one spare chunk. Without the spare
// chunk, a push and a pop around the end of a chunk would allocate and free it each time.
func TestHeapGrowsAndShrinksByTheChunk(t *testing.T) {
	var h heap[int]
	checkChunks := func() {
		t.Helper()
		needed := (h.n + chunkEntries - 1) / chunkEntries
		if got := len(h.chunks); got < needed || got > needed+1 {
			t.Fatalf("%d chunks for %d entries, want %d and at most one more", got, h.n, needed)
		}
	}
	for i := range 20 * chunkEntries {
		h.push(entry[int]{stamp: uint64(i)})
		checkChunks()
	}
	for h.n > 0 {
		h.pop()
		checkChunks()
	}
	for i, c := range h.chunks[len(h.chunks):cap(h.chunks)] {
		if c != nil {
			t.Fatalf("the array behind the slice keeps chunk %d", len(h.chunks)+i)
		}
	}
	h.push(entry[int]{})
	chunks := testing.AllocsPerRun(100, func() {
		for range chunkEntries {
			h.push(entry[int]{})
		}
		for range chunkEntries {
			h.pop()
		}
	})
	if chunks > 0 {
		t.Errorf("%v allocations around the end of a chunk, want 0", chunks)
	}
}
