package algorithm

import "math/bits"

// slidingWindow counts the units of the present window and of the window before. It estimates the
// units of the last window-length of time: it assumes that the grants of the window before were
// spread evenly, and counts the share of them that the length still covers.
//
// The estimate errs in both directions. It is too low if the grants came late in their window:
// then up to twice the burst is granted in one length. It is too high if they came early: then a
// request is refused although the length has room.
func slidingWindow(l *Limit) Take {
	var window, previous, present uint64 // window is the number of the present one
	return func(now, cost uint64) bool {
		w, elapsed := now/l.window, now%l.window
		switch w - window {
		case 0:
		case 1:
			window, previous, present = w, present, 0
		default:
			window, previous, present = w, 0, 0
		}
		if present+cost > l.capacity {
			return false
		}
		// previous · (window-elapsed)/window ≤ room
		if !inOrder(previous, l.window-elapsed, l.capacity-present-cost, l.window) {
			return false
		}
		present += cost
		return true
	}
}

// inOrder reports whether a·b ≤ c·d.
func inOrder(a, b, c, d uint64) bool {
	abHi, abLo := bits.Mul64(a, b)
	cdHi, cdLo := bits.Mul64(c, d)
	return abHi < cdHi || abHi == cdHi && abLo <= cdLo
}
