package algorithm

// fixedWindow counts the units that were granted since the window began. All keys have the same
// windows.
//
// A key can take the whole burst at the end of a window and again at the beginning of the next one:
// twice the burst in an instant.
type fixedWindow struct {
	limit   *Limit
	window  uint64 // its number
	granted uint64
}

func (s *fixedWindow) Take(now, cost uint64) bool {
	if window := now / s.limit.window; window != s.window {
		s.window, s.granted = window, 0
	}
	if s.granted+cost > s.limit.capacity {
		return false
	}
	s.granted += cost
	return true
}
