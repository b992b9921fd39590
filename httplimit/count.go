package httplimit

import "sync/atomic"

// stripes is how many copies of its counts a rule has, so that processors that serve
// requests at the same time do not wait for each other's cache lines.
const stripes = 16

// counts is what became of requests that a rule applied to. It is padded to 64 bytes, so
// that no two copies have counts on one cache line.
type counts struct {
	granted, refused, shadowGranted, shadowRefused, errors atomic.Uint64

	_ [3]uint64
}

// count returns the copy of e's counts that is c's. A pooled call more or less stays with
// one processor, and so does the copy.
func (c *call) count(e *entry) *counts { return &e.counts[c.stripe%stripes] }

// total adds up the copies.
func (s *state) total() (st RuleStats) {
	for i := range s.counts {
		n := &s.counts[i]
		st.Granted += n.granted.Load()
		st.Refused += n.refused.Load()
		st.ShadowGranted += n.shadowGranted.Load()
		st.ShadowRefused += n.shadowRefused.Load()
		st.Errors += n.errors.Load()
	}
	return st
}
