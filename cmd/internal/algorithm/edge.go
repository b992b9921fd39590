package algorithm

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Demo is the limit of the demonstration at the edge of a window. Its windows have 10 tokens in
// 2 s.
var Demo = tb.Limit{Capacity: 10, Tokens: 5, Per: time.Second}

// BurstAtEdge returns the instants of a burst of 24 requests around an edge of the windows of Demo:
// 12 before the edge and 12 from it on, 8 ms apart.
func BurstAtEdge() (instants []uint64, edge uint64) {
	const step = uint64(8 * time.Millisecond)
	edge = uint64(2 * time.Second)
	for i := range uint64(24) {
		instants = append(instants, edge-12*step+i*step)
	}
	return instants, edge
}

// Play returns the decisions of an algorithm under Demo on requests of one key. Each costs a token.
func Play(name string, instants []uint64) ([]Result, error) {
	l, err := NewLimit(Demo)
	if err != nil {
		return nil, err
	}
	limiter, err := New(name, l, 1)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(instants))
	for i, now := range instants {
		results[i] = limiter.Take("", now, unitsPerToken)
	}
	return results, nil
}
