package algorithm

// fixedWindow counts the units that were granted since the window began. All keys have the same
// windows.
//
// A key can take the whole burst at the end of a window and again at the beginning of the next one:
// twice the burst in an instant.
func fixedWindow(l *Limit) Take {
	var window, granted uint64 // window is its number
	return func(now, cost uint64) bool {
		if w := now / l.window; w != window {
			window, granted = w, 0
		}
		if granted+cost > l.capacity {
			return false
		}
		granted += cost
		return true
	}
}
