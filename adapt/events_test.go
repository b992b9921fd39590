package adapt_test

import (
	"container/heap"
	"time"
)

// events is the future, in the order of time.
type events struct {
	now  time.Duration
	list eventHeap
	made int
}

type event struct {
	at     time.Duration
	number int // of two events at one instant the lower number comes first
	happen func()
}

func (e *events) add(at time.Duration, happen func()) {
	e.made++
	heap.Push(&e.list, event{at, e.made, happen})
}

func (e *events) until(end time.Duration) {
	for len(e.list) > 0 && e.list[0].at < end {
		next := heap.Pop(&e.list).(event)
		e.now = next.at
		next.happen()
	}
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}

func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) }

func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
