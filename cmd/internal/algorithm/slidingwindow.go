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
	window   uint64 // the number of the present window
	previous uint64
	present  uint64
}

func (s *slidingWindow) take(l *Limit, now, cost uint64) Result {
	window, elapsed := now/l.window, now%l.window
	switch window - s.window {
	case 0:
	case 1:
		*s = slidingWindow{window, s.present, 0}
	default:
		*s = slidingWindow{window: window}
	}
	if s.present+cost > l.capacity {
		return Result{}
	}
	// previous · (window-elapsed)/window ≤ room
	room := l.capacity - s.present - cost
	if !inOrder(s.previous, l.window-elapsed, room, l.window) {
		return Result{}
	}
	s.present += cost
	return Result{Granted: true}
}

// inOrder reports whether a·b ≤ c·d.
func inOrder(a, b, c, d uint64) bool {
	abHi, abLo := bits.Mul64(a, b)
	cdHi, cdLo := bits.Mul64(c, d)
	return abHi < cdHi || abHi == cdHi && abLo <= cdLo
}

func (s *slidingWindow) idle(l *Limit, now uint64) bool { return now/l.window > s.window+1 }

func (s *slidingWindow) heap() int { return 0 }
