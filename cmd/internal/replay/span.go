package replay

// span is the time that a log covers, and how far its lines are out of order. Times are in
// nanoseconds since 1970.
type span struct {
	requests    uint64
	first, last int64  // the earliest and the latest time
	previous    int64  // the time of the line before
	stepsBack   uint64 // lines whose time is before the time of the line before
	longestStep int64  // the longest step back, in nanoseconds
}

// add counts a request at a time, and reports whether it is in order.
func (s *span) add(ns int64) (inOrder bool) {
	if s.requests == 0 {
		s.first, s.last, s.previous = ns, ns, ns
	}
	s.requests++
	s.first, s.last = min(s.first, ns), max(s.last, ns)
	if inOrder = ns >= s.previous; !inOrder {
		s.stepsBack++
		s.longestStep = max(s.longestStep, s.previous-ns)
	}
	s.previous = ns
	return inOrder
}
