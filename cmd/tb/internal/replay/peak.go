package replay

// peakWindow is how many seconds back a line may step and still count for its second.
// Servers write a line when a request ends and stamp it with when it began, so this
// is the longest request that counts.
const peakWindow = 64

// peak finds the most requests that a key sent in one second of the log's clock. A second
// is counted by the stamps, not by the order of the lines, within a window of peakWindow
// seconds: what is older is over and is not counted any more.
type peak struct {
	newest int64              // the latest second seen
	counts [peakWindow]uint32 // of the seconds up to it, each at its number modulo
	most   uint32
}

// add counts a request in a second since 1970. The counts of the seconds that the window
// moves on to are those of past ones, and are cleared.
func (p *peak) add(second int64) {
	for ; p.newest < second; p.newest++ {
		if second-p.newest >= peakWindow { // all of them are past
			p.counts = [peakWindow]uint32{}
			p.newest = second
			break
		}
		p.counts[(p.newest+1)%peakWindow] = 0
	}
	if second <= p.newest-peakWindow {
		return
	}
	n := &p.counts[second%peakWindow]
	*n++
	p.most = max(p.most, *n)
}
