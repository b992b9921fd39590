package unit

import "sync/atomic"

// Sum is a sum of tokens. The zero Sum is 0. All methods are safe for concurrent use.
type Sum struct{ whole, millionths atomic.Uint64 } // in millionths alone, it could overflow

// Add adds a number of units, scale of which are a token.
func (s *Sum) Add(units, scale uint64) {
	s.whole.Add(units / scale)
	if part := units % scale; part > 0 {
		s.millionths.Add(part * (MaxScale / scale))
	}
}

// Tokens returns the sum.
func (s *Sum) Tokens() float64 {
	return float64(s.whole.Load()) + float64(s.millionths.Load())/MaxScale
}
