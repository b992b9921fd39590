package algorithm

import "math/bits"

// gcra is the generic cell rate algorithm (ITU-T I.371). Its only state is the theoretical arrival
// time: a key that has sent evenly at the rate would send its next request then. A request may be
// earlier than that time by the tolerance, less the time for the request itself, which is rounded
// down to a nanosecond. It decides as a token bucket does, which is full at the theoretical arrival
// time.
func gcra(burst, tolerance uint64) Take {
	var arrival uint64
	return func(now, cost uint64) bool {
		if cost > burst {
			return false
		}
		hi, lo := bits.Mul64(cost, tolerance)
		each, _ := bits.Div64(hi, lo, burst)
		next := max(arrival, now) + each
		if next > now+tolerance {
			return false
		}
		arrival = next
		return true
	}
}
