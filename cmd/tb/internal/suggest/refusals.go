package suggest

import (
	"math"
	"slices"
)

// Refusals returns, for each burst, how many clients are ever refused at a rate, and how many
// requests are refused at most. The bursts are in ascending order. The clients are exact, and the
// requests are as exact as the bursts of ForRequests. requests is nil if the costs are not fixed.
func (r *Result) Refusals(rate int, bursts []uint64) (clients, requests []uint64) {
	needs := make([]uint64, 0, len(r.Clients))
	for _, cl := range r.Clients {
		needs = append(needs, r.Need(cl, rate))
	}
	slices.Sort(needs)
	for _, burst := range bursts {
		enough, _ := slices.BinarySearch(needs, burst+1)
		clients = append(clients, uint64(len(needs)-enough))
	}
	if r.swings == nil {
		return clients, nil
	}
	requests = r.swings[rate].refused(bursts)
	for i := range requests {
		requests[i] = min(requests[i], r.Requests)
		if clients[i] == 0 {
			requests[i] = 0
		}
	}
	return clients, requests
}

// refused returns an upper bound of the requests that each capacity refuses, where the capacities
// ascend.
func (s *swings) refused(capacities []uint64) []uint64 {
	counts := make([]uint64, len(capacities))
	sum, i := bin{}, len(s.bins)
	for j, capacity := range slices.Backward(capacities) {
		counts[j] = math.MaxUint64
		cost := s.cost / finest
		if s.over || capacity < cost {
			continue
		}
		from := binOf(capacity - cost + 1) // the last bin whose lower edge is not above the difference
		for ; i > from; i-- {
			sum.add(s.bins[i-1])
		}
		counts[j] = s.lost(from, &sum)
	}
	return counts
}
