package algorithm

import "math/bits"

// slidingWindow counts the tokens of the present window and of the window before. It estimates the
// tokens of the last window-length of time: it assumes that the grants of the window before were
// spread evenly, and counts the share of them that the length still covers.
//
// The estimate errs in both directions. It is too low if the grants came late in their window:
// then up to twice the burst is granted in one length. It is too high if they came early: then a
// request is refused although the length has room.
func slidingWindow(burst, size uint64) Take {
	var window, previous, present uint64 // window is the number of the present one
	return func(now, cost uint64) bool {
		w, elapsed := now/size, now%size
		if w > window+1 {
			present = 0
		}
		if w > window {
			window, previous, present = w, present, 0
		}
		if present+cost > burst {
			return false
		}
		hi, lo := bits.Mul64(previous, size-elapsed)
		covered, rest := bits.Div64(hi, lo, size)
		room := burst - present - cost
		if covered > room || covered == room && rest > 0 {
			return false
		}
		present += cost
		return true
	}
}
