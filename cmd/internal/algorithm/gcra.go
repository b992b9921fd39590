package algorithm

// gcra is the generic cell rate algorithm (ITU-T I.371). Its only state is the theoretical arrival
// time: a key that has sent evenly at the rate would send its next request then. A request may be
// earlier than that time, by as much as the tolerance. The tolerance is the time in which the rate
// supplies the burst, less the time for the request itself.
//
// While time does not step back, it decides as a token bucket does: the bucket is full at the
// theoretical arrival time.
func gcra(l *Limit) Take {
	var arrival moment
	return func(now, cost uint64) bool {
		if cost > l.capacity {
			return false
		}
		next := l.supplied(later(arrival, at(now)), cost)
		if l.supplied(at(now), l.capacity).before(next) {
			return false
		}
		arrival = next
		return true
	}
}
