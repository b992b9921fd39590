package algorithm

// slidingLog has a record of each grant of the last window. It is exact: no window of that length,
// wherever it begins, has more than the burst.
//
// It needs a record for each instant with a grant, so a key takes memory in proportion to the
// burst.
type slidingLog struct {
	limit   *Limit
	records []record // in the order of time
	granted uint64   // their sum
}

type record struct{ instant, units uint64 }

func (s *slidingLog) Take(now, cost uint64) bool {
	for len(s.records) > 0 && s.records[0].instant+s.limit.window <= now {
		s.granted -= s.records[0].units
		s.records = s.records[1:]
	}
	if s.granted+cost > s.limit.capacity {
		return false
	}
	s.granted += cost
	if last := len(s.records) - 1; last >= 0 && s.records[last].instant == now {
		s.records[last].units += cost
	} else {
		s.records = append(s.records, record{now, cost})
	}
	return true
}
