package algorithm

// gcra is the generic cell rate algorithm (ITU-T I.371). Its only state is the theoretical arrival
// time: a key that has sent evenly at the rate would send its next request then. A request may be
// earlier than that time, by as much as the tolerance. The tolerance is the time in which the rate
// supplies the burst, less the time for the request itself.
//
// While time does not step back, it decides as a token bucket does: the bucket is full at the
// theoretical arrival time.
type gcra struct{ arrival moment }

func (s *gcra) take(l *Limit, now, cost uint64) Result {
	if cost > l.capacity {
		return Result{}
	}
	next := l.supplied(later(s.arrival, at(now)), cost)
	if l.supplied(at(now), l.capacity).before(next) {
		return Result{}
	}
	s.arrival = next
	return Result{Granted: true}
}

func (s *gcra) idle(_ *Limit, now uint64) bool { return !at(now).before(s.arrival) }

func (s *gcra) heap() int { return 0 }
