package algorithm

import "math/bits"

// slidingWindow counts the units of the present window and of the window before. It estimates the
// units of the last window-length of time: it assumes that the grants of the window before were
// spread evenly, and counts the share of them that the length still covers.
//
// The estimate errs in both directions. It is too low if the grants came late in their window:
// then up to twice the burst is granted in one length. It is too high if they came early: then a
// request is refused although the length has room.
type slidingWindow struct {
	limit    *Limit
	window   uint64 // the number of the present window
	previous uint64
	present  uint64
}

func (s *slidingWindow) Take(now, cost uint64) bool {
	window, elapsed := now/s.limit.window, now%s.limit.window
	switch window - s.window {
	case 0:
	case 1:
		s.window, s.previous, s.present = window, s.present, 0
	default:
		s.window, s.previous, s.present = window, 0, 0
	}
	if s.present+cost > s.limit.capacity {
		return false
	}
	// previous · (window-elapsed)/window ≤ room
	room := s.limit.capacity - s.present - cost
	if !inOrder(s.previous, s.limit.window-elapsed, room, s.limit.window) {
		return false
	}
	s.present += cost
	return true
}

// inOrder reports whether a·b ≤ c·d.
func inOrder(a, b, c, d uint64) bool {
	abHi, abLo := bits.Mul64(a, b)
	cdHi, cdLo := bits.Mul64(c, d)
	return abHi < cdHi || abHi == cdHi && abLo <= cdLo
}
