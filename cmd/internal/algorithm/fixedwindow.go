package algorithm

// fixedWindow counts the tokens that were granted since the window began. All keys have the same
// windows.
//
// A key can take the whole burst at the end of a window and again at the beginning of the next one:
// twice the burst in an instant.
func fixedWindow(burst, size uint64) Take {
	var window, granted uint64 // window is its number
	return func(now, cost uint64) bool {
		if w := now / size; w != window {
			window, granted = w, 0
		}
		if granted+cost > burst {
			return false
		}
		granted += cost
		return true
	}
}
