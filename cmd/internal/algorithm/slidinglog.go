package algorithm

import "unsafe"

// slidingLog has a record of each grant of the last window. It is exact: no window of that length,
// wherever it begins, has more than the burst.
//
// It needs a record for each instant with a grant, so a key takes memory in proportion to the
// burst.
type slidingLog struct {
	records []record // in the order of time
	granted uint64   // their sum
}

type record struct{ instant, units uint64 }

func (s *slidingLog) take(l *Limit, now, cost uint64) Result {
	for len(s.records) > 0 && s.records[0].instant+l.window <= now {
		s.granted -= s.records[0].units
		s.records = s.records[1:]
	}
	if s.granted+cost > l.capacity {
		return Result{}
	}
	s.granted += cost
	if last := len(s.records) - 1; last >= 0 && s.records[last].instant == now {
		s.records[last].units += cost
	} else {
		s.records = append(s.records, record{now, cost})
	}
	return Result{Granted: true}
}

func (s *slidingLog) idle(l *Limit, now uint64) bool {
	last := len(s.records) - 1
	return last < 0 || s.records[last].instant+l.window <= now
}

func (s *slidingLog) heap() int { return len(s.records) * int(unsafe.Sizeof(record{})) }
