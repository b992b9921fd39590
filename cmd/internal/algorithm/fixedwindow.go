package algorithm

// fixedWindow counts the units that were granted since the window began. All keys have the same
// windows.
//
// A key can take the whole burst at the end of a window and again at the beginning of the next one:
// twice the burst in an instant.
type fixedWindow struct {
	window  uint64 // its number
	granted uint64
}

func (s *fixedWindow) take(l *Limit, now, cost uint64) Result {
	if window := now / l.window; window != s.window {
		*s = fixedWindow{window: window}
	}
	if s.granted+cost > l.capacity {
		return Result{}
	}
	s.granted += cost
	return Result{Granted: true}
}

func (s *fixedWindow) idle(l *Limit, now uint64) bool { return now/l.window > s.window }

func (s *fixedWindow) heap() int { return 0 }
