package redis

import "sync"

// drift bounds how fast two clocks move apart: a µs in so many. NTP slews a clock by half of that.
const drift = 1000

// offset is what replies have shown of the server's clock: how many µs it is ahead of the local
// clock. All methods are safe for concurrent use.
type offset struct {
	mu        sync.Mutex
	known     bool
	low, high int64 // bounds of the offset, at the local time at
	at        int64
	steps     uint64
}

// learn takes in a reply with the server's time. The command was sent, and the reply was received,
// at the given local times, all in whole µs. A reply that contradicts the earlier ones shows that a
// clock was set, and replaces them.
func (o *offset) learn(sent, received, server int64) {
	low, high := server-received-1, server-sent+1
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known {
		aged := o.aged(received)
		oldLow, oldHigh := o.low-aged, o.high+aged
		if low > oldHigh || high < oldLow {
			o.steps++
		} else {
			low, high = max(low, oldLow), min(high, oldHigh)
		}
	}
	o.known, o.low, o.high, o.at = true, low, high, max(received, o.at)
}

// aged returns by how many µs the bounds have moved apart. The lock is held.
func (o *offset) aged(local int64) int64 {
	if local <= o.at {
		return 0
	}
	return (local-o.at)/drift + 1
}

func (o *offset) isKnown() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known
}

// server returns the earliest server's time at a local time, at least 0.
func (o *offset) server(local int64) uint64 {
	low, _, _ := o.bounds(local)
	return uint64(max(0, local+low))
}

// bounds returns the bounds of the offset in µs at a local time, or 0 before the first reply, and
// how often a clock was set.
func (o *offset) bounds(local int64) (low, high int64, steps uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.known {
		return 0, 0, 0
	}
	aged := o.aged(local)
	return o.low - aged, o.high + aged, o.steps
}
